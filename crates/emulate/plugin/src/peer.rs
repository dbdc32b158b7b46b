// SPDX-License-Identifier: MIT OR Apache-2.0
//! The peer, independent of QEMU.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use weir_arrivals::{Arrivals, Pattern};

use crate::CLOCK_HZ;
use crate::cable::{Cable, LEAST};
use crate::error::PlanError;
use crate::flood::Flood;
use crate::plan::Plan;
use crate::report::Report;
use crate::station::Station;

/// The guest's network card.
pub trait Card {
    /// Passes a frame to the card. Its last bit arrives now. Returns false if the card did not
    /// accept it.
    fn receive(&mut self, frame: &[u8]) -> bool;
}

/// The peer. Its caller has to call [`Self::advance`] at each time that [`Self::next`] returns, and
/// [`Self::receive`] when the guest sends a frame.
pub struct Peer {
    end: u64,
    station: Station,
    pings: Option<Pings>,
    flood: Option<Flood>,
    to_guest: Cable,
    from_guest: Cable,
    flying: BinaryHeap<Reverse<Flight>>,
    flights: u64,
    report: Report,
    digest: Sha256,
}

/// A frame on the wire. Frames arrive in the order of their arrival times; frames of the same time
/// arrive in the order in which they were started.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    lands: u64,
    number: u64,
    is_for_guest: bool,
    frame: Vec<u8>,
}

/// The times at which the station sends echo requests.
struct Pings {
    arrivals: Arrivals,
    begin: u64,
    left: u16,
    next: Option<u64>,
}

impl Pings {
    fn find_next(&mut self) {
        self.next = match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                self.arrivals.next().map(|arrival| self.begin + arrival.at)
            }
            None => None,
        };
    }
}

impl Peer {
    /// Makes a peer for a plan.
    ///
    /// # Errors
    /// Fails if a pattern of the plan cannot be started.
    pub fn new(plan: &Plan) -> Result<Self, PlanError> {
        let pings = match &plan.pings {
            Some(pings) => {
                let mut begun = Pings {
                    arrivals: Pattern::parse(&pings.pattern, CLOCK_HZ)?.start(CLOCK_HZ, 0)?,
                    begin: pings.begin,
                    left: pings.count,
                    next: None,
                };
                begun.find_next();
                Some(begun)
            }
            None => None,
        };
        Ok(Self {
            end: plan.end,
            station: Station::with_plan(plan)?,
            pings,
            flood: Flood::new(plan)?,
            to_guest: Cable::default(),
            from_guest: Cable::default(),
            flying: BinaryHeap::new(),
            flights: 0,
            report: Report::default(),
            digest: Sha256::new(),
        })
    }

    /// Returns the time at which the peer has to be called next. `None` if the run is over.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        if self.report.planned_end {
            return None;
        }
        let times = [
            Some(self.end),
            self.station.wanted(),
            self.pings.as_ref().and_then(|pings| pings.next),
            self.flood.as_ref().and_then(Flood::next),
            self.flying.peek().map(|Reverse(flight)| flight.lands),
        ];
        times.into_iter().flatten().min()
    }

    /// Does everything that is due at `now`. Returns whether the run is over.
    pub fn advance(&mut self, now: u64, card: &mut impl Card) -> bool {
        while let Some(due) = self.next().filter(|due| *due <= now) {
            self.report.late_ns = self.report.late_ns.max(now - due);
            self.report.last_ns = now;
            if due == self.end {
                self.report.planned_end = true;
                break;
            }
            self.do_due(due, now, card);
        }
        self.report.planned_end
    }

    /// Does one action that is due at `due`. At the same time, frames arrive before others are
    /// sent.
    fn do_due(&mut self, due: u64, now: u64, card: &mut impl Card) {
        if self.flying.peek().is_some_and(|f| f.0.lands == due) {
            if let Some(Reverse(flight)) = self.flying.pop() {
                self.land(flight, now, card);
            }
        } else if let Some(flood) = self.flood.as_mut().filter(|f| f.next() == Some(due)) {
            let digest = &mut self.digest;
            flood.send(now, |frame| {
                note(digest, b'F', now, frame);
                card.receive(frame)
            });
        } else if let Some(pings) = self.pings.as_mut().filter(|p| p.next == Some(due)) {
            self.station.ping(now);
            pings.find_next();
        } else {
            for mut frame in self.station.step(now) {
                if frame.len() < LEAST {
                    frame.resize(LEAST, 0);
                }
                let lands = self.to_guest.carry(now, frame.len());
                self.fly(lands, true, frame);
            }
        }
    }

    /// Takes a frame that the guest starts to send at `now`. Nothing reaches the guest before the
    /// next call of [`Self::advance`].
    pub fn receive(&mut self, now: u64, frame: &[u8]) {
        if self.report.planned_end {
            return;
        }
        note(&mut self.digest, b'G', now, frame);
        self.report.from_guest += 1;
        self.report.last_ns = now;
        let lands = self.from_guest.carry(now, frame.len());
        self.fly(lands, false, frame.to_vec());
    }

    /// Resets the counts of the flood.
    pub fn clear_flood(&mut self) {
        if let Some(flood) = &mut self.flood {
            flood.clear();
        }
    }

    /// Returns the results so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        report.pings = self.station.pings().to_vec();
        report.dhcp = self.station.dhcp();
        report.clients = self.station.clients();
        report.wire_wait_ns = self.from_guest.longest_wait();
        report.flood = self.flood.as_ref().map(Flood::report);
        for byte in self.digest.clone().finalize() {
            write!(report.digest, "{byte:02x}").expect("a String takes any text");
        }
        report
    }

    fn fly(&mut self, lands: u64, is_for_guest: bool, frame: Vec<u8>) {
        self.flights += 1;
        self.flying.push(Reverse(Flight {
            lands,
            number: self.flights,
            is_for_guest,
            frame,
        }));
    }

    fn land(&mut self, flight: Flight, now: u64, card: &mut impl Card) {
        if flight.is_for_guest {
            note(&mut self.digest, b'S', now, &flight.frame);
            self.report.to_guest += 1;
            if !card.receive(&flight.frame) {
                self.report.to_guest_lost += 1;
            }
            return;
        }
        let answers = |flood: &mut Flood| flood.take_answer(now, &flight.frame);
        if !self.flood.as_mut().is_some_and(answers) {
            self.station.receive(now, flight.frame);
        }
    }
}

fn note(digest: &mut Sha256, what: u8, now: u64, frame: &[u8]) {
    digest.update([what]);
    digest.update(now.to_le_bytes());
    digest.update((frame.len() as u64).to_le_bytes());
    digest.update(frame);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::PEER_ETHERNET;
    use std::net::Ipv4Addr;

    /// A card with room for `room` frames. Its guest handles a frame every `work` nanoseconds and
    /// answers it with a station of its own.
    struct Guest {
        now: u64,
        room: usize,
        work: u64,
        frames: Vec<Vec<u8>>,
        busy_until: u64,
    }

    impl Card for Guest {
        fn receive(&mut self, frame: &[u8]) -> bool {
            if self.frames.is_empty() {
                self.busy_until = self.busy_until.max(self.now + self.work);
            }
            let fits = self.frames.len() < self.room;
            if fits {
                self.frames.push(frame.to_vec());
            }
            fits
        }
    }

    fn run(plan: &str, room: usize, work: u64) -> Report {
        let plan = Plan::parse(plan).unwrap();
        let mut peer = Peer::new(&plan).unwrap();
        let mut station = Station::new(Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1));
        let mut guest = Guest {
            now: 0,
            room,
            work,
            frames: Vec::new(),
            busy_until: 0,
        };
        while let Some(due) = peer.next() {
            let reads = Some(guest.busy_until).filter(|_| !guest.frames.is_empty());
            guest.now = reads.unwrap_or(u64::MAX).min(due);
            if guest.now == due {
                peer.advance(due, &mut guest);
                continue;
            }
            let frame = guest.frames.remove(0);
            guest.busy_until = guest.now + guest.work;
            station.receive(guest.now, frame);
            for answer in station.step(guest.now) {
                peer.receive(guest.now, &answer);
            }
        }
        peer.report()
    }

    /// Returns a plan. All stations have the same MAC address in these tests, including the
    /// guest's.
    fn plan(rest: &str) -> String {
        let ethernet = PEER_ETHERNET.map(|byte| byte.to_string()).join(", ");
        format!(r#"{{"end": "50ms", "guest_ethernet": [{ethernet}], {rest}}}"#)
    }

    #[test]
    fn a_round_trip_is_twice_the_wire_and_the_work() {
        let text = plan(r#""pings": {"pattern": "1kHz", "count": 3, "begin": "1ms"}"#);
        let report = run(&text, 10, 20_000);
        let trips: Vec<_> = report.pings.iter().map(|p| p.round_trip_ns).collect();
        // The echo frame has 98 bytes, or 110 with preamble and checksum.
        let echo = 2 * 110 * 80 + 20_000;
        let arp = 2 * 72 * 80 + 20_000;
        assert_eq!(trips, [Some(arp + echo), Some(echo), Some(echo)]);
        assert!(report.planned_end);
        assert_eq!((report.late_ns, report.last_ns), (0, 50_000_000));
        assert_eq!(
            (report.from_guest, report.to_guest, report.to_guest_lost),
            (4, 4, 0)
        );
    }

    #[test]
    fn a_flood_fills_the_card_and_the_rest_is_lost() {
        let flood = |pattern: &str| {
            plan(&format!(
                r#""pings": {{"pattern": "1kHz", "count": 1, "begin": "1ms"}},
                   "flood": {{"pattern": "{pattern}", "begin": "2ms", "end": "12ms"}}"#
            ))
        };
        let slow = run(&flood("1kHz"), 10, 20_000).flood.unwrap();
        assert_eq!((slow.sent, slow.lost, slow.answered), (10, 0, 10));
        let fast = run(&flood("poisson:120kHz"), 10, 20_000);
        assert_eq!(fast, run(&flood("poisson:120kHz"), 10, 20_000));
        let fast = fast.flood.unwrap();
        assert_eq!(fast.sent, fast.lost + fast.answered);
        // 10 ms with a frame every 20 us, plus the frames that the card holds.
        assert!((495..=512).contains(&fast.answered), "{}", fast.answered);
        assert!(fast.lost > 500);
    }

    #[test]
    fn after_the_end_nothing_counts() {
        let mut peer = Peer::new(&Plan::parse(r#"{"end": "1ms"}"#).unwrap()).unwrap();
        let mut guest = Guest {
            now: 0,
            room: 1,
            work: 1,
            frames: Vec::new(),
            busy_until: 0,
        };
        assert_eq!(peer.next(), Some(1_000_000));
        assert!(!peer.advance(999_999, &mut guest));
        assert!(peer.advance(1_000_008, &mut guest));
        peer.receive(1_000_009, &[0; 60]);
        let report = peer.report();
        assert_eq!((report.from_guest, report.late_ns), (0, 8));
        assert_eq!(peer.next(), None);
    }
}
