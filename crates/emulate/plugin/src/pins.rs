// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drives the input lines of the guest's interrupt controller.
use serde::Deserialize;
use weir_arrivals::{Arrival, Arrivals, Pattern, What};

use crate::CLOCK_HZ;
use crate::error::PlanError;
use crate::report::PinReport;
use crate::times::time;

/// The guest's interrupt controller.
pub trait Controller {
    /// Sets an input line to a level.
    fn set_line(&mut self, irq: u16, is_high: bool);
    /// Returns whether a request of this line is pending.
    fn is_pending(&self, irq: u16) -> bool;
}

/// The pattern of an input line from the start of the run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinPlan {
    /// The line's number n. The line's exception number is 16 + n.
    pub irq: u16,
    /// The times of edges, as a pattern of `weir-arrivals`. A request is a pulse that ends before
    /// the next instruction. The pattern `level` sets the level of the line.
    pub pattern: String,
    /// The seed for a random pattern that states no seed.
    #[serde(default)]
    pub seed: u64,
    /// The start time of the pattern, in nanoseconds.
    #[serde(default, deserialize_with = "time")]
    pub begin: u64,
}

/// The state of a plan's lines during a run.
pub struct Pins(Vec<Pin>);

struct Pin {
    irq: u16,
    arrivals: Arrivals,
    begin: u64,
    end: u64,
    next: Option<Arrival>,
    counts: PinReport,
}

impl Pins {
    /// Starts the patterns. From `end` on there are no edges.
    ///
    /// # Errors
    /// Fails if a pattern cannot be started, or if a line has two patterns.
    pub fn new(plans: &[PinPlan], end: u64) -> Result<Self, PlanError> {
        let mut pins: Vec<Pin> = Vec::new();
        for plan in plans {
            if pins.iter().any(|pin| pin.irq == plan.irq) {
                return Err(PlanError::TwoPatterns(plan.irq));
            }
            let mut pin = Pin {
                irq: plan.irq,
                arrivals: Pattern::parse(&plan.pattern, CLOCK_HZ)?.start(CLOCK_HZ, plan.seed)?,
                begin: plan.begin,
                end,
                next: None,
                counts: PinReport {
                    irq: plan.irq,
                    ..PinReport::default()
                },
            };
            pin.find_next();
            pins.push(pin);
        }
        Ok(Self(pins))
    }

    /// Iterates over the numbers of the lines.
    pub fn irqs(&self) -> impl Iterator<Item = u16> {
        self.0.iter().map(|pin| pin.irq)
    }

    /// Returns the time of the next edge on any line. `None` if there are no more edges.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.0.iter().filter_map(|pin| Some(pin.next?.at)).min()
    }

    /// Makes all edges up to `now`. Edges of the same time are made in the order of the plan.
    pub fn advance(&mut self, now: u64, controller: &mut impl Controller) {
        for pin in &mut self.0 {
            while let Some(arrival) = pin.next.filter(|arrival| arrival.at <= now) {
                pin.move_line(arrival.what, controller);
                pin.find_next();
            }
        }
    }

    /// Resets the counts.
    pub fn clear(&mut self) {
        for pin in &mut self.0 {
            pin.counts.offered = 0;
            pin.counts.missed = 0;
        }
    }

    /// Returns the counts since the start or [`Self::clear`].
    #[must_use]
    pub fn report(&self) -> Vec<PinReport> {
        self.0.iter().map(|pin| pin.counts).collect()
    }
}

impl Pin {
    fn move_line(&mut self, what: What, controller: &mut impl Controller) {
        if what != What::Fall {
            self.counts.offered += 1;
            self.counts.missed += u64::from(controller.is_pending(self.irq));
            controller.set_line(self.irq, true);
        }
        if what != What::Rise {
            controller.set_line(self.irq, false);
        }
    }

    fn find_next(&mut self) {
        let (begin, end) = (self.begin, self.end);
        self.next = self
            .arrivals
            .next()
            .and_then(|arrival| {
                Some(Arrival {
                    at: arrival.at.checked_add(begin)?,
                    ..arrival
                })
            })
            .filter(|arrival| arrival.at < end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A controller that records edges. A rising edge makes the line pending for ever.
    #[derive(Default)]
    struct Notes(Vec<(u16, bool)>);

    impl Controller for Notes {
        fn set_line(&mut self, irq: u16, is_high: bool) {
            self.0.push((irq, is_high));
        }

        fn is_pending(&self, irq: u16) -> bool {
            self.0.contains(&(irq, true))
        }
    }

    fn pins(plans: &str) -> Result<Pins, PlanError> {
        let plans: Vec<PinPlan> = serde_json::from_str(plans).unwrap();
        Pins::new(&plans, 2_000_000)
    }

    #[test]
    fn a_request_is_a_pulse_and_those_that_find_one_waiting_are_missed() {
        let mut pins = pins(r#"[{"irq": 20, "pattern": "2kHz", "begin": "1us"}]"#).unwrap();
        let mut notes = Notes::default();
        assert_eq!(pins.next(), Some(1000));
        pins.advance(999, &mut notes);
        assert!(notes.0.is_empty());
        pins.advance(501_000, &mut notes);
        assert_eq!(notes.0, [(20, true), (20, false)].repeat(2));
        let counts = pins.report()[0];
        assert_eq!((counts.irq, counts.offered, counts.missed), (20, 2, 1));
        pins.clear();
        pins.advance(u64::MAX, &mut notes);
        // Edges are at 1001 and 1501 us. The one at 2001 us is after the end.
        assert_eq!(pins.report()[0].offered, 2);
        assert_eq!(pins.next(), None);
    }

    #[test]
    fn a_level_stays() {
        let mut pins = pins(
            r#"[{"irq": 1, "pattern": "level:low=1us:high=2us"}, {"irq": 0, "pattern": "1kHz"}]"#,
        )
        .unwrap();
        let mut notes = Notes::default();
        pins.advance(3000, &mut notes);
        assert_eq!(
            notes.0,
            [(1, false), (1, true), (1, false), (0, true), (0, false)]
        );
        assert_eq!(pins.report()[0].offered, 1);
    }

    #[test]
    fn a_line_has_one_pattern() {
        let twice = r#"[{"irq": 3, "pattern": "1kHz"}, {"irq": 3, "pattern": "2kHz"}]"#;
        let message = pins(twice).err().unwrap().to_string();
        assert!(message.contains("line 3 has two patterns"), "{message}");
        assert!(pins(r#"[{"irq": 3, "pattern": "often"}]"#).is_err());
    }
}
