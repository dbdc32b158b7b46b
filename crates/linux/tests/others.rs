// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the effect of a run on processes and interfaces that are not in its system file. It is
//! what `plan` says, and a flood on another interface takes no more time from anybody.
use crate::ground;
use crate::machine;

use std::collections::BTreeSet;
use std::fs;
use std::hint::black_box;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ground::{Ground, Need};
use libbpf_rs::ProgramType;
use libbpf_rs::query::ProgInfoIter;
use machine::{Machine, printed, signal};
use nix::sys::signal::Signal;
use serde_json::Value;
use weir_linux::sched::{self, Cpus, SchedPolicy};
use weir_linux::settings::{NetDevice, netlink};

fn plan(machine: &Machine) -> Value {
    let output = machine.weir("plan").arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The settings that apply to the whole machine, as the plan names them (docs/linux.md, *What it
/// changes*).
const OF_THE_MACHINE: [&str; 3] = [
    "the policy of ktimers/",
    "the sysctl net.core.rmem_default",
    "the scheduler's feature HRTICK_DL",
];

/// Any user may create a network namespace, and interfaces of any name in it.
#[test]
fn an_interface_of_another_namespace_that_is_named_alike_is_left_alone() {
    for (mode, more) in [
        ("native", ""),
        ("predicted", "predict = \"registered\""),
        ("exact", ""),
    ] {
        let Some(mut machine) = Machine::new_with(&[Need::Namespaces, Need::RealTime, Need::Bpf])
        else {
            return;
        };
        machine.linux(&format!("mode = \"{mode}\"\n{more}"));
        machine.arguments.push("--yes-xdp");
        let (sender, receiver) = (&machine.ground.sender, &machine.ground.receiver);
        sender.offload(ground::Offload::SendChecksums, false);
        if receiver.run(|| netlink::threads(1)).is_err() {
            ground::skipped("before Linux 6.8 the kernel does not tell whose a thread is");
            return;
        }
        let name = &receiver.interface;
        sender.ip(&format!("link add {name} type veth peer name other"));
        sender.offload_of(name, ground::Offload::Receive, true);
        sender.ip(&format!("link set {name} up"));
        let open = NetDevice::find(name, Some(&sender.path()))
            .unwrap()
            .open()
            .unwrap();
        open.write("threaded", "1").unwrap();
        let alike = machine.napi();
        assert!(!alike.is_empty() && alike.iter().all(|policy| *policy == alike[0]));
        let _socket = receiver.run(|| UdpSocket::bind(("0.0.0.0", 9)).unwrap());
        let before = machine.settings();
        let run = machine.run();
        let raised = || {
            let now = machine.napi().into_iter();
            now.filter(|policy| *policy != alike[0]).count()
        };
        machine::until("its own are raised", || raised() > 0);
        // Weir searches for new threads every two seconds.
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(machine.napi().len() - raised(), alike.len(), "{mode}");
        signal(&run, Signal::SIGINT);
        let ended = run.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", printed(&ended));
        assert_eq!(machine.settings().files, before.files);
    }
}

#[test]
fn nothing_of_the_machine_is_set_but_what_is_said() {
    for mode in ["native", "predicted", "exact"] {
        let Some(mut machine) = Machine::new_with(&[Need::Namespaces, Need::RealTime, Need::Bpf])
        else {
            return;
        };
        machine.linux(&format!("mode = \"{mode}\""));
        machine.arguments.push("--yes-xdp");
        let sender = &machine.ground.sender;
        sender.offload(ground::Offload::SendChecksums, false);
        let name = machine.ground.receiver.interface.clone();
        for change in plan(&machine)["changes"].as_array().unwrap() {
            let setting = change["setting"].as_str().unwrap();
            let is_said = OF_THE_MACHINE.iter().any(|of| setting.starts_with(of));
            assert!(is_said || setting.contains(&name), "{mode}: {setting}");
        }
        let before = machine.settings();
        let run = machine.run();
        // The journal contains all settings that were changed.
        let entries = fs::read_dir(machine.state()).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let journal = paths
            .find(|path| path.extension().is_some_and(|its| its == "journal"))
            .unwrap();
        let text = fs::read_to_string(journal).unwrap();
        for line in text.lines().skip(1) {
            let change: Value = serde_json::from_str(line).unwrap();
            let setting = change["change"]["setting"].to_string();
            let of_machine = ["ktimers/", "rmem_default", "HRTICK_DL"];
            let is_said = of_machine.iter().any(|of| setting.contains(of));
            assert!(is_said || setting.contains(&name), "{mode}: {setting}");
        }
        machine.end(run, Signal::SIGTERM, &before);
    }
}

/// The loaded BPF programs: number, name, and whether it is attached to a control group.
fn loaded() -> Vec<(u32, String, bool)> {
    let of_cgroup = |of| matches!(of, ProgramType::CgroupSkb | ProgramType::CgroupSock);
    ProgInfoIter::default()
        .map(|info| {
            let name = info.name.to_string_lossy().into_owned();
            (info.id, name, of_cgroup(info.ty))
        })
        .collect()
}

#[test]
fn plan_lists_the_programs_that_everybody_meets() {
    for section in [
        "mode = \"native\"",
        "mode = \"native\"\naccounting = \"time\"",
        "mode = \"predicted\"",
        "mode = \"exact\"",
    ] {
        let Some(mut machine) = Machine::new_with(&[Need::Namespaces, Need::RealTime, Need::Bpf])
        else {
            return;
        };
        machine.linux(section);
        machine.arguments.push("--yes-xdp");
        let sender = &machine.ground.sender;
        sender.offload(ground::Offload::SendChecksums, false);
        let plan = plan(&machine);
        let listed = |root_cgroup: bool| -> BTreeSet<String> {
            let all = plan["programs"].as_array().unwrap().iter();
            all.filter(|one| one["root_cgroup"] == root_cgroup)
                // The kernel keeps 15 bytes of the name.
                .map(|one| one["program"].as_str().unwrap().chars().take(15).collect())
                .collect()
        };
        let before = machine.settings();
        let run = machine.run();
        let its = machine::programs_of(&PathBuf::from(format!("/proc/{}", run.id())));
        let new: Vec<_> = loaded()
            .into_iter()
            .filter(|(id, ..)| its.contains(id))
            .collect();
        let of_cgroup: BTreeSet<String> = new
            .iter()
            .filter(|(.., of_cgroup)| *of_cgroup)
            .map(|(_, name, _)| name.clone())
            .collect();
        assert_eq!(of_cgroup, listed(true), "{section}");
        let names: BTreeSet<String> = new.into_iter().map(|(_, name, _)| name).collect();
        assert!(listed(false).is_subset(&names), "{section}: {names:?}");
        assert_eq!(listed(false).is_empty(), section == "mode = \"native\"");
        machine.end(run, Signal::SIGTERM, &before);
    }
}

/// Duration of a measurement.
const WINDOW: Duration = Duration::from_millis(700);

fn pin(cpu: &str) {
    let cpus: Cpus = cpu.parse().unwrap();
    sched::set_affinity(0, &cpus).unwrap();
}

/// Creates a ground that Weir does not know, whose packets are handled on CPU 1.
fn another() -> Option<Ground> {
    let other = ground::begin(&[Need::Namespaces])?;
    let path = other.receiver.path();
    let found = NetDevice::find(&other.receiver.interface, Some(&path)).unwrap();
    let open = found.open().unwrap();
    open.write("queues/rx-0/rps_cpus", "2").unwrap();
    Some(other)
}

/// Amount of work that a task of SCHED_FIFO 50 does on CPU 1 in the window.
fn work() -> u64 {
    let working = std::thread::spawn(|| {
        pin("1");
        sched::set(0, SchedPolicy::Fifo(50)).unwrap();
        let end = Instant::now() + WINDOW;
        let mut done = 0_u64;
        while Instant::now() < end {
            for _ in 0..1000 {
                done = black_box(done + 1);
            }
        }
        done
    });
    working.join().unwrap()
}

/// Opens a socket that shares its port with others. A packet for the broadcast address causes work
/// for each of them.
fn shared() -> UdpSocket {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 9_u16.to_be(),
        sin_addr: libc::in_addr { s_addr: 0 },
        sin_zero: [0; 8],
    };
    let on: libc::c_int = 1;
    // SAFETY: the descriptor has no other owner, and the number and the address outlive the calls.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let socket = std::os::fd::OwnedFd::from_raw_fd(socket);
        let descriptor = socket.as_raw_fd();
        let set = libc::setsockopt(
            descriptor,
            libc::SOL_SOCKET,
            libc::SO_REUSEADDR,
            (&raw const on).cast(),
            size_of_val(&on) as _,
        );
        let bound = libc::bind(
            descriptor,
            (&raw const address).cast(),
            size_of_val(&address) as _,
        );
        assert_eq!((set, bound), (0, 0), "{}", std::io::Error::last_os_error());
        socket.into()
    }
}

/// The part of its work that such a task loses to a flood on an interface of `ground`, whose
/// packets are handled on CPU 1.
fn lost(ground: &Ground) -> f64 {
    let idle = work();
    let stop = AtomicBool::new(false);
    // With so many sockets, one CPU can send more packets than another can receive.
    let _receivers: Vec<UdpSocket> = (0..64).map(|_| ground.receiver.run(shared)).collect();
    let to = (Ipv4Addr::new(10, 77, 0, 255), 9);
    let socket = ground
        .sender
        .run(|| UdpSocket::bind(("0.0.0.0", 0)).unwrap());
    socket.set_broadcast(true).unwrap();
    let flooded = std::thread::scope(|scope| {
        scope.spawn(|| {
            pin("0");
            while !stop.load(Ordering::Relaxed) {
                // A packet that does not fit into the queue is dropped.
                let _ = socket.send_to(&[0; 64], to);
            }
        });
        std::thread::sleep(Duration::from_millis(100));
        let done = work();
        stop.store(true, Ordering::Relaxed);
        done
    });
    1.0 - flooded as f64 / idle as f64
}

/// During a flood on another interface, ksoftirqd waits for a real-time process that does not
/// sleep. An urgent receiver must not wait for ksoftirqd.
#[test]
fn an_urgent_receiver_is_served_while_ksoftirqd_waits() {
    const PACKETS: usize = 100;
    let Some(machine) = Machine::new_with(&[Need::Namespaces, Need::RealTime, Need::Alone]) else {
        return;
    };
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus < 2 {
        ground::skipped("two CPUs are needed");
        return;
    }
    let text = fs::read_to_string(machine.file()).unwrap();
    fs::write(machine.file(), text.replace("urgency = 2", "urgency = 80")).unwrap();
    let Some(other) = another() else {
        return;
    };
    machine
        .ground
        .sender
        .offload(ground::Offload::SendChecksums, false);
    let before = machine.settings();
    let run = machine.run();
    let bind = || UdpSocket::bind(("0.0.0.0", 9)).unwrap();
    let receiver = machine.ground.receiver.run(bind);
    receiver
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let sender = machine
        .ground
        .sender
        .run(|| UdpSocket::bind(("0.0.0.0", 0)).unwrap());
    let to = (machine.ground.receiver.v4, 9);
    let stop = AtomicBool::new(false);
    let served = std::thread::scope(|scope| {
        // The real-time processes run on CPU 1, where the flood is handled, too.
        scope.spawn(|| {
            pin("1");
            sched::set(0, SchedPolicy::Fifo(50)).unwrap();
            while !stop.load(Ordering::Relaxed) {
                black_box(0);
            }
        });
        let flood = other
            .sender
            .run(|| UdpSocket::bind(("0.0.0.0", 0)).unwrap());
        let flooded = (other.receiver.v4, 9);
        let stopped = &stop;
        scope.spawn(move || {
            pin("0");
            while !stopped.load(Ordering::Relaxed) {
                let _ = flood.send_to(&[0; 64], flooded);
            }
        });
        let serving = scope.spawn(|| {
            pin("1");
            sched::set(0, SchedPolicy::Fifo(80)).unwrap();
            let mut byte = [0; 8];
            (0..PACKETS)
                .filter(|_| {
                    sender.send_to(b"weir", to).unwrap();
                    let is_served = receiver.recv(&mut byte).is_ok();
                    std::thread::sleep(Duration::from_millis(5));
                    is_served
                })
                .count()
        });
        let served = serving.join().unwrap();
        stop.store(true, Ordering::Relaxed);
        served
    });
    machine.end(run, Signal::SIGINT, &before);
    println!("served {served} of {PACKETS}");
    assert!(served >= PACKETS * 9 / 10, "{served}");
}

#[test]
fn a_flood_on_another_interface_takes_no_more_with_weir() {
    let Some(machine) = Machine::new_with(&[Need::Namespaces, Need::RealTime, Need::Alone]) else {
        return;
    };
    if std::thread::available_parallelism().unwrap().get() < 2 {
        ground::skipped("two CPUs are needed");
        return;
    }
    // The receivers of the file become more urgent than the task.
    let text = fs::read_to_string(machine.file()).unwrap();
    fs::write(machine.file(), text.replace("urgency = 2", "urgency = 80")).unwrap();
    let Some(other) = another() else {
        return;
    };
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let measured = || median((0..5).map(|_| lost(&other)).collect());
    let before = machine.settings();
    // Other work of the machine affects both measurements, so a difference is measured a second
    // time.
    for last in [false, true] {
        let without = measured();
        let run = machine.run();
        let with = measured();
        machine.end(run, Signal::SIGINT, &before);
        println!("lost without Weir {without:.3}, with it {with:.3}");
        if with < without + 0.1 {
            return;
        }
        assert!(!last, "{without} {with}");
    }
}
