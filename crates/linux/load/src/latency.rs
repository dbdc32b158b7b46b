// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distributions of times.
use hdrhistogram::Histogram;
use serde::Serialize;

/// A histogram of times in nanoseconds, with three significant digits.
#[derive(Debug, Clone)]
pub struct Times(Histogram<u64>);

/// The longest time of the histogram in nanoseconds: 1000 s. A longer time counts as this time.
const TOP: u64 = 1_000_000_000_000;

impl Default for Times {
    fn default() -> Self {
        // The bounds are valid: the lowest is at least 1, the highest at least twice that, with at
        // most 5 digits.
        Self(Histogram::new_with_bounds(1, TOP, 3).unwrap_or_else(|_| unreachable!()))
    }
}

/// Summary of a distribution. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Distribution {
    /// The number of times. If it is 0, all other fields are 0, too.
    pub count: u64,
    /// The shortest time.
    pub min: u64,
    /// The mean of the times.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// The quantile of 90 %.
    pub p90: u64,
    /// The quantile of 99 %.
    pub p99: u64,
    /// The quantile of 99.9 %.
    pub p999: u64,
    /// The longest time.
    pub max: u64,
}

impl Times {
    /// Adds a time.
    pub fn record(&mut self, nanoseconds: u64) {
        self.0.saturating_record(nanoseconds);
    }

    /// The distribution of the times so far.
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        let times = &self.0;
        Distribution {
            count: times.len(),
            min: times.min(),
            mean: times.mean(),
            p50: times.value_at_quantile(0.5),
            p90: times.value_at_quantile(0.9),
            p99: times.value_at_quantile(0.99),
            p999: times.value_at_quantile(0.999),
            max: times.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_to_three_digits() {
        let mut times = Times::default();
        assert_eq!(times.distribution().count, 0);
        for time in 1..=1000 {
            times.record(time * 1000);
        }
        times.record(u64::MAX);
        let found = times.distribution();
        assert_eq!((found.count, found.min / 100), (1001, 10));
        assert!(found.p50.abs_diff(501_000) < 1000, "{found:?}");
        assert!(found.p99.abs_diff(991_000) < 1000, "{found:?}");
        assert!(found.max >= TOP);
    }
}
