// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests mode exact on an interface. All packets that are sent are received, whether through the
//! thread of a class or not. No other program is replaced, and nothing is left behind.
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::{Duration, Instant};

use libbpf_rs::{Xdp, XdpFlags};
use weir_core_sys::demux::SocketKey;
use weir_linux::exact::{
    DemuxReason, Exact, ExactError, InterfaceName, Options, Placement, TransportPort,
};
use weir_linux::sched::{self, SchedPolicy};
use weir_linux::urgency::Urgency;

use crate::ground;

use ground::{Ground, Need, Offload};

const ALL: &[Need] = &[Need::Bpf, Need::Namespaces, Need::RealTime];

fn urgency(number: u8) -> Urgency {
    Urgency::new(number).unwrap()
}

fn interface(ground: &Ground) -> InterfaceName {
    InterfaceName {
        name: ground.receiver.interface.clone(),
        namespace: Some(ground.receiver.path()),
    }
}

const ATTEMPT: Duration = Duration::from_secs(30);

/// Sends `count` datagrams from one end of the veth pair to `port` of the other end, and counts
/// those that arrive.
fn datagrams(ground: &Ground, to: IpAddr, port: u16, count: usize) -> usize {
    let receiver = ground
        .receiver
        .run(move || UdpSocket::bind((to, port)).unwrap());
    receiver
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    let any: IpAddr = if to.is_ipv4() {
        [0; 4].into()
    } else {
        [0_u16; 8].into()
    };
    let sender = ground
        .sender
        .run(move || UdpSocket::bind((any, 0)).unwrap());
    let mut buffer = [0; 64];
    let mut arrived = 0;
    // The bursts are small enough for the shortest queue.
    for burst in (0..count).step_by(20) {
        let burst = 20.min(count - burst);
        for _ in 0..burst {
            sender.send_to(b"weir", SocketAddr::new(to, port)).unwrap();
        }
        arrived += (0..burst)
            .take_while(|_| receiver.recv(&mut buffer).is_ok())
            .count();
    }
    arrived
}

/// Sends `size` bytes through a connection to `port`, and counts those that arrive.
fn stream(ground: &Ground, to: IpAddr, port: u16, size: usize) -> usize {
    let listener = ground
        .receiver
        .run(move || TcpListener::bind((to, port)).unwrap());
    let receiving = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        connection.set_read_timeout(Some(ATTEMPT)).unwrap();
        let mut bytes = Vec::new();
        connection.read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
    ground.sender.run(move || {
        let mut connection =
            TcpStream::connect_timeout(&SocketAddr::new(to, port), ATTEMPT).unwrap();
        connection.set_write_timeout(Some(ATTEMPT)).unwrap();
        connection.write_all(&vec![7; size]).unwrap();
    });
    receiving.join().unwrap()
}

#[test]
fn each_packet_arrives_through_the_thread_of_its_class() {
    let Some(ground) = ground::begin(ALL) else {
        return;
    };
    ground.sender.offload(Offload::SendChecksums, false);
    let classes = [urgency(0), urgency(10), urgency(20)];
    let mut exact = Exact::attach(interface(&ground), &classes, &Options::default()).unwrap();
    let threads = exact.threads().unwrap();
    assert_eq!(threads.iter().map(|thread| thread.class).max(), Some(2));
    for thread in &threads {
        let policy = sched::get(thread.thread.tid).unwrap();
        assert_eq!(
            policy,
            classes[usize::from(thread.class)].policy(),
            "{thread:?}"
        );
    }
    let table = exact.table();
    for (key, reader, class) in [
        (SocketKey::udp(5_001), 1, 1),
        (SocketKey::udp(5_002), 2, 2),
        (SocketKey::tcp(5_001), 1, 1),
        (SocketKey::tcp(5_002), 2, 2),
        // Packets for this port must not be redirected, although the port is bound.
        (SocketKey::udp(319), 2, 2),
        (SocketKey::ethertype(0x0806), 2, 2),
    ] {
        table.bind(key, reader, class).unwrap();
    }
    table.publish().unwrap();
    let ends: [IpAddr; 2] = [ground.receiver.v4.into(), ground.receiver.v6.into()];
    for to in ends {
        let mut before = exact.counters().total();
        for (port, class) in [
            (5_001, Some(1)),
            (5_002, Some(2)),
            (5_003, None),
            (319, None),
        ] {
            assert_eq!(
                datagrams(&ground, to, port, 200),
                200,
                "UDP to {to}, port {port}"
            );
            let after = exact.counters().total();
            for other in 0..3 {
                let given = after.classes[other].given - before.classes[other].given;
                assert_eq!(
                    given,
                    if class == Some(other) { 200 } else { 0 },
                    "{to}, port {port}: class {other}"
                );
            }
            before = after;
        }
        for port in [5_001, 5_002, 5_003] {
            assert_eq!(
                stream(&ground, to, port, 300_000),
                300_000,
                "TCP to {to}, port {port}"
            );
        }
    }
    let total = exact.counters().total();
    assert_eq!(total.left(DemuxReason::Ptp), 400);
    assert!(total.left(DemuxReason::NoReceiver) > 400);
    assert!(total.left(DemuxReason::Arp) > 0);
    assert_eq!(total.left(DemuxReason::NoThread), 0);
    assert_eq!(total.classes.map(|class| class.dropped), [0; 8]);
    let port = |protocol, port| exact.counters().port(TransportPort { protocol, port });
    assert_eq!(
        (port(17, 5_001), port(17, 5_003), port(17, 319)),
        (400, 0, 0)
    );
    assert_eq!(port(6, 5_001) + 400, total.classes[1].given);
}

#[test]
fn a_class_runs_where_and_as_urgently_as_it_is_told() {
    let Some(ground) = ground::begin(ALL) else {
        return;
    };
    ground.sender.offload(Offload::SendChecksums, false);
    let options = Options {
        placement: Placement::Fixed(vec![0, 0]),
        ..Options::default()
    };
    let mut exact = Exact::attach(interface(&ground), &[urgency(0), urgency(5)], &options).unwrap();
    let threads = exact.threads().unwrap();
    let places: Vec<_> = threads
        .iter()
        .map(|thread| (thread.class, thread.cpu))
        .collect();
    assert_eq!(places, [(0, 0), (1, 0)]);
    exact.set_urgency(1, urgency(7)).unwrap();
    assert_eq!(
        sched::get(threads[1].thread.tid).unwrap(),
        SchedPolicy::Fifo(7)
    );
    exact.table().bind(SocketKey::udp(5_001), 1, 1).unwrap();
    exact.table().publish().unwrap();
    assert_eq!(
        datagrams(&ground, ground.receiver.v4.into(), 5_001, 100),
        100
    );
    assert_eq!(exact.counters().total().classes[1].given, 100);
    // Without the program all packets arrive as before, and the threads of the classes end.
    drop(exact);
    assert_eq!(
        datagrams(&ground, ground.receiver.v4.into(), 5_001, 100),
        100
    );
    for thread in threads {
        wait_until("the thread ends", || !thread.thread.exists().unwrap());
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < ATTEMPT, "{what}: not within {ATTEMPT:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Number of the XDP program on the receiver's interface, or 0 if there is none.
fn program_of(ground: &Ground) -> u32 {
    let name = ground.receiver.interface.clone();
    ground.receiver.run(move || {
        let index = index_of(&name);
        let null = std::fs::File::open("/dev/null").unwrap();
        Xdp::new(null.as_fd())
            .query_id(index, XdpFlags::NONE)
            .unwrap()
    })
}

fn index_of(name: &str) -> i32 {
    let name = std::ffi::CString::new(name).unwrap();
    // SAFETY: the name is a string that ends with 0.
    unsafe { libc::if_nametoindex(name.as_ptr()) as i32 }
}

#[test]
fn replaces_no_program_and_names_it() {
    let Some(ground) = ground::begin(ALL) else {
        return;
    };
    let classes = [urgency(0)];
    let first = Exact::attach(interface(&ground), &classes, &Options::default()).unwrap();
    let there = program_of(&ground);
    assert_ne!(there, 0);
    for generic in [false, true] {
        let options = Options {
            generic,
            ..Options::default()
        };
        let refused = Exact::attach(interface(&ground), &classes, &options).unwrap_err();
        assert!(
            matches!(&refused, ExactError::Occupied { name, number, .. } if name == "weir_demux" && *number == there),
            "{refused}"
        );
        assert_eq!(program_of(&ground), there);
    }
    drop(first);
    assert_eq!(program_of(&ground), 0);
    // This program is attached by the older interface, so it stays when its process ends.
    let other = Exact::load(&classes, &Options::default()).unwrap();
    let descriptor = other.program().unwrap();
    let name = ground.receiver.interface.clone();
    ground.receiver.run(move || {
        Xdp::new(descriptor.as_fd())
            .attach(index_of(&name), XdpFlags::DRV_MODE)
            .unwrap()
    });
    let there = program_of(&ground);
    assert_ne!(there, 0);
    let refused = Exact::attach(interface(&ground), &classes, &Options::default()).unwrap_err();
    assert!(
        matches!(refused, ExactError::Occupied { number, .. } if number == there),
        "{refused}"
    );
    assert_eq!(program_of(&ground), there);
}

#[test]
fn says_what_an_interface_is_missing() {
    let Some(ground) = ground::begin(ALL) else {
        return;
    };
    let attach = |name: &str, options: &Options| {
        let interface = InterfaceName {
            name: name.to_owned(),
            ..interface(&ground)
        };
        Exact::attach(interface, &[urgency(0)], options)
    };
    let native = Options::default();
    assert!(matches!(
        attach("lo", &native).unwrap_err(),
        ExactError::NotNative(_)
    ));
    attach(
        "lo",
        &Options {
            generic: true,
            ..native.clone()
        },
    )
    .unwrap();
    assert!(matches!(
        attach("none", &native).unwrap_err(),
        ExactError::NoInterface(_)
    ));
    assert!(matches!(
        attach("a\0b", &native).unwrap_err(),
        ExactError::NoInterface(_)
    ));
    let nowhere = InterfaceName {
        namespace: Some("/proc/none".into()),
        ..interface(&ground)
    };
    let refused = Exact::attach(nowhere, &[urgency(0)], &native).unwrap_err();
    assert!(matches!(refused, ExactError::Namespace { .. }), "{refused}");
}

#[test]
fn tells_that_an_interface_has_vanished() {
    let Some(ground) = ground::begin(ALL) else {
        return;
    };
    let mut exact = Exact::attach(interface(&ground), &[urgency(0)], &Options::default()).unwrap();
    assert_eq!(exact.settle().unwrap(), []);
    ground
        .receiver
        .ip(&format!("link delete {}", ground.receiver.interface));
    assert_eq!(exact.settle().unwrap(), [interface(&ground)]);
    assert_eq!(exact.interfaces().count(), 0);
    assert_eq!(exact.settle().unwrap(), []);
    // Mode exact goes on without the interface, so its table can still be changed.
    exact.table().bind(SocketKey::udp(1), 1, 0).unwrap();
    exact.table().publish().unwrap();
}

/// If this variable is set, the test program attaches the XDP program, and is then killed.
const CHILD: &str = "WEIR_TEST_ATTACH";

#[test]
fn a_killed_process_leaves_no_program() {
    if let Ok(name) = std::env::var(CHILD) {
        let exact = Exact::attach(
            name.as_str(),
            &[urgency(0), urgency(3)],
            &Options::default(),
        )
        .unwrap();
        let threads = exact.threads().unwrap();
        println!(
            "attached {}",
            threads
                .iter()
                .map(|thread| thread.thread.tid.to_string())
                .collect::<Vec<_>>()
                .join(",")
        );
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let Some(ground) = ground::begin(ALL) else {
        return;
    };
    let mut command = ground.receiver.command(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "exact_delivery::a_killed_process_leaves_no_program",
        "--nocapture",
    ]);
    let mut child = command
        .env(CHILD, &ground.receiver.interface)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut output = child.stdout.take().unwrap();
    let threads: Vec<String> = loop {
        let mut byte = [0];
        assert_eq!(output.read(&mut byte).unwrap(), 1, "it ends: {said}");
        said.push(char::from(byte[0]));
        if let Some((_, rest)) = said.split_once("attached ") {
            if let Some(threads) = rest.strip_suffix('\n') {
                break threads.split(',').map(str::to_owned).collect();
            }
        }
    };
    assert_ne!(program_of(&ground), 0);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the program is gone", || program_of(&ground) == 0);
    assert!(threads.len() >= 2, "{threads:?}");
    for tid in threads {
        wait_until("its thread ends", || {
            !std::path::Path::new("/proc").join(&tid).exists()
        });
    }
}
