// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who receives what on this system, followed as it changes: which processes read the sockets of a
//! port, and how urgent they are (lee2010 §4: the table of ports that early demultiplexing looks
//! up).
//!
//! BPF programs tell of sockets that are bound and released, of processes that fork, execute
//! another program and end, and of policies that are set. What no program can tell (a descriptor
//! closed while another process has the socket too, or passed to another process, a name changed)
//! is found by a scan of all open files, which is repeated: so the table is right at the latest one
//! period ([`Options::period`]) after the system came to rest, also when the kernel had no room for
//! an event. A socket that no descriptor refers to, such as one registered with io_uring and
//! closed, is not found.
//!
//! A process is as urgent as the most urgent of its threads, since any of them may read the socket;
//! a [`Rule`] of the system file comes before that. A nice value is no urgency.
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
pub use rules::{Rule, RuleSet, Who};
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
    /// Its number in IPv4's and IPv6's headers.
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

/// What a packet says of its receiver, beside its version of IP ([`Family`]).
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
    /// Both.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];
}

/// The versions of IP that packets come to a socket by, at least one: a socket of IPv6 may take
/// those of IPv4, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Families {
    v4: bool,
    v6: bool,
}

impl Families {
    /// Only IPv4.
    pub const V4: Self = Self {
        v4: true,
        v6: false,
    };
    /// Only IPv6.
    pub const V6: Self = Self {
        v4: false,
        v6: true,
    };
    /// Either.
    pub const BOTH: Self = Self { v4: true, v6: true };

    /// Whether packets of this one come to it.
    #[must_use]
    pub const fn has(self, family: Family) -> bool {
        match family {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }
}

/// From where packets come to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SocketPlace {
    /// The network namespace, by its cookie (SO_NETNS_COOKIE).
    pub namespace: u64,
    /// The index of the only interface from which the socket takes packets (SO_BINDTODEVICE), 0 for
    /// any. Known from the first scan after it was bound.
    pub device: u32,
    /// Whether it is bound to an address of the loopback interface.
    pub loopback: bool,
    /// By which versions of IP. Whether a socket for any address of IPv6 takes IPv4, too, is known
    /// from the first scan after it was bound; until then it does not.
    pub families: Families,
}

/// A process that reads sockets at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ReaderId {
    /// The process, by its number in the first process namespace.
    pub pid: u32,
    /// When it was started, in ns since boot: with `pid` this names a process for good.
    pub start: u64,
    /// From where its packets come.
    pub place: SocketPlace,
}

/// A reader with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reader {
    /// Which it is.
    #[serde(flatten)]
    pub id: ReaderId,
    /// The command's name, as the kernel keeps it: the first 15 bytes.
    #[serde(serialize_with = "text")]
    pub comm: Arc<str>,
    /// Its cgroup: a path from the root of cgroup v2, or that of systemd where v2 has only a root.
    /// Empty if the process ended before it could be read.
    #[serde(serialize_with = "text")]
    pub cgroup: Arc<str>,
    /// How urgent it is as a receiver on that key.
    pub urgency: Urgency,
}

/// Writes a shared string as any other.
fn text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// What became different in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableChange {
    /// A process reads a key now that it did not read before.
    Bound {
        /// The key.
        key: PacketKey,
        /// The process.
        reader: Reader,
    },
    /// A process does not read a key any longer.
    Unbound {
        /// The key.
        key: PacketKey,
        /// The process.
        reader: ReaderId,
    },
    /// A reader is more or less urgent than before.
    Urgency {
        /// The key.
        key: PacketKey,
        /// The process.
        reader: ReaderId,
        /// Before.
        from: Urgency,
        /// Now.
        to: Urgency,
    },
}

impl TableChange {
    /// The key of which something is different.
    #[must_use]
    pub fn key(&self) -> PacketKey {
        match self {
            Self::Bound { key, .. } | Self::Unbound { key, .. } | Self::Urgency { key, .. } => *key,
        }
    }
}
