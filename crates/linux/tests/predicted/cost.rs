// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures with the kernel's statistics what following and predicting cost. It prints the figures
//! of docs/linux-receivers.md (`--nocapture`).
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use libbpf_rs::query::ProgInfoIter;
use weir_linux::predicted::Basis;
use weir_linux::receivers::{Follower, Options, RuleSet};
use weir_linux::sched::{self, SchedPolicy};

use super::Mode;
use crate::ground;

/// How long and how often each program has run, by its number: name, ns, runs.
fn costs() -> BTreeMap<u32, (String, u64, u64)> {
    ProgInfoIter::default()
        .map(|info| {
            let name = info.name.to_string_lossy().into_owned();
            (info.id, (name, info.run_time_ns, info.run_cnt))
        })
        .collect()
}

/// Lets the kernel measure the runs of BPF programs as long as the descriptor is open. That makes
/// each run a little longer.
fn count_runs() -> OwnedFd {
    // SAFETY: the call takes a number and returns a descriptor.
    let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    assert!(descriptor >= 0);
    // SAFETY: the descriptor was just opened, so it has no other owner.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// The shortest time of a round, out of several attempts.
fn best(address: Ipv4Addr, rounds: u32) -> Duration {
    let attempts = (0..5).map(|_| exchange(address, rounds));
    attempts.min().unwrap_or_default()
}

/// Exchanges datagrams between two threads that wait for each other. Returns the time of one round.
fn exchange(address: Ipv4Addr, rounds: u32) -> Duration {
    let [one, other] = [0, 0].map(|port| UdpSocket::bind((address, port)).unwrap());
    one.connect(other.local_addr().unwrap()).unwrap();
    other.connect(one.local_addr().unwrap()).unwrap();
    for socket in [&one, &other] {
        socket
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
    }
    let answering = std::thread::spawn(move || {
        sched::set(0, SchedPolicy::Fifo(10)).unwrap();
        let mut byte = [0];
        for _ in 0..rounds {
            other.recv(&mut byte).unwrap();
            other.send(&byte).unwrap();
        }
    });
    let begin = Instant::now();
    let mut byte = [0];
    for _ in 0..rounds {
        one.send(&byte).unwrap();
        one.recv(&mut byte).unwrap();
    }
    let time = begin.elapsed();
    answering.join().unwrap();
    time / rounds
}

/// The shortest time of a system call that does nothing, out of several attempts.
fn call() -> Duration {
    const CALLS: u32 = 20_000;
    let attempt = |_| {
        let begin = Instant::now();
        for _ in 0..CALLS {
            // SAFETY: the system call uses no memory.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        begin.elapsed() / CALLS
    };
    (0..20).map(attempt).min().unwrap_or_default()
}

#[test]
fn costs_are_counted_and_small() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    // The loopback address is not used, since a socket that is bound to it is no receiver of a
    // device.
    let (address, rounds) = (ground.receiver.v4, 3_000);
    let without = ground.receiver.run(move || best(address, rounds));
    println!(
        "without us: a round {without:?}, a system call {:?}",
        call()
    );
    let follower = Follower::start(RuleSet::default(), Options::default()).unwrap();
    println!("with a follower: a system call {:?}", call());
    drop(follower);
    let statistics = count_runs();
    for basis in [Basis::Registered, Basis::Waiting] {
        // Other tests may run programs of the same names. Those are not counted.
        let others = costs();
        let mut mode = Mode::start(&ground, basis);
        let before = mode.predicted.changes();
        let ours = costs();
        let begin = Instant::now();
        let (sent, received) = std::sync::mpsc::channel();
        let job = std::thread::scope(|scope| {
            scope.spawn(|| {
                let time = ground.receiver.run(move || best(address, rounds));
                sent.send(time).unwrap();
            });
            loop {
                mode.turn();
                if let Ok(time) = received.try_recv() {
                    break time;
                }
            }
        });
        let seconds = begin.elapsed().as_secs_f64();
        let changes = mode.predicted.changes() - before;
        println!(
            "{basis:?}: a round {job:?}, {:.0} changes/s",
            changes as f64 / seconds
        );
        let mut switches = 0;
        for (id, (name, time, runs)) in costs() {
            let Some((_, time_before, runs_before)) = ours.get(&id) else {
                continue;
            };
            if others.contains_key(&id) {
                continue;
            }
            let (time, runs) = (time - time_before, runs - runs_before);
            if let Some(each) = time.checked_div(runs) {
                println!("  {name}: {each} ns a run, {runs} runs");
            }
            if name == "waiting_switch" {
                switches += runs;
            }
        }
        assert!(basis == Basis::Registered || switches > u64::from(rounds));
    }
    drop(statistics);
}
