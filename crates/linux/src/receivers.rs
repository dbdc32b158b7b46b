// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receivers on this system, followed as they change: the processes that read the sockets of
//! each port, and their urgencies. This is the table of ports for early demultiplexing (lee2010
//! §4).
//!
//! BPF programs report when sockets are bound and released, when processes fork, execute another
//! program and end, and when policies are set. Some changes no program can report: a process closes
//! a descriptor while another process has the same socket, a descriptor is passed to another
//! process, or a name changes. These are found by a repeated scan of all open files. So the table
//! is right at the latest one period ([`Options::period`]) after the last change, even if the
//! kernel has lost an event. A socket without any descriptor is not found, such as one that was
//! registered with io_uring and then closed.
//!
//! A process has the urgency of its most urgent thread, since any thread may read the socket. A
//! [`Rule`] of the system file overrides that. A nice value does not count as an urgency.
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
    /// Number of the protocol in the headers of IPv4 and IPv6.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    /// The protocol with this number. `None` if it is neither TCP nor UDP.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
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

/// What identifies the receiver of a packet, besides the packet's version of IP ([`Family`]).
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

/// The versions of IP from which a socket receives. There is at least one. An IPv6 socket may also
/// receive IPv4.
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

/// From where a socket receives packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SocketPlace {
    /// Cookie of the network namespace (SO_NETNS_COOKIE).
    pub namespace: u64,
    /// Index of the only interface from which the socket takes packets (SO_BINDTODEVICE), or 0 for
    /// any interface. It is known from the first scan after the socket was bound.
    pub device: u32,
    /// Whether the socket is bound to an address of the loopback interface.
    pub loopback: bool,
    /// Versions of IP that the socket receives. A socket for any IPv6 address may also receive
    /// IPv4. That is known from the first scan after it was bound; until then IPv4 is not included.
    pub families: Families,
}

/// A process that reads sockets with the same [`SocketPlace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ReaderId {
    /// Number of the process in the first process namespace.
    pub pid: u32,
    /// Start of the process, in ns since boot. Together with `pid` it identifies the process until
    /// the next boot.
    pub start: u64,
    /// From where the sockets receive packets.
    pub place: SocketPlace,
}

/// A reader with its properties.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reader {
    /// Identity of the reader.
    #[serde(flatten)]
    pub id: ReaderId,
    /// Name of the command as the kernel keeps it: the first 15 bytes.
    #[serde(serialize_with = "text")]
    pub comm: Arc<str>,
    /// Cgroup of the process: a path from the root of cgroup v2. If v2 has only a root, it is the
    /// path in systemd's own hierarchy. The path is empty if the process ended before it could be
    /// read.
    #[serde(serialize_with = "text")]
    pub cgroup: Arc<str>,
    /// Urgency of the process as a reader of the port.
    pub urgency: Urgency,
}

/// Serializes a shared string like any other.
fn text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// A change of the table of receivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableChange {
    /// A process has begun to read a port.
    Bound {
        /// Protocol and port.
        key: PacketKey,
        /// The process.
        reader: Reader,
    },
    /// A process has stopped reading a port.
    Unbound {
        /// Protocol and port.
        key: PacketKey,
        /// The process.
        reader: ReaderId,
    },
    /// The urgency of a process that reads a port has changed.
    Urgency {
        /// Protocol and port.
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
    /// Protocol and port that the change is about.
    #[must_use]
    pub fn key(&self) -> PacketKey {
        match self {
            Self::Bound { key, .. } | Self::Unbound { key, .. } | Self::Urgency { key, .. } => *key,
        }
    }
}
