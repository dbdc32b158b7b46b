// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rates between which a limit may be chosen.

use weir_model::Rates;

/// The share of the tolerated rates that limits are asked to let through, in percent: λ in decision
/// 0005.
pub type Percent = u32;

/// The whole of the tolerated rates, in percent.
pub const WHOLE: Percent = 100;

/// The relative difference up to which two rates count as equal. It is far above the error of a few
/// operations of f64, and far below a tick of any timer.
pub(crate) const SAME: f64 = 1e-12;

/// The rates of one source between which its limit may lie, in hertz.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    expected: Option<f64>,
    tolerated: Option<f64>,
    over_admission: f64,
}

impl Band {
    /// The band of a source that states at least one of the two rates; `None` if it states neither.
    /// A limit may let through at most `over_admission` (0.1 is 10 %) more than is asked of it.
    #[must_use]
    pub fn new(rates: &Rates, over_admission: f64) -> Option<Self> {
        let (expected, tolerated) = (
            rates.expected.map(weir_model::Rate::hertz),
            rates.tolerated.map(weir_model::Rate::hertz),
        );
        (expected.is_some() || tolerated.is_some()).then_some(Self {
            expected,
            tolerated,
            over_admission,
        })
    }

    /// The same band with an expected rate of at least `hertz`.
    #[must_use]
    pub fn at_least(self, hertz: f64) -> Self {
        let expected = self.expected.unwrap_or(0.0).max(hertz);
        Self {
            expected: (expected > 0.0).then_some(expected),
            ..self
        }
    }

    /// The least rate, in hertz, that the limit has to let through. It is the expected rate, or
    /// `scale` percent of the tolerated one if that is more.
    #[must_use]
    pub fn asked(&self, scale: Percent) -> f64 {
        let share = self
            .tolerated
            .map(|tolerated| tolerated * f64::from(scale) / f64::from(WHOLE));
        match (self.expected, share) {
            (Some(expected), Some(share)) => expected.max(share),
            (expected, share) => expected.or(share).unwrap_or(0.0),
        }
    }

    /// The highest rate, in hertz, that the limit may let through.
    #[must_use]
    pub fn most(&self, scale: Percent) -> f64 {
        let most = self.asked(scale) * (1.0 + self.over_admission);
        self.tolerated.map_or(most, |tolerated| tolerated.min(most))
    }

    /// Whether the scale changes the rate that is asked of the limit.
    #[must_use]
    pub fn is_scaled(&self) -> bool {
        self.tolerated.is_some()
    }

    /// The longest interval, in cycles, in which `burst` requests are no less than `asked` hertz.
    #[must_use]
    pub fn longest(asked: f64, burst: u32, clock_hz: u64) -> u64 {
        (f64::from(burst) * clock_hz as f64 / asked * (1.0 + SAME)) as u64
    }

    /// The shortest interval, in cycles, in which `burst` requests are no more than `most` hertz;
    /// at least 1.
    #[must_use]
    pub fn shortest(most: f64, burst: u32, clock_hz: u64) -> u64 {
        ((f64::from(burst) * clock_hz as f64 / most * (1.0 - SAME)).ceil() as u64).max(1)
    }

    /// The fewest requests per `interval` cycles that are no less than `asked` hertz; `None` if
    /// they exceed `most`.
    #[must_use]
    pub fn burst(asked: f64, interval: u64, clock_hz: u64, most: u32) -> Option<u32> {
        let requests = asked * interval as f64 / clock_hz as f64 * (1.0 - SAME);
        (requests <= f64::from(most)).then(|| (requests.ceil() as u32).max(1))
    }
}

/// The rate of `burst` requests per `interval` cycles, in hertz.
#[must_use]
pub fn hertz(burst: u32, interval: u64, clock_hz: u64) -> f64 {
    f64::from(burst) * clock_hz as f64 / interval.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_model::Rate;

    fn band(expected: Option<f64>, tolerated: Option<f64>) -> Band {
        let rate = |hertz: Option<f64>| hertz.map(|hertz| Rate::from_hertz(hertz).unwrap());
        let rates = Rates {
            expected: rate(expected),
            tolerated: rate(tolerated),
            worst: None,
            worst_name: None,
        };
        Band::new(&rates, 0.1).unwrap()
    }

    #[test]
    fn the_expected_rate_is_the_least_and_the_tolerated_the_most() {
        let both = band(Some(300.0), Some(1000.0));
        assert_eq!((both.asked(10), both.most(10)), (300.0, 330.0));
        assert_eq!((both.asked(50), both.asked(95)), (500.0, 950.0));
        assert_eq!(both.most(95), 1000.0);
        let expected = band(Some(200.0), None);
        assert_eq!(expected.asked(1), 200.0);
        assert!((expected.most(1) - 220.0).abs() < 1e-9 && !expected.is_scaled());
    }

    proptest! {
        #[test]
        fn intervals_and_bursts_keep_to_the_rates(asked in 0.1..1e6_f64, burst in 1..255_u32, clock in 1_000_000..200_000_000_u64) {
            let longest = Band::longest(asked, burst, clock);
            prop_assume!(longest > 0);
            prop_assert!(hertz(burst, longest, clock) >= asked * (1.0 - 1e-9));
            prop_assert!(hertz(burst, longest + 1, clock) < asked * (1.0 + 1e-9));
            let shortest = Band::shortest(asked, burst, clock);
            prop_assert!(hertz(burst, shortest, clock) <= asked * (1.0 + 1e-9));
            prop_assert!(longest <= shortest && shortest <= longest + 1);
            prop_assert!(Band::burst(asked, longest, clock, 255).is_some_and(|least| least <= burst));
        }
    }
}
