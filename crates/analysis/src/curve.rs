// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrival curves: the most events in any window of a given length in cycles.

use response_time_analysis::arrival::ArrivalBound;
use response_time_analysis::time::Duration;

/// The longest time that is distinguished, in cycles: about 36 years at 1 GHz. Sums stay below it,
/// so that no arithmetic of Weir or of a library can overflow.
pub const FOREVER: u64 = 1 << 60;

/// A curve of `base + step * floor((delta - 1 + jitter) / period)` events in any half-open window
/// of `delta` > 0 cycles, and 0 events in an empty window.
///
/// The curve of every limiter of core/CONTRACTS.md has this form; there t = delta - 1, because its
/// windows are closed. A sporadic task with release jitter also has it (base = step = 1), and so
/// has a single burst (step = 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staircase {
    /// Events that can come at one instant.
    pub base: u64,
    /// Events that each further period adds.
    pub step: u64,
    /// The period in cycles, at least 1.
    pub period: u64,
    /// The most cycles by which an event may be late.
    pub jitter: u64,
}

impl Staircase {
    /// A curve of one event per `period` cycles, each up to `jitter` cycles late.
    #[must_use]
    pub fn sporadic(period: u64, jitter: u64) -> Self {
        Self {
            base: 1,
            step: 1,
            period: period.max(1),
            jitter,
        }
    }

    /// A curve of `base` events that come only once.
    #[must_use]
    pub fn once(base: u64) -> Self {
        Self {
            base,
            step: 0,
            period: 1,
            jitter: 0,
        }
    }

    /// The most events in any window of `delta` cycles.
    #[must_use]
    pub fn events(self, delta: u64) -> u64 {
        if delta == 0 {
            return 0;
        }
        if self.step == 0 {
            return self.base;
        }
        let periods = (delta - 1).saturating_add(self.jitter) / self.period;
        self.base.saturating_add(self.step.saturating_mul(periods))
    }

    /// The length in cycles of the shortest window that can have `events` > 0 events; `None` if no
    /// window can.
    fn window_of(self, events: u64) -> Option<u64> {
        if events <= self.base {
            return Some(1);
        }
        if self.step == 0 {
            return None;
        }
        let periods = (events - self.base).div_ceil(self.step);
        let start = periods.saturating_mul(self.period);
        Some(start.saturating_sub(self.jitter).saturating_add(1))
    }

    /// Events per cycle in the long run.
    fn rate(self) -> f64 {
        self.step as f64 / self.period as f64
    }

    /// Events at time zero of the line with slope [`Self::rate`] that touches the staircase from
    /// above.
    fn upper_intercept(self) -> f64 {
        self.base as f64 + self.rate() * self.jitter as f64
    }

    /// Events at time zero of the line with slope [`Self::rate`] that touches the staircase from
    /// below.
    fn intercept(self) -> f64 {
        self.base as f64 + self.rate() * (self.jitter as f64 - self.period as f64)
    }
}

/// The minimum of several staircases at each length of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    first: Staircase,
    rest: Vec<Staircase>,
}

impl Curve {
    /// The curve that consists of one staircase.
    #[must_use]
    pub fn new(first: Staircase) -> Self {
        Self {
            first,
            rest: Vec::new(),
        }
    }

    /// The minimum of this curve and `other` at each length.
    #[must_use]
    pub fn and(mut self, other: Staircase) -> Self {
        self.rest.push(other);
        self
    }

    /// The staircases whose minimum is the curve.
    pub fn staircases(&self) -> impl Iterator<Item = Staircase> + '_ {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }

    /// The curve with one event fewer in every window.
    #[must_use]
    pub fn less_one(&self) -> Self {
        let less = |staircase: Staircase| Staircase {
            base: staircase.base.saturating_sub(1),
            ..staircase
        };
        Self {
            first: less(self.first),
            rest: self.rest.iter().copied().map(less).collect(),
        }
    }

    /// The curve with `times` events in place of each event.
    #[must_use]
    pub fn times(&self, times: u64) -> Self {
        let scaled = |staircase: Staircase| Staircase {
            base: staircase.base.saturating_mul(times),
            step: staircase.step.saturating_mul(times),
            ..staircase
        };
        Self {
            first: scaled(self.first),
            rest: self.rest.iter().copied().map(scaled).collect(),
        }
    }

    /// The most events in any half-open window of `delta` cycles.
    #[must_use]
    pub fn events(&self, delta: u64) -> u64 {
        self.rest.iter().fold(self.first.events(delta), |least, s| {
            least.min(s.events(delta))
        })
    }

    /// The length in cycles of the shortest window that can have `events` > 0 events; `None` if no
    /// window can.
    #[must_use]
    pub fn window_of(&self, events: u64) -> Option<u64> {
        self.staircases()
            .map(|staircase| staircase.window_of(events))
            .try_fold(1, |longest, window| Some(longest.max(window?)))
    }

    /// Events per cycle in the long run.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.staircases()
            .map(Staircase::rate)
            .fold(f64::INFINITY, f64::min)
    }

    /// Events at time zero of a line with slope [`Self::rate`] that lies nowhere above the curve.
    /// The number may be negative.
    #[must_use]
    pub fn intercept(&self) -> f64 {
        self.staircases()
            .map(Staircase::intercept)
            .fold(f64::INFINITY, f64::min)
    }

    /// Events at time zero, and events per cycle, of a line that lies nowhere below the curve. It
    /// is the line of the staircase with the least rate.
    #[must_use]
    pub fn upper_line(&self) -> (f64, f64) {
        self.staircases()
            .map(|staircase| (staircase.upper_intercept(), staircase.rate()))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap_or((0.0, 0.0))
    }
}

impl ArrivalBound for Curve {
    fn number_arrivals(&self, delta: Duration) -> usize {
        usize::try_from(self.events(delta.into())).unwrap_or(usize::MAX)
    }

    fn steps_iter<'a>(&'a self) -> Box<dyn Iterator<Item = Duration> + 'a> {
        Box::new(
            std::iter::successors(self.window_of(1), |&delta| {
                self.window_of(self.events(delta).checked_add(1)?)
            })
            .take_while(|&delta| delta < FOREVER)
            .map(Duration::from),
        )
    }

    fn clone_with_jitter(&self, jitter: Duration) -> Box<dyn ArrivalBound> {
        let late = |staircase: Staircase| Staircase {
            jitter: staircase.jitter.saturating_add(jitter.into()),
            ..staircase
        };
        Box::new(Self {
            first: late(self.first),
            rest: self.rest.iter().copied().map(late).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn staircase() -> impl Strategy<Value = Staircase> {
        (0..5_u64, 0..4_u64, 1..20_u64, 0..30_u64).prop_map(|(base, step, period, jitter)| {
            Staircase {
                base,
                step,
                period,
                jitter,
            }
        })
    }

    proptest! {
        #[test]
        fn the_steps_are_where_the_curve_rises(first in staircase(), second in staircase()) {
            let curve = Curve::new(first).and(second);
            let rises: Vec<u64> = (1..200).filter(|&delta| curve.events(delta) > curve.events(delta - 1)).collect();
            let steps: Vec<u64> = curve.steps_iter().map(u64::from).take_while(|&delta| delta < 200).collect();
            prop_assert_eq!(steps, rises);
        }

        #[test]
        fn a_curve_lies_above_its_line(first in staircase(), second in staircase(), delta in 1..1000_u64) {
            let curve = Curve::new(first).and(second);
            let line = curve.intercept() + curve.rate() * delta as f64;
            prop_assert!(curve.events(delta) as f64 >= line - 1e-9);
            let (at_zero, slope) = curve.upper_line();
            prop_assert!(curve.events(delta) as f64 <= at_zero + slope * delta as f64 + 1e-9);
        }

        #[test]
        fn nothing_overflows(base: u64, step: u64, period in 1..u64::MAX, jitter: u64, delta: u64, events in 1..u64::MAX) {
            let curve = Curve::new(Staircase { base, step, period, jitter }).times(7);
            let _ = (curve.events(delta), curve.window_of(events));
            let _ = curve.steps_iter().take(50).count();
        }
    }

    #[test]
    fn a_sporadic_task_is_the_librarys() {
        use response_time_analysis::arrival::Sporadic;
        let ours = Curve::new(Staircase::sporadic(10, 25));
        let theirs = Sporadic::new(Duration::from(10), Duration::from(25));
        for delta in (0..100).map(Duration::from) {
            assert_eq!(ours.number_arrivals(delta), theirs.number_arrivals(delta));
        }
    }
}
