// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests what the XDP program of mode exact does with frames, without an interface (BPF_PROG_RUN).
//! The results are compared with core's parser and table in this process.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libbpf_rs::libbpf_sys;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use weir_core_sys::demux::{DemuxError, DemuxReceiver, Outcome, Reason as Wrong, SocketKey, parse};
use weir_linux::exact::{
    Bindings, Counts, DemuxReason, Exact, ExactError, Options, Placement, Table, TableError,
    Verdict,
};
use weir_linux::receivers::Family;
use weir_linux::urgency::Urgency;

#[path = "../../core-sys/tests/frames/mod.rs"]
mod frames;
use crate::ground;

use frames::frames;
use ground::Need;

/// Loads mode exact with `classes` classes and no interface. `None` if the machine does not allow
/// that.
fn load(classes: u8) -> Option<Exact> {
    load_with(classes, &[Need::Bpf, Need::Namespaces, Need::RealTime])
}

/// Loads mode exact for a test that needs more than the BPF programs.
fn load_with(classes: u8, needs: &[Need]) -> Option<Exact> {
    ground::begin(needs)?;
    let ordinary = vec![Urgency::ORDINARY; usize::from(classes)];
    Some(Exact::load(&ordinary, &Options::default()).expect("mode exact loads"))
}

/// Length up to which a frame lies in one buffer when the kernel runs the program on it: a page
/// less the head room and the tail.
const ONE_BUFFER: usize = 3_000;
const SEVERAL_BUFFERS: usize = 4_096;

/// What the program must do with a frame: give it to this class, or leave it for this reason.
fn expected(table: &Table, frame: &[u8]) -> Result<u8, DemuxReason> {
    if frame.len() >= SEVERAL_BUFFERS {
        return Err(DemuxReason::MultiBuffer);
    }
    let packet = parse(frame);
    match packet.outcome() {
        Err(Wrong::Truncated) => return Err(DemuxReason::Truncated),
        Err(Wrong::Malformed) => return Err(DemuxReason::Malformed),
        Err(Wrong::TooDeep) => return Err(DemuxReason::TooDeep),
        Ok(Outcome::FirstFragment(_) | Outcome::LaterFragment(_)) => {
            return Err(DemuxReason::Fragment);
        }
        Ok(Outcome::Port {
            protocol: 17,
            port: 319 | 320,
        }) => return Err(DemuxReason::Ptp),
        Ok(Outcome::NotIp) if packet.ethertype() == Some(0x88f7) => return Err(DemuxReason::Ptp),
        Ok(Outcome::NotIp) if packet.ethertype() == Some(0x0806) => return Err(DemuxReason::Arp),
        Ok(_) => {}
    }
    let found = table.classify(&packet);
    match (found.receiver, found.class) {
        (DemuxReceiver::Bound(_), Some(class)) => Ok(class),
        _ => Err(DemuxReason::NoReceiver),
    }
}

/// The results that have been counted since `before`.
fn counted(before: &Counts, after: &Counts) -> Vec<Result<u8, DemuxReason>> {
    let given = (0..).zip(before.classes.iter().zip(&after.classes));
    let given = given.flat_map(|(class, (before, after))| {
        vec![Ok(class); (after.given - before.given) as usize]
    });
    let left = DemuxReason::ALL.into_iter();
    let left = left
        .flat_map(|reason| vec![Err(reason); (after.left(reason) - before.left(reason)) as usize]);
    given.chain(left).collect()
}

/// Runs the program on a frame. Checks that its result and its counters are as expected.
fn agrees(exact: &mut Exact, frame: &[u8]) -> Result<Result<u8, DemuxReason>, TestCaseError> {
    let expected = expected(exact.table(), frame);
    let before = exact.counters().total();
    let (verdict, _) = exact.try_frame(frame, 1).expect("the kernel tries it");
    let done = counted(&before, &exact.counters().total());
    prop_assert_eq!(
        &done,
        &vec![expected],
        "{:02x?}",
        &frame[..frame.len().min(200)]
    );
    let given = if expected.is_ok() {
        Verdict::Given
    } else {
        Verdict::Left
    };
    prop_assert_eq!(verdict, given);
    Ok(expected)
}

const CLASSES: u8 = 8;

/// Ports to bind: some adjacent, some anywhere, and those of clocks.
fn ports() -> Vec<u16> {
    (0..300_u16)
        .map(|n| {
            if n < 100 {
                5_000 + n
            } else {
                n.wrapping_mul(40_503)
            }
        })
        .chain([319, 320])
        .collect()
}

fn bind_all(table: &mut Table) {
    for (reader, port) in (0..).zip(ports()) {
        let class = (reader % u16::from(CLASSES)) as u8;
        let key = if reader % 3 == 0 {
            SocketKey::tcp(port)
        } else {
            SocketKey::udp(port)
        };
        table.bind(key, reader, class).unwrap();
    }
    for (reader, key) in (1_000..).zip([
        SocketKey::protocol(1),
        SocketKey::protocol(132),
        SocketKey::ethertype(0x88a4),
        SocketKey::ethertype(0x0806),
        SocketKey::ethertype(0x88f7),
        SocketKey::pcp(5),
        SocketKey::pcp(7),
    ]) {
        table
            .bind(key, reader, (reader % u16::from(CLASSES)) as u8)
            .unwrap();
    }
    table.publish().unwrap();
}

#[test]
fn does_with_any_frame_what_the_core_says() {
    let Some(mut exact) = load(CLASSES) else {
        return;
    };
    bind_all(exact.table());
    let ports = ports();
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(4_000)
    });
    let seen = RefCell::new(BTreeMap::new());
    let exact = RefCell::new(exact);
    let choice = (frames(), any::<prop::sample::Index>(), any::<bool>());
    let spoilt = (
        any::<prop::sample::Index>(),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    );
    let random = prop::collection::vec(any::<u8>(), 14..200);
    let jumbo =
        prop_oneof![9 => Just(0_usize), 1 => 100..ONE_BUFFER - 700, 1 => SEVERAL_BUFFERS..9_000];
    let strategy = (choice, spoilt, random, jumbo);
    let outcome = runner.run(
        &strategy,
        |((mut frame, port, is_bound), (end, spoilt), random, jumbo)| {
            if is_bound {
                frame.port = *port.get(&ports);
            }
            let (bytes, _) = frame.bytes();
            let mut tried = vec![bytes.clone(), random];
            // The frame may be cut off anywhere. The kernel itself refuses frames that are shorter
            // than an Ethernet header.
            tried.push(bytes[..14.max(end.index(bytes.len() + 1))].to_vec());
            // A few bytes are changed, most of them in the headers.
            let mut wrong = bytes.clone();
            for (at, byte) in spoilt {
                *at.get_mut(&mut wrong) = byte;
            }
            tried.push(wrong);
            // The frame is made longer, and may then need several buffers.
            let mut long = bytes;
            long.resize(long.len() + jumbo, 0);
            tried.push(long);
            for frame in tried {
                let done = agrees(&mut exact.borrow_mut(), &frame)?;
                *seen.borrow_mut().entry(format!("{done:?}")).or_insert(0) += 1;
            }
            Ok(())
        },
    );
    outcome.unwrap();
    let (mut exact, mut seen) = (exact.into_inner(), seen.into_inner());
    let deep = frame(
        frames::Network::V6(vec![frames::Extension::Options(60, 0); 7]),
        5_000,
    );
    let done = agrees(&mut exact, &deep).unwrap();
    seen.insert(format!("{done:?}"), 1);
    // Every reason has occurred, except for the missing thread of a class.
    for reason in &DemuxReason::ALL[..8] {
        assert!(
            seen.contains_key(&format!("Err({reason:?})")),
            "{reason}: {seen:?}"
        );
    }
    for class in 0..CLASSES {
        assert!(
            seen.contains_key(&format!("Ok({class})")),
            "class {class}: {seen:?}"
        );
    }
}

/// A UDP packet.
fn frame(network: frames::Network, port: u16) -> Vec<u8> {
    let (tags, payload) = (Vec::new(), vec![0; 64]);
    let frame = frames::Frame {
        tags,
        network,
        protocol: 17,
        port,
        payload,
        padding: 0,
    };
    frame.bytes().0
}

/// A UDP packet over IPv4.
fn udp(port: u16) -> Vec<u8> {
    frame(
        frames::Network::V4 {
            options: 0,
            offset: 0,
            more: false,
            is_authenticated: false,
        },
        port,
    )
}

#[test]
fn sockets_come_and_go_by_the_thousand() {
    let Some(mut exact) = load(2) else { return };
    let begin = Instant::now();
    let mut publishing = Duration::ZERO;
    for round in 0..10_000_u16 {
        let table = exact.table();
        table
            .bind(SocketKey::udp(round), round, (round % 2) as u8)
            .unwrap();
        if round >= 1_000 {
            table
                .unbind(SocketKey::udp(round - 1_000), round - 1_000)
                .unwrap();
        }
        if round % 500 == 499 {
            let begin = Instant::now();
            exact.table().publish().unwrap();
            publishing += begin.elapsed();
            for (port, is_bound) in [
                (round, true),
                (round.saturating_sub(999), true),
                (round.wrapping_sub(1_000), false),
            ] {
                let done = agrees(&mut exact, &udp(port)).unwrap();
                assert_eq!(
                    done.is_ok(),
                    is_bound || done == Err(DemuxReason::Ptp),
                    "port {port} after {round}"
                );
            }
        }
    }
    let changing = (begin.elapsed() - publishing) / 19_000;
    println!(
        "a socket bound or unbound: {changing:?}; published: {:?}",
        publishing / 20
    );
    assert!(
        begin.elapsed() < Duration::from_secs(60),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn a_change_is_seen_whole_or_not_at_all() {
    let Some(mut exact) = load(2) else { return };
    exact.table().bind(SocketKey::udp(5_000), 1, 1).unwrap();
    exact.table().publish().unwrap();
    // Another thread runs the program while this thread changes the table. The socket that stays
    // bound must be found each time.
    let frame = udp(5_000);
    let (done, lost) = (AtomicBool::new(false), AtomicBool::new(false));
    let looking = exact.program().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let (action, _) = run(looking.as_fd(), &frame, 100);
                lost.fetch_or(action != libbpf_sys::XDP_REDIRECT, Ordering::Relaxed);
            }
        });
        for round in 0..100_u16 {
            // There are so many that some entries are moved to make room for others.
            for port in 0..100 {
                exact
                    .table()
                    .bind(SocketKey::udp(10_000 + round * 100 + port), 2, 0)
                    .unwrap();
            }
            exact.table().publish().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(!lost.load(Ordering::Relaxed));
    let total = exact.counters().total();
    assert_eq!(
        total.classes[1].given,
        total.seen(),
        "each was found: {total:?}"
    );
}

#[test]
fn a_full_table_says_so_and_still_works() {
    let Some(mut exact) = load(1) else { return };
    let full = (0..=u16::MAX).find_map(|port| {
        exact
            .table()
            .bind(SocketKey::tcp(port), 1, 0)
            .err()
            .map(|error| (port, error))
    });
    let (refused, error) = full.expect("it is smaller than all ports");
    assert!(refused >= 8_192, "{refused}");
    assert!(
        matches!(error, TableError::Demux(DemuxError::NoSlot)),
        "{error}"
    );
    exact.table().publish().unwrap();
    for (port, done) in [
        (refused - 1, Ok(0)),
        (refused, Err(DemuxReason::NoReceiver)),
    ] {
        let mut frame = udp(port);
        frame[14 + 9] = 6;
        assert_eq!(agrees(&mut exact, &frame).unwrap(), done);
    }
}

/// One process binds tens of thousands of ports, both before and after the others.
#[test]
fn however_many_ports_somebody_binds_the_more_urgent_have_room() {
    let Some(mut exact) = load(2) else { return };
    let classes = [Urgency::ORDINARY, Urgency::new(50).unwrap()];
    let mut bindings = Bindings::default();
    let ordinary = |port| ((Family::V4, SocketKey::udp(port)), Some(classes[0]));
    let urgent = |port| ((Family::V4, SocketKey::udp(port)), Some(classes[1]));
    let hoard = (20_000..60_000).map(ordinary).collect();
    bindings.update(exact.table(), &classes, &hoard).unwrap();
    assert!(bindings.waiting() > 20_000);
    let begin = Instant::now();
    for port in 4_000..4_400 {
        let one = [urgent(port)].into();
        bindings.update(exact.table(), &classes, &one).unwrap();
    }
    println!("400 urgent ones: {:?}", begin.elapsed());
    assert!(begin.elapsed() < Duration::from_secs(20));
    // A key becomes urgent while it has no room in the table.
    let late = (20_000..60_000).rev().map(urgent).take(1).collect();
    bindings.update(exact.table(), &classes, &late).unwrap();
    assert_eq!(bindings.len() + bindings.waiting(), 40_400);
    // Making room for a few keys unbinds at most a small multiple of them.
    assert!(bindings.len() > 10_000, "{}", bindings.len());
    // Equally urgent keys displace no other key.
    let more = (60_000..60_100).map(ordinary).collect();
    let before = bindings.len();
    bindings.update(exact.table(), &classes, &more).unwrap();
    assert!(bindings.len() >= before);
    exact.table().publish().unwrap();
    for port in (4_000..4_400).chain([59_999]) {
        assert_eq!(agrees(&mut exact, &udp(port)).unwrap(), Ok(1), "{port}");
    }
    let gone = (20_000..60_100).map(|port| ((Family::V4, SocketKey::udp(port)), None));
    bindings
        .update(exact.table(), &classes, &gone.collect())
        .unwrap();
    assert_eq!((bindings.len(), bindings.waiting()), (400, 0));
}

/// Each version of IP has a table of its own. Filling one table takes no room from the other.
#[test]
fn however_many_ports_somebody_binds_by_one_family_the_other_has_its_room() {
    let Some(mut exact) = load(2) else { return };
    let classes = [Urgency::ORDINARY, Urgency::new(50).unwrap()];
    for (full, other) in [(Family::V6, Family::V4), (Family::V4, Family::V6)] {
        let mut bindings = Bindings::default();
        let of = |family, ports: std::ops::Range<u16>, urgency| {
            ports.map(move |port| ((family, SocketKey::udp(port)), urgency))
        };
        let mut update = |wanted| {
            bindings.update(exact.table(), &classes, &wanted).unwrap();
            bindings.len()
        };
        let [ordinary, urgent] = classes.map(Some);
        assert_eq!(update(of(other, 1_000..2_000, ordinary).collect()), 1_000);
        let all = update(of(full, 20_000..60_000, ordinary).collect());
        // An urgent key displaces some hundred keys of its own table at most.
        let left = update(of(full, 4_000..4_001, urgent).collect());
        assert!(left + 999 > all, "{all}, {left}");
        // One table is full of keys of the highest urgency. Less urgent keys still find room in the
        // other table.
        update(of(full, 20_000..60_000, urgent).collect());
        let all = update(of(full, 60_000..60_100, urgent).collect());
        assert_eq!(
            update(of(other, 2_000..3_000, ordinary).collect()),
            all + 1_000
        );
        for family in Family::ALL {
            update(of(family, 1_000..61_000, None).collect());
        }
    }
}

#[test]
fn a_port_by_one_family_is_not_that_by_the_other() {
    let Some(mut exact) = load(2) else { return };
    let v6 = || frame(frames::Network::V6(Vec::new()), 5_000);
    exact
        .table()
        .bind_in(Family::V4, SocketKey::udp(5_000), 1, 1)
        .unwrap();
    exact.table().publish().unwrap();
    assert_eq!(agrees(&mut exact, &udp(5_000)).unwrap(), Ok(1));
    assert_eq!(
        agrees(&mut exact, &v6()).unwrap(),
        Err(DemuxReason::NoReceiver)
    );
    exact
        .table()
        .bind_in(Family::V6, SocketKey::udp(5_000), 2, 0)
        .unwrap();
    exact.table().publish().unwrap();
    assert_eq!(agrees(&mut exact, &udp(5_000)).unwrap(), Ok(1));
    assert_eq!(agrees(&mut exact, &v6()).unwrap(), Ok(0));
}

#[test]
fn refuses_what_cannot_be() {
    let Some(mut exact) = load(2) else { return };
    let table = exact.table();
    assert!(matches!(
        table.bind(SocketKey::udp(1), 1, 2),
        Err(TableError::Class {
            class: 2,
            classes: 2
        })
    ));
    assert!(matches!(
        table.bind(SocketKey::pcp(8), 1, 0),
        Err(TableError::Demux(DemuxError::Key))
    ));
    assert!(matches!(
        table.unbind(SocketKey::udp(1), 1),
        Err(TableError::Demux(DemuxError::NotBound))
    ));
    assert!(matches!(
        table.set_class(1, 0),
        Err(TableError::Demux(DemuxError::NotBound))
    ));
    assert!(exact.set_urgency(2, Urgency::MOST).is_err());
    let one = [Urgency::ORDINARY];
    let load = |classes: &[Urgency], queue, placement| {
        let options = Options {
            queues: [(Urgency::ORDINARY, queue)].into(),
            placement,
            generic: false,
        };
        Exact::load(classes, &options).expect_err("it cannot be")
    };
    assert!(matches!(
        load(&[], 256, Placement::Arrival),
        ExactError::Classes(0)
    ));
    assert!(matches!(
        load(&[Urgency::ORDINARY; 9], 256, Placement::Arrival),
        ExactError::Classes(9)
    ));
    assert!(matches!(
        load(&one, 0, Placement::Arrival),
        ExactError::Queue(0)
    ));
    assert!(matches!(
        load(&one, 16_385, Placement::Arrival),
        ExactError::Queue(16_385)
    ));
    assert!(matches!(
        load(&one, 256, Placement::Fixed(vec![])),
        ExactError::Placement {
            cpus: 0,
            classes: 1
        }
    ));
    assert!(matches!(
        load(&one, 256, Placement::Fixed(vec![8_191])),
        ExactError::Offline(8_191)
    ));
}

/// Runs an XDP program `times` times. Returns the action of the last run, and the mean time of a
/// run.
fn run(program: BorrowedFd<'_>, frame: &[u8], times: i32) -> (u32, Duration) {
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: frame.len() as u32,
        repeat: times,
        ..Default::default()
    };
    // SAFETY: the frame and the options outlive the call.
    let failed =
        unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    assert_eq!(failed, 0, "{}", io::Error::from_raw_os_error(-failed));
    (
        options.retval,
        Duration::from_nanos(options.duration.into()),
    )
}

/// The smallest XDP program. It leaves every packet to the kernel.
fn pass() -> OwnedFd {
    // The instructions are r0 = XDP_PASS; exit.
    let instructions: [u64; 2] = [0x2_0000_00b7, 0x95];
    // SAFETY: the name and the licence end with 0, the two instructions outlive the call, and there
    // are no options.
    let loaded = unsafe {
        libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_XDP,
            c"weir_pass".as_ptr(),
            c"Dual MIT/GPL".as_ptr(),
            instructions.as_ptr().cast(),
            instructions.len() as libbpf_sys::size_t,
            std::ptr::null_mut(),
        )
    };
    assert!(loaded >= 0, "{}", io::Error::from_raw_os_error(-loaded));
    // SAFETY: the descriptor is new, so it has no other owner.
    unsafe { OwnedFd::from_raw_fd(loaded) }
}

/// The kernel itself spends some microseconds on a packet. The program must add only a small part
/// of that, even on a busy machine.
#[test]
fn costs_little_per_packet() {
    let needs = [Need::Bpf, Need::Namespaces, Need::RealTime, Need::Alone];
    let Some(mut exact) = load_with(CLASSES, &needs) else {
        return;
    };
    bind_all(exact.table());
    let (pass, program) = (pass(), exact.program().unwrap());
    let mut tagged = udp(5_001);
    tagged.splice(12..12, [0x81, 0, 0, 1]);
    let mut tcp = udp(5_000);
    tcp[14 + 9] = 6;
    let least = |program: BorrowedFd<'_>, frame: &[u8]| {
        (0..7)
            .map(|_| run(program, frame, 200_000).1)
            .min()
            .unwrap()
    };
    for (what, frame) in [
        ("UDP, given", udp(5_001)),
        ("UDP, tagged, given", tagged),
        ("TCP, given", tcp),
        ("UDP, left", udp(4_999)),
    ] {
        let (trivial, whole) = (least(pass.as_fd(), &frame), least(program.as_fd(), &frame));
        println!("{what}: {whole:?} a packet; XDP_PASS alone: {trivial:?}");
        assert!(
            whole < trivial + Duration::from_nanos(500),
            "{what}: {whole:?}, {trivial:?}"
        );
    }
}
