// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrival curves and demands (docs/analysis.md, "Curves").

use crate::format::Steps;

/// The largest window that a certificate may speak of, in cycles: about 36 years at 1 GHz.
pub(crate) const LONGEST_WINDOW: u64 = 1 << 60;

/// The largest jitter, so that a window and a jitter never overflow together.
pub(crate) const LONGEST_JITTER: u64 = 1 << 62;

/// A number of the system is beyond what this program can calculate with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// `base + step * floor((window - 1 + jitter) / period)` events in any half-open window of more
/// than 0 cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Staircase {
    base: u64,
    step: u64,
    period: u64,
    jitter: u64,
}

impl Staircase {
    fn events(self, window: u64) -> u64 {
        let Some(last) = window.checked_sub(1) else {
            return 0;
        };
        if self.step == 0 {
            return self.base;
        }
        // Neither sum nor quotient can fail: the jitter is at most LONGEST_JITTER and the period at
        // least 1.
        let periods = last
            .saturating_add(self.jitter)
            .checked_div(self.period)
            .unwrap_or(u64::MAX);
        self.base.saturating_add(self.step.saturating_mul(periods))
    }
}

/// The least of several staircases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Curve(Vec<Staircase>);

impl Curve {
    /// `base` events at once and `step` more each `period`, which is taken for 1 if it is 0.
    pub(crate) fn stairs(
        base: u64,
        step: u64,
        period: u64,
        jitter: u128,
    ) -> Result<Self, TooLarge> {
        let jitter = u64::try_from(jitter)
            .ok()
            .filter(|&jitter| jitter <= LONGEST_JITTER)
            .ok_or(TooLarge)?;
        Ok(Self(vec![Staircase {
            base,
            step,
            period: period.max(1),
            jitter,
        }]))
    }

    /// What comes once.
    pub(crate) fn once() -> Self {
        Self(vec![Staircase {
            base: 1,
            step: 0,
            period: 1,
            jitter: 0,
        }])
    }

    /// The lower of the two everywhere.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// One event less.
    pub(crate) fn less_one(&self) -> Self {
        let mut less = self.clone();
        for stairs in &mut less.0 {
            stairs.base = stairs.base.saturating_sub(1);
        }
        less
    }

    /// `times` as many events.
    pub(crate) fn times(mut self, times: u64) -> Self {
        for stairs in &mut self.0 {
            stairs.base = stairs.base.saturating_mul(times);
            stairs.step = stairs.step.saturating_mul(times);
        }
        self
    }

    /// The most events in any half-open window of so many cycles.
    pub(crate) fn events(&self, window: u64) -> u64 {
        let each = self.0.iter().map(|stairs| stairs.events(window));
        each.min().unwrap_or(u64::MAX)
    }

    /// Is it the curve that the certificate states?
    pub(crate) fn is(&self, stated: &[Steps]) -> bool {
        let own =
            |stairs: &Staircase| Steps(stairs.base, stairs.step, stairs.period, stairs.jitter);
        self.0.iter().map(own).eq(stated.iter().copied())
    }
}

/// Work: each event of a curve costs so many cycles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) cost: u64,
    pub(crate) curve: Curve,
}

impl Demand {
    pub(crate) fn new(cost: u64, curve: Curve) -> Self {
        Self { cost, curve }
    }

    /// The most cycles asked for in any half-open window of so many cycles. What overflows
    /// saturates, far beyond every window.
    pub(crate) fn cycles(&self, window: u64) -> u64 {
        self.cost.saturating_mul(self.curve.events(window))
    }

    /// The share of the processor in the long run, in units of 2⁻⁶⁴ and rounded down; at most 2⁶⁴,
    /// all of it.
    pub(crate) fn share(&self) -> u128 {
        let of = |stairs: &Staircase| {
            let cycles = u128::from(self.cost) * u128::from(stairs.step);
            let period = u128::from(stairs.period);
            if cycles >= period {
                ALL
            } else {
                (cycles << 64).checked_div(period).unwrap_or(ALL)
            }
        };
        self.curve.0.iter().map(of).min().unwrap_or(ALL)
    }
}

/// All of the processor, in the units of [`Demand::share`].
pub(crate) const ALL: u128 = 1 << 64;

/// The most cycles that all of `demands` ask for in any window of so many cycles.
pub(crate) fn cycles<'a>(demands: impl IntoIterator<Item = &'a Demand>, window: u64) -> u64 {
    demands.into_iter().fold(0, |sum: u64, demand| {
        sum.saturating_add(demand.cycles(window))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_the_least_of_its_staircases_in_half_open_windows() {
        let curve = Curve::stairs(2, 3, 10, 4)
            .unwrap()
            .and(Curve::stairs(4, 1, 5, 0).unwrap());
        // (2, 3, 10, 4) rises with 7, 17, 27, ...; (4, 1, 5, 0) with 6, 11, 16, 21, ...
        let events: Vec<u64> = [0, 1, 6, 7, 16, 17, 26]
            .map(|window| curve.events(window))
            .into();
        assert_eq!(events, [0, 2, 2, 5, 5, 7, 8]);
        assert_eq!(Curve::once().events(1_000_000), 1);
    }

    #[test]
    fn a_share_is_rounded_down_and_ends_at_all() {
        let share = |cost, step, period| {
            Demand::new(cost, Curve::stairs(1, step, period, 0).unwrap()).share()
        };
        assert_eq!(share(1, 1, 2), ALL / 2);
        assert_eq!(share(1, 1, 3), ALL / 3);
        assert_eq!(share(u64::MAX, u64::MAX, u64::MAX), ALL);
        assert_eq!(share(5, 1, 5), ALL);
        assert_eq!(Demand::new(7, Curve::once()).share(), 0);
    }

    #[test]
    fn jitter_that_could_overflow_is_refused() {
        assert_eq!(Curve::stairs(1, 1, 1, 1 << 63), Err(TooLarge));
        let latest = Curve::stairs(1, 1, 1, u128::from(LONGEST_JITTER)).unwrap();
        assert_eq!(
            latest.events(LONGEST_WINDOW),
            LONGEST_WINDOW + LONGEST_JITTER
        );
    }
}
