// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of receivers follows real processes.
use crate::actor;

mod processes;
mod sockets;
mod urgencies;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use weir_linux::receivers::{Follower, Options, PacketKey, Protocol, Reader, RuleSet, TableChange};

/// How long the table may need for what an event tells: far less than the period of scans, but the
/// machine may be busy.
const SOON: Duration = Duration::from_secs(30);

/// Follows by events: scans of everything come too late for the test.
fn by_events() -> Follower {
    let options = Options {
        period: Duration::from_secs(600),
        ..Options::default()
    };
    Follower::start(RuleSet::default(), options).expect("a follower")
}

/// Follows with frequent scans.
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

/// How `pid` reads `key`.
fn reader(follower: &Follower, key: PacketKey, pid: u32) -> Option<Reader> {
    follower
        .table()
        .readers(key)
        .find(|reader| reader.id.pid == pid)
}

/// What `pid` reads.
fn keys_of(follower: &Follower, pid: u32) -> Vec<PacketKey> {
    let all = follower.table().iter();
    all.filter(|(_, reader)| reader.id.pid == pid)
        .map(|(key, _)| key)
        .collect()
}

/// Polls until something is so; returns all changes on the way.
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
