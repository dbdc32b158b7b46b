// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates and durations with their units, for example `4kHz`, `250 cycles` or `2 ms`.
//!
//! Both are always positive and finite, so that code after the parser does not have to handle zero,
//! negative or infinite values.
use std::fmt;
use std::str::FromStr;

/// The reason why a text is not a quantity. The message quotes the text and says what would be
/// right.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum QuantityError {
    /// The part before the unit is not a decimal number.
    #[error("`{text}` does not begin with a number: write {example}")]
    NotANumber {
        /// The text that was read.
        text: String,
        /// Correct texts of this quantity.
        example: &'static str,
    },
    /// The text has no unit, or one that this quantity does not have.
    #[error("`{text}` has {found}: the units are {units}, so write {example}")]
    Unit {
        /// The text that was read.
        text: String,
        /// The part of the text where the unit should be.
        found: String,
        /// The units that this quantity has.
        units: &'static str,
        /// Correct texts of this quantity.
        example: &'static str,
    },
    /// The value is zero or negative.
    #[error("`{text}` is not more than zero: write {example}")]
    NotPositive {
        /// The text that was read.
        text: String,
        /// Correct texts of this quantity.
        example: &'static str,
    },
    /// The value is larger than the quantity can hold.
    #[error("`{text}` is too large: the most is {most}")]
    TooLarge {
        /// The text that was read.
        text: String,
        /// The largest value that the quantity can hold.
        most: &'static str,
    },
    /// The number has more digits than can be stored exactly.
    #[error("`{text}` has too many digits: write at most 18 digits")]
    TooPrecise {
        /// The text that was read.
        text: String,
    },
    /// A number of cycles is wanted, but the duration is shorter than a clock cycle.
    #[error("`{text}` is less than one cycle of a {clock} clock: write at least 1 cycle")]
    LessThanACycle {
        /// The duration that was read.
        text: String,
        /// The rate of the clock.
        clock: Rate,
    },
}

const RATE_UNITS: &[(&str, f64)] = &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6)];
const RATE_EXAMPLE: &str = "for example 20kHz, 781Hz or 4MHz";
/// The largest rate in hertz. It is above the clock of any supported chip, and low enough that
/// every product with a period is an exact integer of f64.
const RATE_MOST: f64 = 1e12;

const TIME_UNITS: &[(&str, f64)] = &[("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
const TIME_EXAMPLE: &str = "for example 250cycles, 10us, 2ms or 1s";
/// The longest time in seconds, about 31 years. At 1 GHz its number of cycles still fits f64 and
/// u64.
const TIME_MOST_SECONDS: f64 = 1e9;
const CYCLES_MOST: u64 = 1 << 62;

/// A rate in events per second: more than zero, at most 10¹² Hz.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// Makes a rate of `hertz`.
    ///
    /// # Errors
    /// Returns an error if `hertz` is zero, negative, not a number, or more than 10¹² Hz.
    pub fn from_hertz(hertz: f64) -> Result<Self, QuantityError> {
        checked(
            hertz,
            &format!("{hertz}Hz"),
            RATE_MOST,
            "1000000MHz",
            RATE_EXAMPLE,
        )
        .map(Self)
    }

    /// The rate in events per second.
    #[must_use]
    pub fn hertz(self) -> f64 {
        self.0
    }

    /// The rate rounded to whole hertz, at least 1, which is the form of a clock's rate.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 < rate <= 1e12"
    )]
    pub fn whole_hertz(self) -> u64 {
        (self.0.round() as u64).max(1)
    }

    /// The time between two events, in cycles of a clock of `clock_hz`, not rounded.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "clocks are far below 2^52 Hz")]
    pub fn period_cycles(self, clock_hz: u64) -> f64 {
        clock_hz as f64 / self.0
    }

    /// The least whole number of cycles of a clock of `clock_hz` between two events, at least 1. It
    /// is rounded down, so that events never seem rarer than they are.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and saturates"
    )]
    pub fn least_cycles(self, clock_hz: u64) -> u64 {
        (self.period_cycles(clock_hz).floor() as u64).max(1)
    }
}

impl FromStr for Rate {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = split(text, RATE_EXAMPLE)?;
        let scale = scale_of(text, unit, RATE_UNITS, "Hz, kHz and MHz", RATE_EXAMPLE)?;
        checked(number * scale, text, RATE_MOST, "1000000MHz", RATE_EXAMPLE).map(Self)
    }
}

impl fmt::Display for Rate {
    /// Prints the largest unit in which the number is at least one. The text reads back as the same
    /// rate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shortest(self.0, RATE_UNITS))
    }
}

/// A span of time, in seconds or in cycles of a clock that the system file states.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Duration {
    /// The number of clock cycles, at least one.
    Cycles(u64),
    /// The number of seconds, more than zero and at most 10⁹.
    Seconds(f64),
}

impl Duration {
    /// The duration in cycles of a clock of `clock_hz`, rounded to the nearest cycle.
    ///
    /// # Errors
    /// Returns an error if the duration rounds to zero cycles.
    pub fn cycles(self, clock_hz: u64) -> Result<u64, QuantityError> {
        match self {
            Self::Cycles(cycles) => Ok(cycles),
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 < seconds <= 1e9 and a clock of at most 1e12 Hz saturate at worst"
            )]
            Self::Seconds(seconds) => match (seconds * clock_hz as f64).round() as u64 {
                0 => Err(QuantityError::LessThanACycle {
                    text: self.to_string(),
                    clock: Rate::from_hertz(clock_hz as f64)?,
                }),
                cycles => Ok(cycles),
            },
        }
    }
}

impl FromStr for Duration {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = split(text, TIME_EXAMPLE)?;
        if matches!(unit, "cycles" | "cycle") {
            return cycles_from(text, number);
        }
        let scale = scale_of(
            text,
            unit,
            TIME_UNITS,
            "cycles, ns, us, ms and s",
            TIME_EXAMPLE,
        )?;
        checked(
            number * scale,
            text,
            TIME_MOST_SECONDS,
            "1000000000s",
            TIME_EXAMPLE,
        )
        .map(Self::Seconds)
    }
}

impl fmt::Display for Duration {
    /// Prints a text that reads back as the same duration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycles(1) => f.write_str("1cycle"),
            Self::Cycles(cycles) => write!(f, "{cycles}cycles"),
            Self::Seconds(seconds) => f.write_str(&shortest(*seconds, TIME_UNITS)),
        }
    }
}

fn cycles_from(text: &str, number: f64) -> Result<Duration, QuantityError> {
    let digits = text
        .trim()
        .trim_end_matches(|c: char| c.is_ascii_alphabetic())
        .trim_end();
    match digits.parse::<u64>() {
        Ok(0) => Err(QuantityError::NotPositive {
            text: text.to_owned(),
            example: TIME_EXAMPLE,
        }),
        Ok(cycles) if cycles <= CYCLES_MOST => Ok(Duration::Cycles(cycles)),
        _ if number <= 0.0 => Err(QuantityError::NotPositive {
            text: text.to_owned(),
            example: TIME_EXAMPLE,
        }),
        _ if number.fract() != 0.0 => Err(QuantityError::NotANumber {
            text: text.to_owned(),
            example: "a whole number of cycles, for example 250cycles",
        }),
        _ => Err(QuantityError::TooLarge {
            text: text.to_owned(),
            most: "4611686018427387904 cycles",
        }),
    }
}

/// Splits `20 kHz` into 20 and `kHz`.
fn split<'a>(text: &'a str, example: &'static str) -> Result<(f64, &'a str), QuantityError> {
    let (number, unit) = number_and_unit(text);
    let number = number.parse().map_err(|_| QuantityError::NotANumber {
        text: text.to_owned(),
        example,
    })?;
    Ok((number, unit))
}

/// Splits `20 kHz` into the texts `20` and `kHz`, without checking the number.
pub(crate) fn number_and_unit(text: &str) -> (&str, &str) {
    let trimmed = text.trim();
    // An `e` belongs to the number only if a digit or a sign follows it.
    let number_end = trimmed
        .char_indices()
        .find(|&(at, c)| {
            let exponent = matches!(c, 'e' | 'E')
                && at > 0
                && trimmed[at + 1..]
                    .starts_with(|n: char| n.is_ascii_digit() || n == '-' || n == '+');
            !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+') || exponent)
        })
        .map_or(trimmed.len(), |(at, _)| at);
    let unit = match trimmed[number_end..].trim_start() {
        // These are the micro sign and the Greek letter mu.
        "\u{b5}s" | "\u{3bc}s" => "us",
        unit => unit,
    };
    (&trimmed[..number_end], unit)
}

fn scale_of(
    text: &str,
    unit: &str,
    units: &[(&str, f64)],
    names: &'static str,
    example: &'static str,
) -> Result<f64, QuantityError> {
    units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|&(_, scale)| scale)
        .ok_or_else(|| QuantityError::Unit {
            text: text.to_owned(),
            found: if unit.is_empty() {
                "no unit".to_owned()
            } else {
                format!("the unit `{unit}`")
            },
            units: names,
            example,
        })
}

fn checked(
    value: f64,
    text: &str,
    most: f64,
    most_text: &'static str,
    example: &'static str,
) -> Result<f64, QuantityError> {
    if value.is_nan() || value <= 0.0 {
        Err(QuantityError::NotPositive {
            text: text.to_owned(),
            example,
        })
    } else if value > most {
        Err(QuantityError::TooLarge {
            text: text.to_owned(),
            most: most_text,
        })
    } else {
        Ok(value)
    }
}

fn shortest(value: f64, units: &[(&'static str, f64)]) -> String {
    let fits = units.iter().rev().find(|(_, scale)| value >= *scale);
    let (name, scale) = fits.copied().unwrap_or((units[0].0, units[0].1));
    // The division may lose the last bit. The text then uses the smallest unit, in which f64 prints
    // exactly.
    let number = value / scale;
    if number * scale == value {
        format!("{number}{name}")
    } else {
        format!("{value:e}{}", unit_of_one(units))
    }
}

fn unit_of_one(units: &[(&'static str, f64)]) -> &'static str {
    units
        .iter()
        .find(|(_, scale)| *scale == 1.0)
        .map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_are_read_with_their_units() {
        for (text, hertz) in [
            ("20kHz", 20e3),
            ("0.26 kHz", 260.0),
            ("781Hz", 781.0),
            ("4MHz", 4e6),
            ("1e3 Hz", 1e3),
        ] {
            assert_eq!(text.parse::<Rate>().unwrap().hertz(), hertz, "{text}");
        }
    }

    #[test]
    fn the_least_time_between_two_events_is_whole_and_never_nothing() {
        for (hertz, cycles) in [(3.0, 333_333), (1e6, 1), (1e9, 1), (0.5, 2_000_000)] {
            let rate = Rate::from_hertz(hertz).unwrap();
            assert_eq!(rate.least_cycles(1_000_000), cycles, "{hertz}");
        }
        assert_eq!(
            Rate::from_hertz(f64::MIN_POSITIVE).unwrap().least_cycles(1),
            u64::MAX
        );
    }

    #[test]
    fn durations_are_read_with_their_units() {
        for (text, cycles) in [
            ("250cycles", 250),
            ("1 cycle", 1),
            ("10us", 40),
            ("10 \u{b5}s", 40),
            ("10\u{3bc}s", 40),
            ("2ms", 8000),
            ("1s", 4_000_000),
        ] {
            assert_eq!(
                text.parse::<Duration>().unwrap().cycles(4_000_000).unwrap(),
                cycles,
                "{text}"
            );
        }
        assert_eq!(
            "500ns"
                .parse::<Duration>()
                .unwrap()
                .cycles(4_000_000)
                .unwrap(),
            2
        );
    }

    #[test]
    fn what_is_wrong_is_refused_with_advice() {
        for (text, says) in [
            ("0Hz", "not more than zero"),
            ("-4kHz", "not more than zero"),
            ("4", "no unit"),
            ("4khz", "the unit `khz`"),
            ("NaNkHz", "does not begin with a number"),
            ("", "does not begin with a number"),
            ("1e300MHz", "too large"),
            ("2ms", "the unit `ms`"),
        ] {
            let message = text.parse::<Rate>().unwrap_err().to_string();
            assert!(message.contains(says), "{text}: {message}");
        }
        for (text, says) in [
            ("0cycles", "not more than zero"),
            ("-1cycles", "not more than zero"),
            ("1.5cycles", "a whole number of cycles"),
            ("99999999999999999999cycles", "too large"),
            ("0ms", "not more than zero"),
            ("4kHz", "the unit `kHz`"),
        ] {
            let message = text.parse::<Duration>().unwrap_err().to_string();
            assert!(message.contains(says), "{text}: {message}");
        }
        let short = "1ns"
            .parse::<Duration>()
            .unwrap()
            .cycles(4_000_000)
            .unwrap_err()
            .to_string();
        assert!(
            short.contains("less than one cycle of a 4MHz clock"),
            "{short}"
        );
    }

    proptest! {
        #[test]
        fn a_rate_reads_back_as_itself(hertz in 1e-3..1e12_f64) {
            let rate = Rate::from_hertz(hertz).unwrap();
            prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
        }

        #[test]
        fn a_duration_reads_back_as_itself(seconds in 1e-9..1e9_f64, cycles in 1..CYCLES_MOST) {
            for duration in [Duration::Seconds(seconds), Duration::Cycles(cycles)] {
                prop_assert_eq!(duration.to_string().parse::<Duration>().unwrap(), duration);
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*") {
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Duration>();
        }
    }
}
