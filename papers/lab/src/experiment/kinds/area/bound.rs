// SPDX-License-Identifier: GPL-3.0-or-later
//! A confidence bound for the loss of clock frequency that a limiter causes.
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::statistics::Statistics;

use super::data::Pair;

/// The confidence level of the one-sided bound.
const CONFIDENCE: f64 = 0.95;

/// Statistics of a relative difference over the pairs, in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    pub mean: f64,
    /// The standard deviation over the pairs.
    pub deviation: f64,
    /// The one-sided lower 95 % confidence bound of the mean, by Student's t over the pairs. A
    /// limiter is non-inferior if this bound is not below minus the margin.
    pub bound: f64,
    pub least: f64,
    pub most: f64,
}

impl Pair {
    /// The change of the clock frequency that the limiter causes, in percent.
    pub fn change_percent(&self) -> f64 {
        100.0 * (self.with.fmax_mhz / self.without.fmax_mhz - 1.0)
    }
}

/// The statistics of the pairs' clock frequencies. `None` if there are fewer than two pairs.
pub fn fmax_difference(pairs: &[Pair]) -> Option<Difference> {
    let changes: Vec<f64> = pairs.iter().map(Pair::change_percent).collect();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred seeds")]
    let count = changes.len() as f64;
    let student = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    let (mean, deviation) = ((&changes).mean(), (&changes).std_dev());
    Some(Difference {
        mean,
        deviation,
        bound: mean - student.inverse_cdf(CONFIDENCE) * deviation / count.sqrt(),
        least: (&changes).min(),
        most: (&changes).max(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::data::Placement;
    use super::*;

    fn pairs(changes: &[f64]) -> Vec<Pair> {
        let placed = |fmax_mhz| Placement { cells: 1, fmax_mhz };
        let pair = |(seed, change): (u32, &f64)| Pair {
            seed,
            without: placed(50.0),
            with: placed(50.0 * (1.0 + change / 100.0)),
        };
        (1..).zip(changes).map(pair).collect()
    }

    #[test]
    fn the_bound_is_students() {
        // The expected value was computed by hand: mean 0, deviation sqrt(2.5), t(0.95, 4) =
        // 2.131847 from standard tables, so the bound is 2.131847 * sqrt(2.5 / 5).
        let found = fmax_difference(&pairs(&[-2.0, -1.0, 0.0, 1.0, 2.0])).unwrap();
        assert!(found.mean.abs() < 1e-9 && (found.deviation - 2.5_f64.sqrt()).abs() < 1e-9);
        assert!(
            (found.bound + 2.131_847 * 0.5_f64.sqrt()).abs() < 1e-5,
            "{found:?}"
        );
        assert!((found.least + 2.0).abs() < 1e-9 && (found.most - 2.0).abs() < 1e-9);
    }

    #[test]
    fn more_pairs_bring_the_bound_nearer_to_the_mean() {
        let few = fmax_difference(&pairs(&[-1.0, 1.0, -1.0, 1.0])).unwrap();
        let many = fmax_difference(&pairs(&[-1.0, 1.0].repeat(50))).unwrap();
        assert!(
            few.bound < many.bound && many.bound < 0.0,
            "{few:?} {many:?}"
        );
    }

    #[test]
    fn one_pair_bounds_nothing() {
        assert_eq!(fmax_difference(&pairs(&[1.0])), None);
        assert_eq!(fmax_difference(&[]), None);
    }
}
