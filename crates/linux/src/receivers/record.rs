// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes the records of the BPF programs: struct weir_follow_record of src/bpf/follow.bpf.c.
use std::sync::Arc;

use super::{Families, PacketKey, Protocol, SocketPlace};
use crate::urgency::Urgency;

/// Length of a record in bytes.
pub(super) const LENGTH: usize = 80;

/// A thread, with what the kernel reports about its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ThreadRecord {
    pub pid: u32,
    pub tid: u32,
    /// Start of the process, in ns since boot.
    pub start: u64,
    /// Urgency of the thread's policy.
    pub urgency: Urgency,
    /// Number of the process's cgroup v2.
    pub cgroup: u64,
    /// User of the process. `None` if its effective user is not its real user.
    pub user: Option<u32>,
    pub comm: Arc<str>,
}

/// A bound socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketRecord {
    pub cookie: u64,
    pub key: PacketKey,
    pub place: SocketPlace,
    /// Whether the socket is connected. A listener and an unconnected socket are not.
    pub connected: bool,
    /// Whether only a scan can report which versions of IP the socket receives. Until then the
    /// record has only the versions that are certain.
    pub unsure: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    Bound(ThreadRecord, SocketRecord),
    Released {
        cookie: u64,
    },
    /// A packet was sent over an unknown socket. The process `pid` probably owns the socket.
    Sent {
        cookie: u64,
        pid: u32,
    },
    Forked {
        parent: u32,
        child: ThreadRecord,
    },
    Thread(ThreadRecord),
    Ended(ThreadRecord),
    Exited(ThreadRecord),
    Executed(ThreadRecord),
    Migrated(ThreadRecord),
}

impl Record {
    /// Decodes a record. `None` if `bytes` is not a record of these programs.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let seen = ThreadRecord {
            pid: u32::from_ne_bytes(field(bytes, 4)),
            tid: u32::from_ne_bytes(field(bytes, 8)),
            start: u64::from_ne_bytes(field(bytes, 16)),
            urgency: Urgency::new(bytes[55]).ok()?,
            cgroup: u64::from_ne_bytes(field(bytes, 40)),
            user: Some(u32::from_ne_bytes(field(bytes, 60))).filter(|user| *user != u32::MAX),
            comm: text(&field::<16>(bytes, 64)),
        };
        let other = u32::from_ne_bytes(field(bytes, 12));
        let cookie = u64::from_ne_bytes(field(bytes, 24));
        Some(match u32::from_ne_bytes(field(bytes, 0)) {
            1 => Self::Bound(
                seen,
                SocketRecord {
                    cookie,
                    key: PacketKey {
                        protocol: Protocol::from_number(bytes[54])?,
                        port: u16::from_ne_bytes(field(bytes, 52)),
                    },
                    place: SocketPlace {
                        namespace: u64::from_ne_bytes(field(bytes, 32)),
                        device: u32::from_ne_bytes(field(bytes, 48)),
                        loopback: bytes[56] != 0,
                        families: match bytes[58] {
                            1 => Families::V4,
                            3 => Families::BOTH,
                            _ => Families::V6,
                        },
                    },
                    connected: bytes[57] != 0,
                    unsure: bytes[58] == 0,
                },
            ),
            2 => Self::Released { cookie },
            3 => Self::Sent {
                cookie,
                pid: seen.pid,
            },
            4 => Self::Forked {
                parent: other,
                child: seen,
            },
            5 => Self::Thread(seen),
            6 => Self::Ended(seen),
            7 => Self::Exited(seen),
            8 => Self::Executed(seen),
            9 => Self::Migrated(seen),
            _ => return None,
        })
    }
}

fn field<const N: usize>(bytes: &[u8; LENGTH], at: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&bytes[at..at + N]);
    value
}

fn text(bytes: &[u8]) -> Arc<str> {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into()
}
