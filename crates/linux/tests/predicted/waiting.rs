// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests which threads wait, and for what.
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use libc::SOCK_DGRAM;
use weir_linux::predicted::{Basis, DeviceBottomHalf, Prediction, Threads};
use weir_linux::receivers::{Follower, Options, Reach, RuleSet};
use weir_linux::sched::{self, SchedPolicy};
use weir_linux::threads::{Thread, Work, which};
use weir_linux::urgency::Urgency;

use super::actor::{Actor, become_fifo, bind, child};
use super::ground::{self, Ground, Offload};
use super::{Mode, SOON};

fn any(port: u16) -> SocketAddr {
    ([0, 0, 0, 0], port).into()
}

/// A way to wait for a packet of a socket, with its name.
type Way = (&'static str, fn(i32));

const WAYS: [Way; 6] = [
    ("recv", |socket| {
        let mut byte = 0_u8;
        // SAFETY: the byte outlives the call.
        unsafe { libc::recv(socket, (&raw mut byte).cast(), 1, 0) };
    }),
    ("read", |socket| {
        let mut byte = 0_u8;
        // SAFETY: the byte outlives the call.
        unsafe { libc::read(socket, (&raw mut byte).cast(), 1) };
    }),
    ("recvmsg", |socket| {
        // SAFETY: zero is valid for the header's integers and pointers, and the header outlives the
        // call.
        unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            libc::recvmsg(socket, &raw mut header, 0);
        }
    }),
    ("poll", |socket| {
        let mut entry = libc::pollfd {
            fd: socket,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the entry outlives the call.
        unsafe { libc::poll(&raw mut entry, 1, -1) };
    }),
    ("select", |socket| {
        // SAFETY: the set outlives the calls, and a test has few descriptors.
        unsafe {
            let mut set: libc::fd_set = std::mem::zeroed();
            libc::FD_SET(socket, &raw mut set);
            let none = std::ptr::null_mut();
            libc::select(socket + 1, &raw mut set, none, none, std::ptr::null_mut());
        }
    }),
    ("epoll", |socket| {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0,
        };
        // SAFETY: the event outlives the calls.
        unsafe {
            let all = libc::epoll_create1(0);
            libc::epoll_ctl(all, libc::EPOLL_CTL_ADD, socket, &raw mut event);
            libc::epoll_wait(all, &raw mut event, 1, -1);
        }
    }),
];

/// Starts two receivers that share a socket. One of them waits in the way `wait`.
fn waiter(ground: &Ground, port: u16, priority: i32, wait: fn(i32)) -> Actor {
    Actor::new(&ground.receiver, move || {
        let socket = bind(any(port), SOCK_DGRAM);
        become_fifo(priority);
        child(move || wait(socket));
    })
}

#[test]
fn every_way_to_wait_is_seen() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut mode = Mode::start(&ground, Basis::Waiting);
    for ((name, wait), urgency) in WAYS.into_iter().zip(11..) {
        let actor = waiter(&ground, 4300 + u16::from(urgency), urgency.into(), wait);
        mode.wait_for(urgency, name);
        drop(actor);
        mode.wait_for(0, "nobody is there");
    }
}

#[test]
fn who_waited_before_the_start_is_seen() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let _actors = WAYS.map(|(_, wait)| waiter(&ground, 4320, 20, wait));
    let mut mode = Mode::start(&ground, Basis::Waiting);
    mode.wait_for(20, "who waits already");
}

#[test]
fn who_sleeps_for_something_else_does_not_wait() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut mode = Mode::start(&ground, Basis::Waiting);
    let _sleeper = waiter(&ground, 4330, 30, |_| {
        std::thread::sleep(Duration::from_secs(30));
    });
    let _reader = waiter(&ground, 4331, 31, |_| {
        let mut pipe = [0; 2];
        let mut byte = 0_u8;
        // SAFETY: the kernel writes two descriptors and at most one byte.
        unsafe {
            libc::pipe(pipe.as_mut_ptr());
            libc::read(pipe[0], (&raw mut byte).cast(), 1);
        }
    });
    mode.stays(0, "nobody waits for a packet");
}

#[test]
fn a_receiver_that_works_does_not_wait_until_it_waits_again() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut mode = Mode::start(&ground, Basis::Waiting);
    let _actor = waiter(&ground, 4340, 40, |socket| {
        loop {
            let mut byte = 0_u8;
            // SAFETY: the byte outlives the call.
            unsafe { libc::recv(socket, (&raw mut byte).cast(), 1, 0) };
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    let less = waiter(&ground, 4341, 35, WAYS[0].1);
    mode.wait_for(40, "both wait");
    mode.given.lock().unwrap().clear();
    let to = (ground.receiver.v4, 4340);
    ground.sender.run(move || {
        let socket = UdpSocket::bind(any(0)).unwrap();
        socket.send_to(b"x", to).unwrap();
    });
    mode.wait_for(40, "it waits again");
    assert_eq!(*mode.given.lock().unwrap(), [35, 40]);
    drop(less);
}

#[test]
fn an_urgency_that_changes_while_its_thread_waits_counts_from_the_next_scan_on() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut mode = Mode::scanning(&ground, Basis::Waiting, Duration::from_millis(100));
    let _actor = waiter(&ground, 4350, 50, WAYS[0].1);
    mode.wait_for(50, "it waits");
    let key = super::udp(4350);
    let pids: Vec<u32> = mode
        .follower
        .table()
        .readers(key)
        .map(|reader| reader.id.pid)
        .collect();
    assert_eq!(pids.len(), 2);
    for priority in [51, 49] {
        for pid in &pids {
            sched::set(*pid as i32, SchedPolicy::Fifo(priority)).unwrap();
        }
        mode.wait_for(priority, "the other urgency");
    }
    for pid in pids {
        sched::set(pid as i32, SchedPolicy::Other { nice: 0 }).unwrap();
    }
    mode.wait_for(0, "an ordinary receiver");
}

#[test]
fn the_other_basis_asks_only_who_is_there() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut mode = Mode::start(&ground, Basis::Registered);
    let actor = waiter(&ground, 4360, 60, |_| {
        std::thread::sleep(Duration::from_secs(30));
    });
    mode.wait_for(60, "it is there");
    drop(actor);
    mode.wait_for(0, "it is gone");
}

#[test]
fn the_thread_of_a_device_runs_at_the_urgency_of_who_waits() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    ground.receiver.offload(Offload::Receive, true);
    let name = ground.receiver.interface.clone();
    // /sys shows the network namespace of the process that mounted it.
    let script = format!("mount -t sysfs none /sys && echo 1 > /sys/class/net/{name}/threaded");
    let done = ground
        .receiver
        .command("unshare")
        .args(["--mount", "sh", "-c", &script])
        .status()
        .unwrap();
    assert!(done.success());
    let of_device =
        |work: &Work| matches!(work, Work::Napi { interface, .. } if *interface == name);
    let threads = which(of_device).unwrap();
    let tid = threads.first().expect("a NAPI thread").thread.tid;
    let reach = Reach {
        index: 0,
        loopback: false,
        namespace: ground.receiver.run(|| Reach::find("lo").unwrap().namespace),
    };
    let all: Vec<Thread> = threads.iter().map(|found| found.thread).collect();
    let threads = Threads::new(Urgency::new(70).unwrap());
    threads.replace(all.clone()).unwrap();
    let device = DeviceBottomHalf::for_threads(reach, &threads);
    let mut predicted = Prediction::start(vec![device], Basis::Waiting, None).unwrap();
    let mut follower = Follower::start(RuleSet::default(), Options::default()).unwrap();
    let mut wait_for = |policy| {
        let end = std::time::Instant::now() + SOON;
        while sched::get(tid).unwrap() != policy {
            assert!(std::time::Instant::now() < end, "not {policy:?}");
            follower.poll(Duration::from_millis(20)).unwrap();
            predicted.update(follower.table()).unwrap();
        }
    };
    wait_for(SchedPolicy::Other { nice: 0 });
    let actor = waiter(&ground, 4370, 65, WAYS[0].1);
    wait_for(SchedPolicy::Fifo(65));
    drop(actor);
    wait_for(SchedPolicy::Other { nice: 0 });
    let _actor = waiter(&ground, 4371, 80, WAYS[0].1);
    wait_for(SchedPolicy::Fifo(70));
    // A thread that is added later gets the urgency of the others.
    sched::set(tid, SchedPolicy::Other { nice: 0 }).unwrap();
    threads.replace(Vec::new()).unwrap();
    threads.replace(all).unwrap();
    assert_eq!(sched::get(tid).unwrap(), SchedPolicy::Fifo(70));
}
