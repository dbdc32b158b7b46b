// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probability distributions of costs, up to the worst case that a system states.

use std::fmt;
use std::str::FromStr;

use rand::Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

/// A distribution of costs up to the worst case. All numbers are percentages of the worst case. A
/// cost whose worst case is not 0 is at least one cycle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spread {
    /// Every cost is the worst case.
    Worst,
    /// Uniform: every number of cycles from `least` to the worst case, both included, has the same
    /// probability.
    Uniform {
        /// The lower end as a percentage, 0 to 100.
        least: f64,
    },
    /// Normal. A value that is 0 or less, or above the worst case, is drawn again.
    Normal {
        /// The mean before truncation, above 0, up to 100.
        mean: f64,
        /// The standard deviation before truncation, above 0, up to 100.
        deviation: f64,
    },
    /// Exponential. A value above the worst case is drawn again, so that the mean is mean -
    /// 100/(e^(100/mean) - 1).
    Exponential {
        /// The mean before truncation, above 0, up to 100.
        mean: f64,
    },
}

/// The most draws for a cost; after them the mean is used. With any distribution at least a third
/// of the draws are in range, so that this happens to one cost in 10^11.
const DRAWS: u32 = 64;

/// One percent as a multiple of 2^-64, rounded up a little, so that a percentage of a cost below
/// 2^42 cycles is a whole number where the exact value is.
const PERCENT: f64 = 18_446_744_073_709_551_616.0 / 100.0 * (1.0 + 4.0 * f64::EPSILON);

impl Spread {
    /// Draws a cost whose worst case is `worst`. Both are in cycles.
    #[inline]
    #[must_use]
    pub fn draw(self, worst: u64, rng: &mut impl Rng) -> u64 {
        if worst == 0 {
            return 0;
        }
        match self {
            Self::Worst => worst,
            Self::Uniform { least } => {
                // The range is computed downwards from the worst case, so that the lower end is
                // rounded up. The factor is at most 2^64 - 1 times 2^-64, so that at least one
                // cycle is left.
                let below = high(worst, ((100.0 - least) * PERCENT) as u64);
                // Lemire's multiplication has a bias of 2^-64 of the range, which no run can
                // detect.
                worst - high(rng.random(), below + 1)
            }
            Self::Normal { mean, deviation } => redraw(worst, mean, || {
                let normal: f64 = StandardNormal.sample(rng);
                mean + deviation * normal
            }),
            Self::Exponential { mean } => redraw(worst, mean, || {
                let exponential: f64 = Exp1.sample(rng);
                mean * exponential
            }),
        }
    }
}

/// Returns the upper 64 bits of the product.
fn high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

fn redraw(worst: u64, mean: f64, mut draw: impl FnMut() -> f64) -> u64 {
    let percent = (0..DRAWS)
        .map(|_| draw())
        .find(|&percent| percent > 0.0 && percent <= 100.0)
        .unwrap_or(mean);
    // The value is rounded to the nearest cycle, so that many small costs have the stated mean.
    ((worst as f64 * (percent / 100.0) + 0.5) as u64).clamp(1, worst)
}

/// Why a text is not a valid distribution.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no spread of costs: {wrong}; write worst, uniform:50%, normal:60%:10% or exponential:30%, all of the worst"
)]
pub struct SpreadError {
    text: String,
    wrong: String,
}

impl FromStr for Spread {
    type Err = SpreadError;

    fn from_str(text: &str) -> Result<Self, SpreadError> {
        let mut parts = text.split(':').map(str::trim);
        read(&mut parts).map_err(|wrong| SpreadError {
            text: text.to_owned(),
            wrong,
        })
    }
}

fn read<'a>(parts: &mut impl Iterator<Item = &'a str>) -> Result<Spread, String> {
    let spread = match parts.next().unwrap_or_default() {
        "worst" => Spread::Worst,
        "uniform" => Spread::Uniform {
            least: match percentage("the least", parts.next())? {
                least if (0.0..=100.0).contains(&least) => least,
                least => return Err(format!("the least, {least}%, is not from 0% to 100%")),
            },
        },
        "normal" => Spread::Normal {
            mean: above_0("the mean", parts.next())?,
            deviation: above_0("the standard deviation", parts.next())?,
        },
        "exponential" => Spread::Exponential {
            mean: above_0("the mean", parts.next())?,
        },
        other => return Err(format!("there is no distribution `{other}`")),
    };
    match parts.next() {
        Some(extra) => Err(format!("`{extra}` is one part too many")),
        None => Ok(spread),
    }
}

fn above_0(what: &str, part: Option<&str>) -> Result<f64, String> {
    match percentage(what, part)? {
        percent if percent > 0.0 && percent <= 100.0 => Ok(percent),
        percent => Err(format!(
            "{what}, {percent}%, is not above 0% and up to 100%"
        )),
    }
}

fn percentage(what: &str, part: Option<&str>) -> Result<f64, String> {
    let part = part.ok_or_else(|| format!("{what} is missing"))?;
    part.strip_suffix('%')
        .and_then(|number| number.trim().parse().ok())
        .ok_or_else(|| format!("{what}, `{part}`, is no percentage"))
}

/// Writes the text that reads back as the same spread.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worst => f.write_str("worst"),
            Self::Uniform { least } => write!(f, "uniform:{least}%"),
            Self::Normal { mean, deviation } => write!(f, "normal:{mean}%:{deviation}%"),
            Self::Exponential { mean } => write!(f, "exponential:{mean}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    const DRAWN: usize = 1_000_000;

    fn drawn(text: &str, worst: u64) -> Vec<u64> {
        let spread: Spread = text.parse().unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        (0..DRAWN).map(|_| spread.draw(worst, &mut rng)).collect()
    }

    /// Returns the mean and the standard deviation of many draws.
    fn moments(text: &str, worst: u64) -> (f64, f64) {
        let drawn = drawn(text, worst);
        let mean = drawn.iter().sum::<u64>() as f64 / DRAWN as f64;
        let squares: f64 = drawn.iter().map(|&cost| (cost as f64 - mean).powi(2)).sum();
        (mean, (squares / DRAWN as f64).sqrt())
    }

    /// A mean may deviate from the expected one by four standard errors.
    fn assert_moments(text: &str, worst: u64, mean: f64, deviation: f64) {
        let (seen_mean, seen_deviation) = moments(text, worst);
        let error = 4.0 * deviation / (DRAWN as f64).sqrt();
        assert!(
            (seen_mean - mean).abs() <= error,
            "{text}: {seen_mean}, not {mean}"
        );
        assert!(
            (seen_deviation - deviation).abs() <= 0.01 * deviation,
            "{text}: {seen_deviation}, not {deviation}"
        );
    }

    #[test]
    fn the_worst_is_always_the_worst() {
        assert_eq!(drawn("worst", 1000), vec![1000; DRAWN]);
    }

    #[test]
    fn uniform_costs_are_all_from_the_least_to_the_worst() {
        for (text, worst, least) in [
            ("uniform:50%", 5, 3),
            ("uniform:7%", 100, 7),
            ("uniform:0%", 10, 1),
            ("uniform:100%", 1000, 1000),
            ("uniform:33.3%", 1000, 333),
        ] {
            let mut seen = vec![0_u32; worst as usize + 1];
            for cost in drawn(text, worst) {
                seen[cost as usize] += 1;
            }
            let expected = DRAWN as f64 / (worst - least + 1) as f64;
            for (cost, &times) in seen.iter().enumerate() {
                let expected = if cost as u64 >= least { expected } else { 0.0 };
                let error = 5.0 * expected.sqrt();
                assert!(
                    (f64::from(times) - expected).abs() <= error,
                    "{text} of {worst}: {cost} came {times} times"
                );
            }
        }
    }

    #[test]
    fn normal_costs_have_their_mean_and_deviation() {
        assert_moments("normal:60%:5%", 100_000, 60_000.0, 5000.0);
        // The upper half of the bell is cut off: the mean is mean - deviation · √(2/π), and the
        // deviation is deviation · √(1 - 2/π).
        let pi = std::f64::consts::PI;
        let mean = 100_000.0 - 10_000.0 * (2.0 / pi).sqrt();
        assert_moments(
            "normal:100%:10%",
            100_000,
            mean,
            10_000.0 * (1.0 - 2.0 / pi).sqrt(),
        );
    }

    #[test]
    fn exponential_costs_have_the_mean_of_a_cut_exponential() {
        for (text, mean) in [("exponential:30%", 0.3_f64), ("exponential:100%", 1.0)] {
            let cut = (1.0 / mean).exp() - 1.0;
            // The variance of an exponential distribution that is truncated at 1: m² - (1 + c)/c²
            // with c = e^(1/m) - 1.
            let deviation = (mean * mean - (1.0 + cut) / (cut * cut)).sqrt();
            assert_moments(
                text,
                100_000,
                100_000.0 * (mean - 1.0 / cut),
                100_000.0 * deviation,
            );
        }
    }

    #[test]
    fn small_costs_have_their_mean_too() {
        let (mean, _) = moments("normal:60%:5%", 9);
        assert!((mean - 5.4).abs() < 0.01, "{mean}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            ("", "no distribution ``"),
            ("gauss:1%", "no distribution `gauss`"),
            ("uniform", "the least is missing"),
            ("uniform:0.5", "the least, `0.5`, is no percentage"),
            ("uniform:150%", "the least, 150%, is not from 0% to 100%"),
            ("uniform:-1%", "the least, -1%, is not from 0% to 100%"),
            ("normal:50%", "the standard deviation is missing"),
            (
                "normal:50%:0%",
                "the standard deviation, 0%, is not above 0% and up to 100%",
            ),
            (
                "normal:NaN%:1%",
                "the mean, NaN%, is not above 0% and up to 100%",
            ),
            (
                "exponential:inf%",
                "the mean, inf%, is not above 0% and up to 100%",
            ),
            ("worst:1%", "`1%` is one part too many"),
        ] {
            let message = text.parse::<Spread>().unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("`{text}` is no spread of costs: ")),
                "{message}"
            );
            assert!(message.contains(says), "{text}: {message}");
        }
    }

    fn percent() -> impl Strategy<Value = f64> {
        prop_oneof![
            (1..=100_u8).prop_map(f64::from),
            f64::MIN_POSITIVE..=100.0,
            Just(f64::MIN_POSITIVE)
        ]
    }

    fn spread() -> impl Strategy<Value = Spread> {
        prop_oneof![
            Just(Spread::Worst),
            prop_oneof![Just(0.0), percent()].prop_map(|least| Spread::Uniform { least }),
            (percent(), percent()).prop_map(|(mean, deviation)| Spread::Normal { mean, deviation }),
            percent().prop_map(|mean| Spread::Exponential { mean }),
        ]
    }

    /// A random number generator that returns the same number each time.
    struct Same(u64);

    impl rand::RngCore for Same {
        fn next_u32(&mut self) -> u32 {
            self.0 as u32
        }
        fn next_u64(&mut self) -> u64 {
            self.0
        }
        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            bytes.fill(self.0 as u8);
        }
    }

    proptest! {
        #[test]
        fn the_ends_of_uniform_are_exact(worst in 1..1_u64 << 42, least in 0..=100_u8) {
            let spread = Spread::Uniform { least: f64::from(least) };
            let lowest = (worst * u64::from(least)).div_ceil(100).max(1);
            prop_assert_eq!(spread.draw(worst, &mut Same(0)), worst);
            prop_assert_eq!(spread.draw(worst, &mut Same(u64::MAX)), lowest);
        }

        #[test]
        fn no_cost_is_above_its_worst_or_nothing(
            worst in prop_oneof![0..10_u64, any::<u64>(), Just(u64::MAX)],
            seed: u64,
            spread in spread(),
        ) {
            let cost = spread.draw(worst, &mut ChaCha8Rng::seed_from_u64(seed));
            prop_assert!(cost <= worst && (cost > 0 || worst == 0));
        }

        #[test]
        fn what_is_displayed_reads_back(spread in spread()) {
            prop_assert_eq!(spread.to_string().parse::<Spread>(), Ok(spread));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "(worst|uniform|normal|exponential)?[:%0-9a-zNI.-]*") {
            let _ = text.parse::<Spread>();
        }
    }
}
