// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receivers on this system, followed as they change: the processes that read the sockets of
//! each port, and their urgencies (lee2010 §4: the table of ports for early demultiplexing).
//!
//! BPF programs report sockets that are bound and released, processes that fork, execute another
//! program and end, and policies that are set. What no program can report (a descriptor that is
//! closed while another process has the socket too, or passed to another process; a changed name)
//! is found by a repeated scan of all open files. So the table is right at the latest one period
//! ([`Options::period`]) after the last change, even if the kernel has lost an event. A socket
//! without any descriptor, such as one that was registered with io_uring and closed, is not found.
//!
//! A process has the urgency of its most urgent thread, since any of them may read the socket. A
//! [`Rule`] of the system file precedes that. A nice value is no urgency.
pub(crate) mod cgroup;
mod follower;
mod inspect;
mod programs;
mod query;
mod reach;
mod record;
mod rules;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::urgency::Urgency;

pub use follower::{Follower, Options};
pub use inspect::{SocketReader, inspect};
pub use programs::Error;
pub use reach::Reach;
pub use rules::{Rule, RuleSet, RuleSubject};
pub use table::ReceiverTable;

/// A protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP, multipath TCP included.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// Number in the headers of IPv4 and IPv6.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    /// The protocol with that number, if it is one of these.
    #[must_use]
    pub const fn of(number: u8) -> Option<Self> {
        match number {
            6 => Some(Self::Tcp),
            17 => Some(Self::Udp),
            _ => None,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

/// The part of a packet that names its receiver, besides its version of IP ([`Family`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct PacketKey {
    /// The protocol.
    pub protocol: Protocol,
    /// The destination port, never 0.
    pub port: u16,
}

impl fmt::Display for PacketKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.protocol, self.port)
    }
}

/// A version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both versions.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];
}

/// The versions of IP from which a socket receives, at least one: a socket of IPv6 may receive
/// IPv4, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Families {
    v4: bool,
    v6: bool,
}

impl Families {
    /// IPv4 alone.
    pub const V4: Self = Self {
        v4: true,
        v6: false,
    };
    /// IPv6 alone.
    pub const V6: Self = Self {
        v4: false,
        v6: true,
    };
    /// Both versions.
    pub const BOTH: Self = Self { v4: true, v6: true };

    /// Whether the socket receives packets of this version.
    #[must_use]
    pub const fn has(self, family: Family) -> bool {
        match family {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }
}

/// Where the packets of a socket come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SocketPlace {
    /// Cookie of the network namespace (SO_NETNS_COOKIE).
    pub namespace: u64,
    /// The index of the only interface from which the socket takes packets (SO_BINDTODEVICE), 0 for
    /// any. Known from the first scan after it was bound.
    pub device: u32,
    /// Whether it is bound to an address of the loopback interface.
    pub loopback: bool,
    /// Versions of IP. Whether a socket for any address of IPv6 receives IPv4, too, is known from
    /// the first scan after it was bound; until then it does not.
    pub families: Families,
}

/// A process that reads sockets at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ReaderId {
    /// Number of the process in the first process namespace.
    pub pid: u32,
    /// Start of the process, in ns since boot: with `pid` it identifies the process for good.
    pub start: u64,
    /// Where its packets come from.
    pub place: SocketPlace,
}

/// A reader with its properties.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reader {
    /// Identity of the reader.
    #[serde(flatten)]
    pub id: ReaderId,
    /// Name of the command as the kernel keeps it: its first 15 bytes.
    #[serde(serialize_with = "text")]
    pub comm: Arc<str>,
    /// Cgroup of the process: a path from the root of cgroup v2, or from that of systemd if v2 has
    /// only a root. It is empty if the process ended before it could be read.
    #[serde(serialize_with = "text")]
    pub cgroup: Arc<str>,
    /// Urgency of the process as a reader of that key.
    pub urgency: Urgency,
}

/// Serializes a shared string like any other.
fn text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// A change of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableChange {
    /// A process has begun to read a key.
    Bound {
        /// The key.
        key: PacketKey,
        /// The process.
        reader: Reader,
    },
    /// A process has stopped reading a key.
    Unbound {
        /// The key.
        key: PacketKey,
        /// The process.
        reader: ReaderId,
    },
    /// The urgency of a reader has changed.
    Urgency {
        /// The key.
        key: PacketKey,
        /// The process.
        reader: ReaderId,
        /// Urgency before.
        from: Urgency,
        /// Urgency now.
        to: Urgency,
    },
}

impl TableChange {
    /// The key that has changed.
    #[must_use]
    pub fn key(&self) -> PacketKey {
        match self {
            Self::Bound { key, .. } | Self::Unbound { key, .. } | Self::Urgency { key, .. } => *key,
        }
    }
}
