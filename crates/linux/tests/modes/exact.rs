// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests mode exact through the command.
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use libbpf_rs::{Xdp, XdpFlags};
use nix::sys::signal::Signal;
use serde_json::Value;
use weir_linux::exact::{Exact, InterfaceName, Options};
use weir_linux::sched::{self, SchedPolicy};
use weir_linux::threads::{Work, which};
use weir_linux::urgency::Urgency;

use super::machine::{PATIENCE, printed, signal, until};
use super::{changed, deliver, listed, machine, plan, receiver, socket};
use crate::ground::{Ground, Offload};

/// Number of the XDP program on the receivers' interface, or 0 if there is none.
pub fn program_of(ground: &Ground) -> u32 {
    let name = std::ffi::CString::new(ground.receiver.interface.clone()).unwrap();
    ground.receiver.run(move || {
        // SAFETY: the name is a string that ends with 0.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) } as i32;
        let null = std::fs::File::open("/dev/null").unwrap();
        Xdp::new(null.as_fd())
            .query_id(index, XdpFlags::NONE)
            .unwrap_or(0)
    })
}

/// Packets that were given to the class of this urgency.
pub fn given(status: &Value, urgency: u8) -> u64 {
    let classes = status["exact"]["classes"].as_array().unwrap();
    let class = classes.iter().find(|class| class["urgency"] == urgency);
    class.map_or(0, |class| class["given"].as_u64().unwrap())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn each_receiver_gets_its_packets_through_its_class_and_nobody_loses_any() {
    let Some(machine) = machine("mode = \"exact\"") else {
        return;
    };
    let ground = &machine.ground;
    let before = machine.settings();
    let plan = plan(&machine);
    assert_eq!(machine.settings(), before);
    assert_eq!(program_of(ground), 0);
    assert_eq!(plan["attached"][0]["interface"], ground.receiver.interface);
    assert_eq!(plan["attached"][0]["driver"], "veth");
    assert_eq!(plan["attached"][0]["classes"], serde_json::json!([0, 2, 3]));

    // There are three sockets. One exists before the run, one is opened later, and one has an
    // urgency that the system file does not name.
    let of_the_file = socket(ground, 9);
    let run = machine.run();
    assert_ne!(program_of(ground), 0);
    let policy = "SCHED_DEADLINE, 500µs of every 10ms within 10ms";
    let changed = changed(&machine, &before, &machine.settings(), policy);
    assert_eq!(listed(&plan), changed);
    // The process comes first, since a forked process has copies of all sockets that exist.
    let _urgent = receiver(&machine, 4501, 50);
    let ordinary = socket(ground, 4500);
    until("all three are known", || {
        let exact = &machine.run_status()["exact"];
        let classes = exact["classes"].as_array().unwrap();
        exact["sockets"] == 3 && classes.iter().any(|class| class["urgency"] == 50)
    });
    let first = machine.run_status();
    assert_eq!(deliver(ground, &of_the_file, 200), 200);
    assert_eq!(deliver(ground, &ordinary, 100), 100);
    let to = (ground.receiver.v4, 4501);
    ground.sender.run(move || {
        let socket = std::net::UdpSocket::bind(super::any(0)).unwrap();
        for _ in 0..50 {
            socket.send_to(b"weir", to).unwrap();
        }
    });
    until("each class was given its own", || {
        let now = machine.run_status();
        let more = |urgency| given(&now, urgency) - given(&first, urgency);
        (more(0), more(2), more(50)) == (100, 200, 50)
    });
    // The threads of a class have the urgency of its receivers, and the status shows that for each
    // CPU.
    let status = machine.run_status();
    for class in status["exact"]["classes"].as_array().unwrap() {
        let threads = class["threads"].as_array().unwrap();
        assert_eq!(
            threads.len(),
            std::thread::available_parallelism().unwrap().get()
        );
        for thread in threads {
            let of_it = serde_json::from_value(thread["policy"].clone()).unwrap();
            let urgency = class["urgency"].as_u64().unwrap() as u8;
            assert_eq!(Urgency::new(urgency).unwrap().policy(), of_it, "{class}");
        }
    }
    let shown = machine.weir("status").output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    println!("{shown}");
    let row = |line: &&str| line.split_whitespace().next() == Some("50");
    let row: Vec<&str> = shown
        .lines()
        .find(row)
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!((row[1], row[2]), ("50", "0"), "{shown}");
    assert!(row.ends_with(&["SCHED_FIFO", "50"]), "{shown}");
    let threads = which(|work| matches!(work, Work::CpuMap { .. })).unwrap();
    let of = |policy| {
        let policies = threads.iter().map(|thread| sched::get(thread.thread.tid));
        policies
            .filter(|found| matches!(found, Ok(found) if *found == policy))
            .count()
    };
    assert!(of(SchedPolicy::Fifo(50)) > 0 && of(SchedPolicy::Fifo(2)) > 0);

    machine.end(run, Signal::SIGINT, &before);
    assert_eq!(program_of(ground), 0);
    assert_eq!(deliver(ground, &of_the_file, 20), 20);
}

/// Real-time processes may leave Weir itself no time while others bind sockets.
#[test]
fn a_port_of_the_file_has_its_class_before_its_reader_is_known() {
    let Some(machine) = machine("mode = \"exact\"") else {
        return;
    };
    let ground = &machine.ground;
    let before = machine.settings();
    let run = machine.run();
    let first = machine.run_status();
    signal(&run, Signal::SIGSTOP);
    let of_the_file = socket(ground, 9);
    let arrived = deliver(ground, &of_the_file, 60);
    signal(&run, Signal::SIGCONT);
    assert_eq!(arrived, 60);
    until("all were given to the class", || {
        given(&machine.run_status(), 2) == given(&first, 2) + 60
    });
    machine.end(run, Signal::SIGINT, &before);
}

#[test]
fn nothing_is_attached_that_nobody_has_agreed_to() {
    let Some(mut machine) = machine("mode = \"exact\"") else {
        return;
    };
    machine.arguments.clear();
    let before = machine.settings();
    let output = machine.weir("run").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = printed(&output);
    assert!(
        text.contains("attaches an XDP program to") && text.contains("add --yes-xdp"),
        "{text}"
    );
    assert_eq!(
        (machine.settings(), program_of(&machine.ground)),
        (before, 0)
    );
    assert!(!machine.state().exists());
}

#[test]
fn another_program_is_named_and_stays() {
    let Some(machine) = machine("mode = \"exact\"") else {
        return;
    };
    let other = Exact::attach(
        InterfaceName {
            name: machine.ground.receiver.interface.clone(),
            namespace: Some(machine.ground.receiver.path()),
        },
        &[Urgency::ORDINARY],
        &Options::default(),
    )
    .unwrap();
    let there = program_of(&machine.ground);
    for command in ["plan", "run"] {
        let output = machine.weir(command).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let text = printed(&output);
        let wanted = format!("the XDP program `weir_demux` (number {there}) is attached to");
        assert!(text.contains(&wanted), "{text}");
    }
    assert_eq!(program_of(&machine.ground), there);
    drop(other);
    machine.write("lo");
    let text = std::fs::read_to_string(machine.file()).unwrap();
    std::fs::write(machine.file(), format!("{text}[linux]\nmode = \"exact\"\n")).unwrap();
    let output = machine.weir("plan").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = printed(&output);
    // Before Linux 6.3 the driver's support is known only after attaching.
    assert!(
        text.contains("the interface `lo` has no native XDP") || !tells_features(),
        "{text}"
    );
}

/// Number of bytes that are sent over a connection.
const BYTES: usize = 4 << 20;

#[test]
fn a_veth_that_leaves_checksums_out_is_refused_and_tcp_passes_one_that_does_not() {
    let Some(machine) = machine("mode = \"exact\"") else {
        return;
    };
    let ground = &machine.ground;
    ground.sender.offload(Offload::SendChecksums, true);
    for command in ["plan", "run"] {
        let output = machine.weir(command).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let text = printed(&output);
        let (peer, name) = (&ground.sender.interface, &ground.receiver.interface);
        let wanted =
            format!("`{peer}`, the other end of the interface `{name}`, leaves out the checksums");
        assert!(text.contains(&wanted), "{text}");
        assert!(
            text.contains(&format!("`ethtool -K {peer} tx off`")),
            "{text}"
        );
    }
    assert!(!machine.state().exists());
    ground.sender.offload(Offload::SendChecksums, false);
    let before = machine.settings();
    let run = machine.run();
    let address = (ground.receiver.v4, 4620);
    let listener = ground
        .receiver
        .run(move || TcpListener::bind(address).unwrap());
    until("it is known", || {
        number(&machine.run_status()["exact"]["sockets"]) == 1
    });
    let receiving = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut all = Vec::new();
        connection.read_to_end(&mut all).unwrap();
        connection.write_all(b"thanks").unwrap();
        all
    });
    let mut connection = ground
        .sender
        .run(move || TcpStream::connect(address).unwrap());
    connection.set_write_timeout(Some(PATIENCE)).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    let bytes: Vec<u8> = (0..BYTES).map(|number| (number % 251) as u8).collect();
    connection.write_all(&bytes).unwrap();
    connection.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "thanks");
    assert!(receiving.join().unwrap() == bytes);
    // The packets came through the class of their receiver.
    until("the packets are counted", || {
        given(&machine.run_status(), 0) > BYTES as u64 / 65_536
    });
    machine.end(run, Signal::SIGTERM, &before);
}

fn tells_features() -> bool {
    let version = procfs::sys::kernel::Version::current().unwrap();
    (version.major, version.minor) >= (6, 3)
}

#[test]
fn priorities_that_change_under_a_flood_lose_no_packet() {
    let Some(machine) = machine("mode = \"exact\"") else {
        return;
    };
    let before = machine.settings();
    let run = machine.run();
    let ground = &machine.ground;
    let socket = socket(ground, 4510);
    until("it is known", || {
        number(&machine.run_status()["exact"]["sockets"]) == 1
    });
    const PRIORITIES: [u8; 5] = [4, 0, 30, 5, 2];
    const CHANGES: u32 = 20;
    let without_class = &Mutex::new(PRIORITIES.to_vec());
    let changes = &AtomicU32::new(0);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for priority in PRIORITIES.into_iter().cycle() {
                let urgency = Urgency::new(priority).unwrap();
                sched::set(0, urgency.policy()).unwrap();
                changes.fetch_add(1, Ordering::Relaxed);
                // The socket has no class until a scan finds it. Scans are two seconds apart.
                let is_new = without_class.lock().unwrap().contains(&priority);
                let wait = std::time::Duration::from_millis(if is_new { 2500 } else { 300 });
                if stopped.recv_timeout(wait) != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                    break;
                }
            }
        });
        // The thread ends when this is dropped, even if the test fails.
        let _stop = stop;
        until("each of its urgencies has had a class", || {
            assert_eq!(deliver(ground, &socket, 4_000), 4_000);
            let status = machine.run_status();
            let classes = status["exact"]["classes"].as_array().unwrap();
            let has_class = |urgency| classes.iter().any(|class| class["urgency"] == urgency);
            let mut without_class = without_class.lock().unwrap();
            without_class.retain(|urgency| !has_class(*urgency));
            without_class.is_empty() && changes.load(Ordering::Relaxed) >= CHANGES
        });
    });
    machine.end(run, Signal::SIGTERM, &before);
}
