// SPDX-License-Identifier: MIT OR Apache-2.0
//! Floods of prepared frames, which need no TCP/IP stack.
use std::collections::HashMap;

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, Icmpv4Packet, Icmpv4Repr, IpProtocol, Ipv4Packet,
};
use weir_arrivals::{Arrivals, Pattern};

use crate::CLOCK_HZ;
use crate::error::PlanError;
use crate::frame::FrameKind;
use crate::packet::{Frames, IDENTIFIER};
use crate::plan::Plan;
use crate::report::{FloodReport, RoundTrips};

/// The state of a flood.
pub struct Flood {
    arrivals: Arrivals,
    next: Option<u64>,
    begin: u64,
    end: u64,
    number: u64,
    frames: Frames,
    /// Whether the frames are requests whose answers are counted.
    asks: bool,
    /// The arrival time of each unanswered request, by sequence number. There are 65,536 numbers,
    /// so an answer that is late by a whole round counts for the wrong request.
    open: HashMap<u16, u64>,
    counts: FloodReport,
    sum_ns: u64,
}

impl Flood {
    /// Makes the flood of a plan. `None` if the plan has no flood.
    ///
    /// # Errors
    /// Fails if the pattern cannot be started.
    pub fn new(plan: &Plan) -> Result<Option<Self>, PlanError> {
        let Some(flood) = &plan.flood else {
            return Ok(None);
        };
        let arrivals = Pattern::parse(&flood.pattern, CLOCK_HZ)?.start(CLOCK_HZ, flood.seed)?;
        let mut begun = Self {
            arrivals,
            next: None,
            begin: flood.begin,
            end: flood.end,
            number: 0,
            frames: Frames::new(plan, flood)?,
            asks: flood.frames == FrameKind::Echo,
            open: HashMap::new(),
            counts: FloodReport::default(),
            sum_ns: 0,
        };
        begun.find_next();
        Ok(Some(begun))
    }

    /// Returns the time at which the next frame has to reach the card. `None` if there are no more
    /// frames.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// Passes the next frame to `deliver`, which returns whether the card accepted it.
    pub fn send(&mut self, now: u64, deliver: impl FnOnce(&[u8]) -> bool) {
        #[expect(clippy::cast_possible_truncation, reason = "sequence numbers go round")]
        let sequence = self.number as u16;
        self.number += 1;
        self.counts.sent += 1;
        let took = deliver(self.frames.next(sequence));
        // From now on an answer to an earlier request of the same number cannot be distinguished
        // from an answer to this one.
        self.open.remove(&sequence);
        if took && self.asks {
            self.open.insert(sequence, now);
        }
        self.counts.lost += u64::from(!took);
        self.find_next();
    }

    /// Handles a frame from the guest that arrived at `now`. Returns false if it does not answer
    /// the flood.
    pub fn take_answer(&mut self, now: u64, frame: &[u8]) -> bool {
        let Some(sequence) = answer(frame) else {
            return false;
        };
        if let Some(sent) = self.open.remove(&sequence) {
            let trip = now - sent;
            self.counts.answered += 1;
            self.sum_ns += trip;
            let trips = self.counts.round_trips.get_or_insert(RoundTrips {
                least_ns: trip,
                mean_ns: trip,
                most_ns: trip,
            });
            trips.least_ns = trips.least_ns.min(trip);
            trips.most_ns = trips.most_ns.max(trip);
            trips.mean_ns = self.sum_ns / self.counts.answered;
        }
        true
    }

    /// Resets the counts. Later answers to earlier frames are still counted.
    pub fn clear(&mut self) {
        self.counts = FloodReport::default();
        self.sum_ns = 0;
    }

    /// Returns the results so far.
    #[must_use]
    pub fn report(&self) -> FloodReport {
        self.counts.clone()
    }

    fn find_next(&mut self) {
        self.next = self
            .arrivals
            .next()
            .map(|arrival| self.begin + arrival.at)
            .filter(|at| *at < self.end);
    }
}

/// Returns the sequence number of an answer to a flood. `None` for any other frame, including
/// malformed ones.
fn answer(frame: &[u8]) -> Option<u16> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    let ipv4 = Ipv4Packet::new_checked(ethernet.payload()).ok()?;
    if ipv4.next_header() != IpProtocol::Icmp {
        return None;
    }
    let icmp = Icmpv4Packet::new_checked(ipv4.payload()).ok()?;
    match Icmpv4Repr::parse(&icmp, &ChecksumCapabilities::default()).ok()? {
        Icmpv4Repr::EchoReply {
            ident: IDENTIFIER,
            seq_no,
            ..
        } => Some(seq_no),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::HEADERS;
    use proptest::prelude::*;

    fn flood(pattern: &str) -> Flood {
        let text = format!(
            r#"{{"end": "1s", "flood": {{"pattern": "{pattern}", "begin": "1ms", "end": "2ms"}}}}"#
        );
        Flood::new(&Plan::parse(&text).unwrap()).unwrap().unwrap()
    }

    fn times(mut flood: Flood) -> Vec<u64> {
        let mut times = Vec::new();
        while let Some(at) = flood.next() {
            times.push(at);
            flood.send(at, |_| true);
        }
        times
    }

    #[test]
    fn frames_come_at_the_times_of_the_pattern_and_no_others() {
        assert_eq!(
            times(flood("4kHz:phase=10us")),
            [1_010_000, 1_260_000, 1_510_000, 1_760_000]
        );
        let random = times(flood("poisson:120kHz:seed=7"));
        assert_eq!(random, times(flood("poisson:120kHz:seed=7")));
        assert_ne!(random, times(flood("poisson:120kHz:seed=8")));
        assert!(random.iter().all(|at| (1_000_000..2_000_000).contains(at)));
        assert!((80..160).contains(&random.len()), "{}", random.len());
    }

    #[test]
    fn each_frame_is_sent_lost_or_answered_by_its_number() {
        let mut flood = flood("4kHz");
        let mut frames = Vec::new();
        for took in [true, false, true] {
            flood.send(1000, |frame| {
                frames.push(frame.to_vec());
                took
            });
        }
        for frame in &mut frames {
            let ethernet = EthernetFrame::new_checked(&frame[..]).unwrap();
            let ipv4 = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
            assert!(ipv4.verify_checksum());
            let mut icmp = Icmpv4Packet::new_checked(&mut frame[HEADERS - 8..]).unwrap();
            assert!(icmp.verify_checksum());
            // A request does not count as an answer.
            icmp.set_msg_type(smoltcp::wire::Icmpv4Message::EchoReply);
            icmp.fill_checksum();
        }
        assert!(flood.take_answer(1500, &frames[2]));
        // A repeated answer counts once. An answer to a frame that the card did not accept is not
        // counted.
        assert!(flood.take_answer(1600, &frames[2]));
        assert!(flood.take_answer(1600, &frames[1]));
        assert!(flood.take_answer(3000, &frames[0]));
        let report = flood.report();
        assert_eq!((report.sent, report.lost, report.answered), (3, 1, 2));
        let trips = report.round_trips.unwrap();
        assert_eq!(
            (trips.least_ns, trips.mean_ns, trips.most_ns),
            (500, 1250, 2000)
        );
    }

    proptest! {
        #[test]
        fn broken_frames_are_no_answers(mut frame in proptest::collection::vec(any::<u8>(), 0..100), cut in 0usize..60) {
            prop_assert_eq!(answer(&frame), None);
            let mut flood = flood("4kHz");
            flood.send(1000, |whole| { frame = whole[..cut].to_vec(); true });
            prop_assert!(!flood.take_answer(2000, &frame));
        }
    }
}
