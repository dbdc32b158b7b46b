// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that the table of receivers follows real processes.
use crate::actor;

mod processes;
mod sockets;
mod urgencies;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use weir_linux::receivers::{Follower, Options, PacketKey, Protocol, Reader, RuleSet, TableChange};

/// Time within which the table must reflect an event. It is far less than the period of scans, but
/// allows for a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// A follower whose scans of all processes come too late for the test, so it must rely on events.
fn by_events() -> Follower {
    let options = Options {
        period: Duration::from_secs(600),
        ..Options::default()
    };
    Follower::start(RuleSet::default(), options).expect("a follower")
}

/// A follower with frequent scans.
fn by_scans() -> Follower {
    let options = Options {
        period: Duration::from_millis(100),
        ..Options::default()
    };
    Follower::start(RuleSet::default(), options).expect("a follower")
}

fn tcp(port: u16) -> PacketKey {
    let protocol = Protocol::Tcp;
    PacketKey { protocol, port }
}

fn udp(port: u16) -> PacketKey {
    let protocol = Protocol::Udp;
    PacketKey { protocol, port }
}

fn any4(port: u16) -> SocketAddr {
    (Ipv4Addr::UNSPECIFIED, port).into()
}

fn any6(port: u16) -> SocketAddr {
    (Ipv6Addr::UNSPECIFIED, port).into()
}

/// The entry of process `pid` as a reader of `key`. `None` if it does not read the key.
fn reader(follower: &Follower, key: PacketKey, pid: u32) -> Option<Reader> {
    follower
        .table()
        .readers(key)
        .find(|reader| reader.id.pid == pid)
}

/// The keys that process `pid` reads.
fn keys_of(follower: &Follower, pid: u32) -> Vec<PacketKey> {
    let all = follower.table().iter();
    all.filter(|(_, reader)| reader.id.pid == pid)
        .map(|(key, _)| key)
        .collect()
}

/// Polls until a condition holds. Returns all changes up to then.
fn wait_for(
    follower: &mut Follower,
    what: &str,
    is_so: impl Fn(&Follower) -> bool,
) -> Vec<TableChange> {
    let end = Instant::now() + SOON;
    let mut changes = Vec::new();
    while !is_so(follower) {
        let rows: Vec<String> = follower
            .table()
            .iter()
            .map(|(key, reader)| format!("{key}: {} {}", reader.id.pid, reader.comm))
            .collect();
        assert!(Instant::now() < end, "not seen: {what}; only {rows:?}");
        changes.extend(follower.poll(Duration::from_millis(100)).expect("changes"));
    }
    changes
}
