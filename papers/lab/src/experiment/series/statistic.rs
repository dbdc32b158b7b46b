// SPDX-License-Identifier: GPL-3.0-or-later
//! Statistics of series. Claims are about statistics.

/// A statistic of a series. A claim names it after the series' name and a dot.
#[derive(Debug, Clone, Copy)]
pub(super) enum Statistic {
    /// The largest value at any point with any seed.
    Max,
    /// The smallest value at any point with any seed.
    Min,
    /// The median of the values at all points with all seeds.
    Median,
    /// The mean at the first point.
    First,
    /// The mean at the last point.
    Last,
    /// The point at which the mean is the smallest.
    ArgMin,
    /// The largest difference between two seeds at the same point.
    Spread,
    /// The sum of the values at all points with all seeds.
    Sum,
    /// R²: the part of the means' variance that the best straight line over x explains.
    Linear,
}

impl Statistic {
    pub const ALL: [(&'static str, Self); 9] = [
        ("max", Self::Max),
        ("min", Self::Min),
        ("median", Self::Median),
        ("first", Self::First),
        ("last", Self::Last),
        ("argmin", Self::ArgMin),
        ("spread", Self::Spread),
        ("sum", Self::Sum),
        ("linear", Self::Linear),
    ];

    pub fn of(self, points: &[SeriesPoint]) -> Option<f64> {
        let all = points.iter().flat_map(|point| &point.values).copied();
        match self {
            Self::Max => all.reduce(worst(f64::max)),
            Self::Min => all.reduce(worst(f64::min)),
            Self::Median => median(all.collect()),
            Self::First => points.first().map(SeriesPoint::mean),
            Self::Last => points.last().map(SeriesPoint::mean),
            Self::ArgMin => points
                .iter()
                .min_by(|a, b| a.mean().total_cmp(&b.mean()))
                .map(|point| point.x),
            Self::Spread => points
                .iter()
                .map(SeriesPoint::spread)
                .reduce(worst(f64::max)),
            Self::Sum => all.reduce(|a, b| a + b),
            Self::Linear => linear(points),
        }
    }
}

/// The median of the values. If there are two middle values, it is the larger one.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// R² of the best straight line through the means. `None` for fewer than three points, because a
/// line always fits two.
#[expect(clippy::cast_precision_loss, reason = "a handful of points")]
fn linear(points: &[SeriesPoint]) -> Option<f64> {
    if points.len() < 3 {
        return None;
    }
    let count = points.len() as f64;
    let mean_x = points.iter().map(|point| point.x).sum::<f64>() / count;
    let mean_y = points.iter().map(SeriesPoint::mean).sum::<f64>() / count;
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for point in points {
        let (x, y) = (point.x - mean_x, point.mean() - mean_y);
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    Some(xy * xy / (xx * yy))
}

/// A function that chooses one of two values, and returns NaN if one of them is NaN.
fn worst(choose: fn(f64, f64) -> f64) -> impl Fn(f64, f64) -> f64 {
    move |a, b| {
        if a.is_nan() || b.is_nan() {
            f64::NAN
        } else {
            choose(a, b)
        }
    }
}

/// A point of a series: the value with each seed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeriesPoint {
    pub x: f64,
    pub values: Vec<f64>,
}

impl SeriesPoint {
    fn mean(&self) -> f64 {
        self.scaled_mean(1.0)
    }

    #[expect(clippy::cast_precision_loss, reason = "a handful of seeds")]
    fn scaled_mean(&self, scale: f64) -> f64 {
        scale * self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// The value that a curve shows: the largest value, or the mean times a factor.
    pub fn drawn(&self, is_worst: bool, scale: f64) -> f64 {
        let values = self.values.iter().copied();
        let largest = values.reduce(worst(f64::max)).filter(|_| is_worst);
        largest.unwrap_or_else(|| self.scaled_mean(scale))
    }

    /// The difference between the largest and the smallest value. A point has at least one value.
    fn spread(&self) -> f64 {
        let of = |choose: fn(f64, f64) -> f64| self.values.iter().copied().reduce(worst(choose));
        of(f64::max).unwrap_or(f64::NAN) - of(f64::min).unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Vec<SeriesPoint> {
        [(1.0, [4.0, 6.0]), (2.0, [1.0, 3.0]), (3.0, [0.0, 7.0])]
            .map(|(x, values)| SeriesPoint {
                x,
                values: values.to_vec(),
            })
            .to_vec()
    }

    #[test]
    fn a_claim_is_about_every_seed_or_about_means() {
        let points = points();
        assert_eq!(Statistic::Max.of(&points), Some(7.0));
        assert_eq!(Statistic::Min.of(&points), Some(0.0));
        assert_eq!(Statistic::Median.of(&points), Some(4.0));
        assert_eq!(Statistic::First.of(&points), Some(5.0));
        assert_eq!(Statistic::Last.of(&points), Some(3.5));
        assert_eq!(Statistic::ArgMin.of(&points), Some(2.0));
        assert_eq!(Statistic::Spread.of(&points), Some(7.0));
        assert_eq!(Statistic::Max.of(&[]), None);
    }

    #[test]
    fn a_line_explains_what_lies_on_it() {
        let through = |means: &[f64]| {
            let point = |(x, mean): (f64, &f64)| SeriesPoint {
                x,
                values: vec![mean - 1.0, mean + 1.0],
            };
            let points: Vec<_> = [1.0, 2.0, 4.0].into_iter().zip(means).map(point).collect();
            Statistic::Linear.of(&points)
        };
        let on_it = through(&[5.0, 3.0, -1.0]).unwrap();
        assert!((on_it - 1.0).abs() < 1e-12, "{on_it}");
        let beside = through(&[1.0, 5.0, 1.0]).unwrap();
        assert!((0.0..0.5).contains(&beside), "{beside}");
        assert_eq!(through(&[1.0, 2.0]), None);
    }

    #[test]
    fn what_is_no_number_is_not_overlooked() {
        let mut points = points();
        points[1].values[0] = f64::NAN;
        assert!(Statistic::Max.of(&points).is_some_and(f64::is_nan));
        assert!(Statistic::Min.of(&points).is_some_and(f64::is_nan));
        assert!(Statistic::Spread.of(&points).is_some_and(f64::is_nan));
    }
}
