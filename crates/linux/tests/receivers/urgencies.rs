// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the urgency of a receiver, as policies and rules determine it.
use std::time::Duration;

use libc::SOCK_DGRAM;
use weir_linux::receivers::{Follower, Options, Protocol, Rule, RuleSet, TableChange};
use weir_linux::sched::{self, SchedPolicy};
use weir_linux::urgency::Urgency;

use super::actor::{Actor, bind, child};
use super::{any4, by_scans, reader, udp, wait_for};
use crate::ground;

fn urgency(number: u8) -> Urgency {
    Urgency::new(number).unwrap()
}

fn is(follower: &Follower, port: u16, pid: u32, number: u8) -> bool {
    reader(follower, udp(port), pid).is_some_and(|reader| reader.urgency == urgency(number))
}

fn tid(pid: u32) -> sched::Tid {
    pid.try_into().unwrap()
}

/// Sets the policy of another process by the older system calls.
fn set_older(pid: u32, policy: Option<i32>, priority: i32) {
    // SAFETY: zero is valid for the integers of sched_param.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = priority;
    // SAFETY: the kernel reads the parameter, which outlives the calls. They are system calls,
    // since libc's own functions may do nothing.
    let returned = unsafe {
        match policy {
            Some(policy) => libc::syscall(
                libc::SYS_sched_setscheduler,
                pid,
                policy,
                &raw const parameter,
            ),
            None => libc::syscall(libc::SYS_sched_setparam, pid, &raw const parameter),
        }
    };
    assert_eq!(returned, 0);
}

#[test]
fn every_way_to_set_the_policy_of_another_process_is_seen() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_scans();
    let actor = Actor::new(&ground.receiver, || {
        bind(any4(4201), SOCK_DGRAM);
    });
    let pid = actor.pid();
    wait_for(&mut follower, "an ordinary receiver", |f| {
        is(f, 4201, pid, 0)
    });
    sched::set(tid(pid), SchedPolicy::Fifo(10)).unwrap();
    let changes = wait_for(&mut follower, "sched_setattr", |f| is(f, 4201, pid, 10));
    assert!(changes.iter().any(|change| matches!(
        change,
        TableChange::Urgency { key, reader, from, to }
            if *key == udp(4201) && reader.pid == pid && *from == urgency(0) && *to == urgency(10)
    )));
    assert_eq!(follower.table().urgency(udp(4201)), Some(urgency(10)));
    set_older(pid, Some(libc::SCHED_RR), 20);
    wait_for(&mut follower, "sched_setscheduler", |f| {
        is(f, 4201, pid, 20)
    });
    set_older(pid, None, 30);
    wait_for(&mut follower, "sched_setparam", |f| is(f, 4201, pid, 30));
    set_older(pid, Some(libc::SCHED_OTHER), 0);
    wait_for(&mut follower, "an ordinary one again", |f| {
        is(f, 4201, pid, 0)
    });
}

#[test]
fn a_nice_value_is_no_urgency() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_scans();
    let actor = Actor::new(&ground.receiver, || {
        bind(any4(4202), SOCK_DGRAM);
    });
    let pid = actor.pid();
    wait_for(&mut follower, "the receiver", |f| is(f, 4202, pid, 0));
    // SAFETY: the system call uses no memory.
    assert_eq!(
        unsafe { libc::setpriority(libc::PRIO_PROCESS, pid, -10) },
        0
    );
    // A change that was made after that call shows that the call was not reported.
    sched::set(tid(pid), SchedPolicy::Fifo(1)).unwrap();
    let changes = wait_for(&mut follower, "its policy", |f| is(f, 4202, pid, 1));
    let of_it = changes.iter().filter(
        |change| matches!(change, TableChange::Urgency { reader, .. } if reader.pid == pid),
    );
    assert_eq!(of_it.count(), 1);
}

#[test]
fn a_process_that_sets_its_own_policy_is_seen() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_scans();
    let actor = Actor::new(&ground.receiver, || {
        bind(any4(4203), SOCK_DGRAM);
        set_older(0, Some(libc::SCHED_FIFO), 5);
    });
    let pid = actor.pid();
    wait_for(&mut follower, "its policy", |f| is(f, 4203, pid, 5));
}

#[test]
fn a_shared_socket_is_as_urgent_as_its_most_urgent_reader() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_scans();
    let actor = Actor::new(&ground.receiver, || {
        bind(any4(4204), SOCK_DGRAM);
        child(|| set_older(0, Some(libc::SCHED_FIFO), 7));
    });
    wait_for(&mut follower, "the child's urgency", |f| {
        f.table().urgency(udp(4204)) == Some(urgency(7)) && is(f, 4204, actor.pid(), 0)
    });
}

#[test]
fn a_process_is_as_urgent_as_its_most_urgent_thread() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let socket = ground
        .receiver
        .run(|| std::net::UdpSocket::bind(any4(4205)).unwrap());
    let mut follower = by_scans();
    let me = std::process::id();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        set_older(0, Some(libc::SCHED_FIFO), 3);
        let _ = stopped.recv();
    });
    // Other tests of this process have only ordinary threads.
    wait_for(&mut follower, "the thread's urgency", |f| {
        is(f, 4205, me, 3)
    });
    drop(stop);
    thread.join().unwrap();
    wait_for(&mut follower, "its end", |f| is(f, 4205, me, 0));
    drop(socket);
}

#[test]
fn a_process_in_a_namespace_of_its_own_numbers_is_seen() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_scans();
    // The child of this process is number 1 of a new process namespace. The child's child has
    // number 2, and has the socket.
    let actor = Actor::new(&ground.receiver, || {
        // SAFETY: the system call uses no memory.
        unsafe { libc::unshare(libc::CLONE_NEWPID) };
        child(|| {
            child(|| {
                bind(any4(4206), SOCK_DGRAM);
            });
            // The policy is set twice, since process 2 may not have its socket yet at the first
            // time.
            for priority in [8, 9] {
                set_older(2, Some(libc::SCHED_FIFO), priority);
                std::thread::sleep(Duration::from_millis(300));
            }
        });
    });
    wait_for(&mut follower, "its policy", |f| {
        f.table().urgency(udp(4206)) == Some(urgency(9))
    });
    drop(actor);
}

#[test]
fn rules_come_before_policies() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let rule = |port, command: Option<&str>, number| Rule {
        protocol: Some(Protocol::Udp),
        port,
        cgroup: None,
        command: command.map(str::to_owned),
        user: None,
        urgency: urgency(number),
    };
    let rules = RuleSet::new(vec![
        rule(Some(4207), None, 60),
        rule(Some(4208), Some("nobody"), 61),
    ]);
    let options = Options {
        period: Duration::from_millis(100),
        ..Options::default()
    };
    let mut follower = Follower::start(rules, options).unwrap();
    let actor = Actor::new(&ground.receiver, || {
        bind(any4(4207), SOCK_DGRAM);
        bind(any4(4208), SOCK_DGRAM);
    });
    let pid = actor.pid();
    wait_for(&mut follower, "both", |f| {
        is(f, 4207, pid, 60) && is(f, 4208, pid, 0)
    });
    sched::set(tid(pid), SchedPolicy::Fifo(10)).unwrap();
    wait_for(&mut follower, "the policy where no rule is", |f| {
        is(f, 4207, pid, 60) && is(f, 4208, pid, 10)
    });
}

/// Makes this process run as another user, who has no rights.
fn become_nobody() {
    // SAFETY: the system call uses no memory.
    unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
}

fn take_name(name: &'static std::ffi::CStr) {
    // SAFETY: the name is a string that ends with 0.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

#[test]
fn a_name_that_another_user_gives_itself_is_worth_nothing() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let rules = RuleSet::new(vec![Rule {
        protocol: None,
        port: None,
        cgroup: None,
        command: Some("weir-plc".to_owned()),
        user: Some(0),
        urgency: urgency(60),
    }]);
    let options = Options {
        period: Duration::from_millis(100),
        ..Options::default()
    };
    let mut follower = Follower::start(rules, options).unwrap();
    let honest = Actor::new(&ground.receiver, || {
        take_name(c"weir-plc");
        bind(any4(4210), SOCK_DGRAM);
    });
    let other = Actor::new(&ground.receiver, || {
        become_nobody();
        take_name(c"weir-plc");
        bind(any4(4211), SOCK_DGRAM);
    });
    // This process was root when it bound its socket, and no longer is.
    let former = Actor::new(&ground.receiver, || {
        take_name(c"weir-plc");
        bind(any4(4212), SOCK_DGRAM);
        become_nobody();
    });
    wait_for(&mut follower, "each by its user", |f| {
        is(f, 4210, honest.pid(), 60) && is(f, 4211, other.pid(), 0) && is(f, 4212, former.pid(), 0)
    });
}
