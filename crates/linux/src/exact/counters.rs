// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of the XDP program.
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize, Serializer};

use super::layout::{CLASSES, COUNTS_WORDS, DROPPED_AT, LEFT_AT, PORTS, REASONS};
use crate::object::Memory;

/// Reason why a packet is left to the kernel, as if no program were attached. The numbers are those
/// of `src/bpf/table.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum DemuxReason {
    /// The packet's protocol and port are not bound in the table.
    NoReceiver = 0,
    /// The packet is ARP.
    Arp = 1,
    /// The packet synchronises clocks (PTP, IEEE 1588): EtherType 0x88f7, or UDP port 319 or 320.
    Ptp = 2,
    /// The packet is a fragment. Only the first fragment contains the port.
    Fragment = 3,
    /// The packet lies in several buffers, since it is a jumbo frame, or since the card has joined
    /// packets.
    MultiBuffer = 4,
    /// The packet ends before its headers do.
    Truncated = 5,
    /// The packet's headers contradict each other.
    Malformed = 6,
    /// The packet has more IPv6 extension headers than the program reads.
    TooDeep = 7,
    /// The class has no kernel thread on the CPU of the packet.
    NoThread = 8,
}

impl DemuxReason {
    /// All reasons in the order of their numbers.
    pub const ALL: [Self; REASONS] = [
        Self::NoReceiver,
        Self::Arp,
        Self::Ptp,
        Self::Fragment,
        Self::MultiBuffer,
        Self::Truncated,
        Self::Malformed,
        Self::TooDeep,
        Self::NoThread,
    ];
}

impl fmt::Display for DemuxReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoReceiver => "no receiver",
            Self::Arp => "ARP",
            Self::Ptp => "PTP",
            Self::Fragment => "fragment",
            Self::MultiBuffer => "several buffers",
            Self::Truncated => "truncated",
            Self::Malformed => "malformed",
            Self::TooDeep => "too many extension headers",
            Self::NoThread => "no kernel thread",
        })
    }
}

/// Packets of one class since the program was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ClassCount {
    /// Packets that were given to a kernel thread of the class.
    pub given: u64,
    /// The part of `given` that was dropped at once, since the queue of the thread was full.
    pub dropped: u64,
}

/// Packets since the program was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Packets by class. The counts are zero for classes that do not exist.
    pub classes: [ClassCount; CLASSES],
    /// Packets that were left to the kernel, by reason, in the order of [`DemuxReason::ALL`].
    #[serde(serialize_with = "by_reason")]
    pub left: [u64; REASONS],
}

fn by_reason<S: Serializer>(left: &[u64; REASONS], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(DemuxReason::ALL.iter().zip(left))
}

impl Counts {
    /// Number of packets that were left to the kernel for `reason`.
    #[must_use]
    pub fn left(&self, reason: DemuxReason) -> u64 {
        self.left[reason as usize]
    }

    /// Number of all packets that the program has seen.
    #[must_use]
    pub fn seen(&self) -> u64 {
        let given = self.classes.iter().map(|class| class.given);
        given.chain(self.left).sum()
    }
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        let mut sum = Self::default();
        for one in counts {
            for (to, from) in sum.classes.iter_mut().zip(one.classes) {
                to.given += from.given;
                to.dropped += from.dropped;
            }
            for (to, from) in sum.left.iter_mut().zip(one.left) {
                *to += from;
            }
        }
        sum
    }
}

/// Destination port of UDP or TCP packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TransportPort {
    /// Protocol number: 17 (UDP) or 6 (TCP).
    pub protocol: u8,
    /// Number of the port.
    pub port: u16,
}

/// Counters of the program, which can be read while the program runs. Each CPU has its own
/// counters.
#[derive(Debug)]
pub struct Counters {
    counts: Memory<AtomicU64>,
    ports: Memory<AtomicU64>,
}

impl Counters {
    pub(super) fn new(counts: Memory<AtomicU64>, ports: Memory<AtomicU64>) -> Self {
        Self { counts, ports }
    }

    /// Counters of each CPU, which count the packets that arrived on it.
    pub fn of_cpus(&self) -> impl Iterator<Item = Counts> + '_ {
        self.counts
            .elements()
            .chunks_exact(COUNTS_WORDS)
            .map(|row| {
                let read = |at: usize| row[at].load(Ordering::Relaxed);
                Counts {
                    classes: std::array::from_fn(|class| ClassCount {
                        given: read(class),
                        dropped: read(DROPPED_AT + class),
                    }),
                    left: std::array::from_fn(|reason| read(LEFT_AT + reason)),
                }
            })
    }

    /// Sum of the counters of all CPUs.
    #[must_use]
    pub fn total(&self) -> Counts {
        self.of_cpus().sum()
    }

    /// Packets for `port` that were given to a kernel thread. Packets without a receiver are not
    /// included.
    #[must_use]
    pub fn port(&self, port: TransportPort) -> u64 {
        let at = usize::from(port.protocol == 6) * PORTS / 2 + usize::from(port.port);
        let rows = self.ports.elements().chunks_exact(PORTS);
        rows.map(|row| row[at].load(Ordering::Relaxed)).sum()
    }

    /// Packets that arrived on one CPU, by port. There are none if the machine did not have the
    /// CPU, not even offline, when the program was loaded.
    pub fn ports_of(&self, cpu: usize) -> impl Iterator<Item = (TransportPort, u64)> + '_ {
        let row = self.ports.elements().chunks_exact(PORTS).nth(cpu);
        let all = row.unwrap_or_default().iter().enumerate();
        all.filter_map(|(at, count)| {
            let count = count.load(Ordering::Relaxed);
            let protocol = if at < PORTS / 2 { 17 } else { 6 };
            // The index has the protocol above the 16 bits of the port.
            let port = (at & 0xffff) as u16;
            (count != 0).then_some((TransportPort { protocol, port }, count))
        })
    }
}
