// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts cycles to nanoseconds.

const NANOSECONDS: u64 = 1_000_000_000;

/// The processor's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct TraceClock {
    /// Cycles per second, at least 1.
    pub hz: u64,
}

impl TraceClock {
    /// Converts cycles to whole nanoseconds, at most [`i64::MAX`] (292 years): Perfetto stores them
    /// as a signed number.
    pub fn nanoseconds(self, cycles: u64) -> u64 {
        // The part below a second is converted separately, so that the division fits 64 bits for
        // any clock below 18 GHz.
        let (seconds, rest) = (cycles / self.hz, cycles % self.hz);
        let rest = u128::from(rest) * u128::from(NANOSECONDS) / u128::from(self.hz);
        u64::try_from(u128::from(seconds) * u128::from(NANOSECONDS) + rest)
            .unwrap_or(u64::MAX)
            .min(i64::MAX.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cycle_of_16_mhz_is_62_and_a_half_nanoseconds() {
        let clock = TraceClock { hz: 16_000_000 };
        let first: Vec<u64> = (0..4).map(|cycles| clock.nanoseconds(cycles)).collect();
        assert_eq!(first, [0, 62, 125, 187]);
        // After a simulated year the result is still exact to the nanosecond.
        let year = 365 * 86_400 * 16_000_000;
        assert_eq!(clock.nanoseconds(year + 1), 365 * 86_400 * NANOSECONDS + 62);
    }

    proptest! {
        #[test]
        fn the_nanoseconds_are_those_of_the_fraction(hz in 1_u64..=1 << 40, cycles: u64) {
            let exact = u128::from(cycles) * 1_000_000_000 / u128::from(hz);
            let expected = u64::try_from(exact).unwrap_or(u64::MAX).min(i64::MAX as u64);
            prop_assert_eq!(TraceClock { hz }.nanoseconds(cycles), expected);
        }
    }
}
