// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counts of the messages that come to one address.
use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::{ListeningPort, SenderCounts};
use crate::latency::Times;
use crate::payload::Header;
use crate::send::seconds;

/// The most senders that are distinguished at one address. Messages of further senders count as
/// foreign.
const FLOWS: usize = 1024;

/// The messages that have come to one address so far.
#[derive(Default)]
pub(super) struct Tally {
    packets: u64,
    bytes: u64,
    foreign: u64,
    flows: BTreeMap<u32, Sequence>,
    latency: Times,
    /// The times of the first message and of the last one, by the clock of the stamps.
    between: Option<(u64, u64)>,
}

/// The sequence numbers of one sender so far.
#[derive(Default)]
struct Sequence {
    packets: u64,
    late: u64,
    /// The highest number so far, plus 1.
    next: u64,
}

impl Tally {
    /// Counts a message that came when the sender's clock was at `now`.
    pub fn message(&mut self, message: &[u8], now: u64) {
        match Header::decode(message) {
            Some(header) if self.flows.len() < FLOWS || self.flows.contains_key(&header.flow) => {
                self.packets += 1;
                self.bytes += message.len() as u64;
                self.latency.record(now.saturating_sub(header.sent));
                let (first, _) = self.between.unwrap_or((now, now));
                self.between = Some((first, now));
                self.flows
                    .entry(header.flow)
                    .or_default()
                    .count(header.sequence);
            }
            _ => self.foreign(),
        }
    }

    /// Counts a message of another program.
    pub fn foreign(&mut self) {
        self.foreign += 1;
    }

    pub fn port(self, at: SocketAddr, overflowed: Option<u64>) -> ListeningPort {
        let flow = |(flow, sequence): (u32, Sequence)| SenderCounts {
            flow,
            packets: sequence.packets,
            lost: sequence.next.saturating_sub(sequence.packets),
            late: sequence.late,
        };
        ListeningPort {
            at,
            packets: self.packets,
            bytes: self.bytes,
            span: self
                .between
                .map_or(0.0, |(first, last)| seconds(last.saturating_sub(first))),
            foreign: self.foreign,
            overflowed,
            flows: self.flows.into_iter().map(flow).collect(),
            latency: self.latency.distribution(),
        }
    }
}

impl Sequence {
    fn count(&mut self, number: u64) {
        self.packets += 1;
        if number < self.next {
            self.late += 1;
        } else {
            self.next = number.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(numbers: impl IntoIterator<Item = (u32, u64)>) -> ListeningPort {
        let mut tally = Tally::default();
        for (flow, sequence) in numbers {
            let header = Header {
                length: 28,
                flow,
                sequence,
                sent: 100,
            };
            tally.message(&header.to_bytes(), 1100);
        }
        tally.message(b"hello", 0);
        tally.port(SocketAddr::from(([127, 0, 0, 1], 1)), None)
    }

    #[test]
    fn losses_and_overtaking_are_told_per_sender() {
        let port = tally([(1, 0), (2, 0), (1, 3), (1, 2), (2, 1)]);
        let one = SenderCounts {
            flow: 1,
            packets: 3,
            lost: 1,
            late: 1,
        };
        let two = SenderCounts {
            flow: 2,
            packets: 2,
            lost: 0,
            late: 0,
        };
        assert_eq!(port.flows, [one, two]);
        assert_eq!((port.packets, port.bytes, port.foreign), (5, 140, 1));
        assert_eq!((port.latency.min, port.latency.max), (1000, 1000));
    }

    #[test]
    fn a_sender_who_invents_flows_fills_no_memory() {
        let port = tally((0..5000).map(|flow| (flow, u64::MAX)));
        assert_eq!((port.flows.len(), port.foreign), (FLOWS, 5000 - 1024 + 1));
    }
}
