// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the XDP program has counted.
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize, Serializer};

use super::layout::{CLASSES, COUNTS_WORDS, DROPPED_AT, LEFT_AT, PORTS, REASONS};
use crate::object::Memory;

/// Why a packet is left to the kernel, as if no program were attached; the numbers are those of
/// `src/bpf/table.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum DemuxReason {
    /// Nothing that the packet names is bound.
    NoReceiver = 0,
    /// It is ARP.
    Arp = 1,
    /// It belongs to a clock (IEEE 1588): EtherType 0x88f7, UDP ports 319 and 320.
    Ptp = 2,
    /// It is a fragment, of which only the first tells its port.
    Fragment = 3,
    /// It lies in several buffers: a jumbo frame, or what the card put together.
    MultiBuffer = 4,
    /// It ends before its headers do.
    Truncated = 5,
    /// Its headers contradict themselves.
    Malformed = 6,
    /// It has more extension headers than are looked behind.
    TooDeep = 7,
    /// Its class has no kernel thread on the CPU that it should go to.
    NoThread = 8,
}

impl DemuxReason {
    /// All, in the order of their numbers.
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
    /// Given to the class's kernel thread.
    pub given: u64,
    /// Of these, dropped at once since the thread's queue was full.
    pub dropped: u64,
}

/// Packets since the program was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// By class; those that there are not have none.
    pub classes: [ClassCount; CLASSES],
    /// Left to the kernel, by reason: in the order of [`DemuxReason::ALL`].
    #[serde(serialize_with = "by_reason")]
    pub left: [u64; REASONS],
}

fn by_reason<S: Serializer>(left: &[u64; REASONS], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(DemuxReason::ALL.iter().zip(left))
}

impl Counts {
    /// How many were left to the kernel for one reason.
    #[must_use]
    pub fn left(&self, reason: DemuxReason) -> u64 {
        self.left[reason as usize]
    }

    /// All packets that the program has seen.
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

/// The UDP or TCP port that packets were for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TransportPort {
    /// 17 (UDP) or 6 (TCP).
    pub protocol: u8,
    /// Destination.
    pub port: u16,
}

/// The program's counters, read while it counts. Each CPU has its own, by its number.
#[derive(Debug)]
pub struct Counters {
    counts: Memory<AtomicU64>,
    ports: Memory<AtomicU64>,
}

impl Counters {
    pub(super) fn new(counts: Memory<AtomicU64>, ports: Memory<AtomicU64>) -> Self {
        Self { counts, ports }
    }

    /// What each CPU has counted: packets that came in on it.
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

    /// What all CPUs have counted.
    #[must_use]
    pub fn total(&self) -> Counts {
        self.of_cpus().sum()
    }

    /// The packets for a port that were given to a kernel thread; what has no receiver is not among
    /// them.
    #[must_use]
    pub fn port(&self, port: TransportPort) -> u64 {
        let at = usize::from(port.protocol == 6) * PORTS / 2 + usize::from(port.port);
        let rows = self.ports.elements().chunks_exact(PORTS);
        rows.map(|row| row[at].load(Ordering::Relaxed)).sum()
    }

    /// The ports that packets which came in on one CPU were for, with their numbers; none for a CPU
    /// that the machine did not have, not even offline, when the program was loaded.
    pub fn ports_of(&self, cpu: usize) -> impl Iterator<Item = (TransportPort, u64)> + '_ {
        let row = self.ports.elements().chunks_exact(PORTS).nth(cpu);
        let all = row.unwrap_or_default().iter().enumerate();
        all.filter_map(|(at, count)| {
            let count = count.load(Ordering::Relaxed);
            let protocol = if at < PORTS / 2 { 17 } else { 6 };
            // What is above 16 bits is the protocol.
            let port = (at & 0xffff) as u16;
            (count != 0).then_some((TransportPort { protocol, port }, count))
        })
    }
}
