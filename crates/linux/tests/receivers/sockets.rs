// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests sockets that are bound in every possible way, and released.
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use libc::{SOCK_DGRAM, SOCK_STREAM};
use weir_linux::receivers::{Families, Follower, TableChange, inspect};

use super::actor::{Actor, accept, bind, bind_only6, close, connect, send_to, socket};
use super::{SOON, any4, any6, by_events, by_scans, keys_of, reader, tcp, udp, wait_for};
use crate::ground::{self, Need};

#[test]
fn what_was_bound_before_the_start_is_known_at_the_start() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let actor = Actor::new(&ground.receiver, || {
        bind(any4(4001), SOCK_DGRAM);
        bind(any6(4002), SOCK_STREAM);
    });
    let mut follower = by_events();
    let changes = follower.poll(Duration::ZERO).unwrap();
    assert_eq!(keys_of(&follower, actor.pid()), [tcp(4002), udp(4001)]);
    let told = changes.iter().filter(
        |change| matches!(change, TableChange::Bound { reader, .. } if reader.id.pid == actor.pid()),
    );
    assert_eq!(told.count(), 2);
}

#[test]
fn what_is_bound_later_is_told_and_forgotten_with_its_process() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_events();
    let actor = Actor::new(&ground.receiver, || {
        bind(any4(4003), SOCK_DGRAM);
        bind(any6(4004), SOCK_DGRAM);
        bind(any4(4003), SOCK_STREAM);
    });
    let pid = actor.pid();
    let expected = [tcp(4003), udp(4003), udp(4004)];
    wait_for(&mut follower, "three sockets", |f| {
        keys_of(f, pid) == expected
    });
    drop(actor);
    let changes = wait_for(&mut follower, "the end", |f| keys_of(f, pid).is_empty());
    let gone = changes.iter().filter_map(|change| match change {
        TableChange::Unbound { key, reader } if reader.pid == pid => Some(*key),
        _ => None,
    });
    // A scan in between may have reported more about a socket, so one socket may occur twice.
    assert_eq!(gone.collect::<std::collections::BTreeSet<_>>().len(), 3);
}

#[test]
fn a_socket_that_is_closed_is_forgotten() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_events();
    let receiver = ground.receiver.run(|| UdpSocket::bind(any4(4005)).unwrap());
    let me = std::process::id();
    wait_for(&mut follower, "the socket", |f| {
        reader(f, udp(4005), me).is_some()
    });
    drop(receiver);
    wait_for(&mut follower, "its end", |f| {
        reader(f, udp(4005), me).is_none()
    });
}

#[test]
fn the_first_send_binds() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_events();
    let to = (ground.sender.v4, 9).into();
    let actor = Actor::new(&ground.receiver, move || {
        send_to(socket(to, SOCK_DGRAM), to);
    });
    let pid = actor.pid();
    wait_for(
        &mut follower,
        "a port for the sender",
        |f| matches!(keys_of(f, pid)[..], [key] if key.protocol == udp(1).protocol),
    );
}

#[test]
fn connecting_binds() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_events();
    let server = Actor::new(&ground.sender, || {
        bind(any4(4006), SOCK_STREAM);
    });
    let to = (ground.sender.v4, 4006).into();
    let client = Actor::new(&ground.receiver, move || {
        connect(socket(to, SOCK_STREAM), to);
    });
    let (pid, server) = (client.pid(), server.pid());
    wait_for(&mut follower, "the client's port", |f| {
        matches!(keys_of(f, pid)[..], [key] if key.protocol == tcp(1).protocol)
            && keys_of(f, server) == [tcp(4006)]
    });
    // A socket that connects without sending is found by a scan.
    let mut scanning = by_scans();
    let quiet = Actor::new(&ground.receiver, move || {
        connect(socket(to, SOCK_DGRAM), to);
    });
    wait_for(&mut scanning, "the quiet client's port", |f| {
        keys_of(f, quiet.pid()).len() == 1
    });
}

#[test]
fn what_a_listener_accepted_outlives_it() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_events();
    let to = (ground.receiver.v4, 4007).into();
    let client = ground.sender.run(move || {
        std::thread::spawn(move || {
            let end = Instant::now() + SOON;
            while Instant::now() < end {
                if let Ok(connection) = TcpStream::connect::<SocketAddr>(to) {
                    return Some(connection);
                }
            }
            None
        })
    });
    let server = Actor::new(&ground.receiver, || {
        let listener = bind(any4(4007), SOCK_STREAM);
        accept(listener);
        close(listener);
    });
    let connection = client.join().unwrap();
    assert!(connection.is_some());
    let pid = server.pid();
    let quiet = Instant::now() + Duration::from_millis(500);
    wait_for(&mut follower, "the connection alone", |f| {
        // The client's socket may have existed when the server was forked.
        keys_of(f, pid).contains(&tcp(4007)) && Instant::now() > quiet
    });
    drop(server);
    wait_for(&mut follower, "its end", |f| keys_of(f, pid).is_empty());
}

/// Binds a socket to this port, waiting until the port is free. Another test may fork a process,
/// which then has a copy of the port's last socket until it ends.
fn bound(port: u16) -> UdpSocket {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match UdpSocket::bind(any4(port)) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(1));
            }
            result => return result.unwrap(),
        }
    }
}

#[test]
fn ten_thousand_sockets_leave_nothing_behind() {
    let needs = [Need::Namespaces, Need::Bpf, Need::RealTime, Need::Sockets];
    let Some(ground) = ground::begin(&needs) else {
        return;
    };
    let mut follower = by_events();
    let before = follower.table().sockets();
    let binder = ground.receiver.run(|| {
        std::thread::spawn(|| {
            for _ in 0..10_000 {
                drop(bound(4008));
            }
            bound(4009)
        })
    });
    let mut most = 0;
    while !binder.is_finished() {
        follower.poll(Duration::from_millis(10)).unwrap();
        most = most.max(follower.table().sockets());
    }
    let _last = binder.join().unwrap();
    let me = std::process::id();
    wait_for(&mut follower, "the last socket alone", |f| {
        reader(f, udp(4009), me).is_some() && reader(f, udp(4008), me).is_none()
    });
    // Other tests bind their sockets at the same time.
    assert!(most < before + 100, "{most} sockets after {before}");
}

#[test]
fn events_that_find_no_room_are_made_up_for() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_events();
    // There are more events than the ring buffer holds, and nobody reads them.
    let sockets = ground.receiver.run(|| {
        for _ in 0..10_000 {
            drop(bound(4010));
        }
        [4011, 4012].map(bound)
    });
    let me = std::process::id();
    wait_for(&mut follower, "what was bound at last", |f| {
        [udp(4011), udp(4012)]
            .iter()
            .all(|key| reader(f, *key, me).is_some())
            && reader(f, udp(4010), me).is_none()
    });
    assert!(follower.lost() > 0);
    drop(sockets);
}

#[test]
fn namespaces_are_told_apart() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_events();
    let part = || {
        bind(any4(4013), SOCK_DGRAM);
    };
    let (one, other) = (
        Actor::new(&ground.sender, part),
        Actor::new(&ground.receiver, part),
    );
    wait_for(&mut follower, "both", |f| {
        let place = |pid| Some(reader(f, udp(4013), pid)?.id.place.namespace);
        matches!((place(one.pid()), place(other.pid())), (Some(a), Some(b)) if a != b)
    });
}

#[test]
fn the_loopback_interface_is_told_apart() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_events();
    let part = || {
        bind(([127, 0, 0, 1], 4014).into(), SOCK_DGRAM);
        bind((std::net::Ipv6Addr::LOCALHOST, 4015).into(), SOCK_DGRAM);
        bind(any4(4016), SOCK_DGRAM);
    };
    let later = Actor::new(&ground.receiver, part);
    let is_known = |f: &weir_linux::receivers::Follower, pid| {
        let is_local = |port| Some(reader(f, udp(port), pid)?.id.place.loopback);
        [is_local(4014), is_local(4015), is_local(4016)] == [Some(true), Some(true), Some(false)]
    };
    wait_for(&mut follower, "by an event", |f| is_known(f, later.pid()));
    let mut scanning = by_events();
    wait_for(&mut scanning, "by a scan", |f| is_known(f, later.pid()));
}

#[test]
fn a_machine_is_inspected_without_following_it() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let actor = Actor::new(&ground.receiver, || {
        bind(any4(4017), SOCK_DGRAM);
        bind(any6(4018), SOCK_STREAM);
    });
    let begin = Instant::now();
    let receivers = inspect(Default::default()).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(20));
    let receiver = receivers
        .iter()
        .find(|receiver| receiver.pid == actor.pid())
        .unwrap();
    assert_eq!(receiver.keys, [udp(4017), tcp(4018)].into());
    assert!(receiver.cgroup.starts_with('/'));
    assert!(!receiver.comm.is_empty() && !receiver.only_loopback);
}

#[test]
fn by_which_families_packets_come_to_a_socket_is_known() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let (v4, v6) = (ground.receiver.v4, ground.receiver.v6);
    let mut follower = by_events();
    let actor = Actor::new(&ground.receiver, move || {
        bind(any4(4014), SOCK_DGRAM);
        bind(any6(4015), SOCK_DGRAM);
        bind((v6, 4016).into(), SOCK_DGRAM);
        bind((v4.to_ipv6_mapped(), 4017).into(), SOCK_DGRAM);
        bind_only6(4018, SOCK_DGRAM);
        bind(any6(4019), SOCK_STREAM);
        bind_only6(4020, SOCK_STREAM);
    });
    let families = |f: &Follower, key| reader(f, key, actor.pid()).map(|it| it.id.place.families);
    let all = [
        (udp(4014), Families::V4),
        (udp(4015), Families::BOTH),
        (udp(4016), Families::V6),
        (udp(4017), Families::V4),
        (udp(4018), Families::V6),
        (tcp(4019), Families::BOTH),
        (tcp(4020), Families::V6),
    ];
    wait_for(&mut follower, "their families", |f| {
        all.iter()
            .all(|(key, wanted)| families(f, *key) == Some(*wanted))
    });
    // A new follower knows existing sockets at once.
    let mut later = by_events();
    later.poll(Duration::ZERO).unwrap();
    for (key, wanted) in all {
        assert_eq!(families(&later, key), Some(wanted), "{key}");
    }
}
