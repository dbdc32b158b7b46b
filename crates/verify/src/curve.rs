// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrival curves, and demands for processor time (docs/analysis.md, "Curves").

use crate::format::Steps;

/// The largest window in a certificate, in cycles: about 36 years at 1 GHz.
pub(crate) const LONGEST_WINDOW: u64 = 1 << 60;

/// The largest jitter. The sum of a window and a jitter never overflows.
pub(crate) const LONGEST_JITTER: u64 = 1 << 62;

/// A number of the system is too large for the calculations of this program.
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
        // The sum and the quotient cannot overflow: the jitter is at most LONGEST_JITTER, and the
        // period is at least 1.
        let periods = last
            .saturating_add(self.jitter)
            .checked_div(self.period)
            .unwrap_or(u64::MAX);
        self.base.saturating_add(self.step.saturating_mul(periods))
    }
}

/// The minimum of several staircases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Curve(Vec<Staircase>);

impl Curve {
    /// Makes a curve of `base` events at once and `step` more each `period`. A period of 0 counts
    /// as 1.
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

    /// The curve of a single event.
    pub(crate) fn once() -> Self {
        Self(vec![Staircase {
            base: 1,
            step: 0,
            period: 1,
            jitter: 0,
        }])
    }

    /// The minimum of both curves.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The curve with one event less.
    pub(crate) fn less_one(&self) -> Self {
        let mut less = self.clone();
        for stairs in &mut less.0 {
            stairs.base = stairs.base.saturating_sub(1);
        }
        less
    }

    /// The curve with `times` as many events.
    pub(crate) fn times(mut self, times: u64) -> Self {
        for stairs in &mut self.0 {
            stairs.base = stairs.base.saturating_mul(times);
            stairs.step = stairs.step.saturating_mul(times);
        }
        self
    }

    /// Returns the most events in any half-open window of `window` cycles.
    pub(crate) fn events(&self, window: u64) -> u64 {
        let each = self.0.iter().map(|stairs| stairs.events(window));
        each.min().unwrap_or(u64::MAX)
    }

    /// Returns whether this is the curve that the certificate states.
    pub(crate) fn is(&self, stated: &[Steps]) -> bool {
        let own =
            |stairs: &Staircase| Steps(stairs.base, stairs.step, stairs.period, stairs.jitter);
        self.0.iter().map(own).eq(stated.iter().copied())
    }
}

/// A demand for processor time: each event of a curve takes a fixed number of cycles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) cost: u64,
    pub(crate) curve: Curve,
}

impl Demand {
    pub(crate) fn new(cost: u64, curve: Curve) -> Self {
        Self { cost, curve }
    }

    /// Returns the most cycles requested in any half-open window of `window` cycles. The result
    /// saturates; a saturated result exceeds every window.
    pub(crate) fn cycles(&self, window: u64) -> u64 {
        self.cost.saturating_mul(self.curve.events(window))
    }

    /// Returns the long-run share of the processor, in units of 2⁻⁶⁴, rounded down and at most 2⁶⁴
    /// (the whole processor).
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

/// The whole processor, in the units of [`Demand::share`].
pub(crate) const ALL: u128 = 1 << 64;

/// Returns the most cycles that all `demands` together request in any window of `window` cycles.
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
        // (2, 3, 10, 4) increases at windows of 7, 17, 27, ...; (4, 1, 5, 0) increases at 6, 11,
        // 16, 21, ...
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
