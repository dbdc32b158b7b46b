// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures with the kernel's statistics what accounting costs. It prints the figures of
//! docs/linux-accounting.md (`--nocapture`).
use std::collections::BTreeMap;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use libbpf_rs::query::ProgInfoIter;
use weir_linux::account::Options;

use super::flood::{self, Flood};
use super::{Books, NEEDS, ground};

/// How long and how often each program of the account has run, by its number: name, ns, runs.
fn costs() -> BTreeMap<u32, (String, u64, u64)> {
    ProgInfoIter::default()
        .map(|info| {
            let name = info.name.to_string_lossy().into_owned();
            (info.id, (name, info.run_time_ns, info.run_cnt))
        })
        .filter(|(_, (name, _, _))| name.starts_with("account_"))
        .collect()
}

#[test]
fn costs_are_counted_and_packets_can_be_left_out() {
    let Some(ground) = ground::begin(NEEDS) else {
        return;
    };
    if !flood::has_two_cpus() {
        return;
    }
    flood::steer(&ground.receiver);
    let _receiver = flood::receiver(&ground.receiver, 5001);
    // SAFETY: the call takes a number and returns a descriptor.
    let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    assert!(descriptor >= 0);
    // SAFETY: the descriptor was just opened, so it has no other owner.
    let _statistics = unsafe { OwnedFd::from_raw_fd(descriptor) };
    for packets in [true, false] {
        let others = costs();
        let mut books = Books::open(Options {
            packets,
            ..Options::default()
        });
        let flood = Flood::begin(&ground, &[5001]);
        let report = books.keep(Duration::from_secs(1));
        flood.end();
        println!("packets counted: {packets}; {} delivered", report.packets);
        for (_, (name, time, runs)) in costs().iter().filter(|(id, _)| !others.contains_key(id)) {
            if let Some(each) = time.checked_div(*runs) {
                println!("  {name}: {each} ns a run, {runs} runs");
            }
        }
        let begin = Instant::now();
        const TURNS: u32 = 20;
        for _ in 0..TURNS {
            books.turn();
        }
        println!("  a turn: {:?}", begin.elapsed() / TURNS);
        assert_eq!(report.packets > 0, packets);
        assert_eq!(report.received_ns > 0, packets);
        assert!(report.measured.receive_ns > 0);
    }
}
