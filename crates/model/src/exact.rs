// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantities in decimal, exactly as the file states them.
//!
//! A limit must not exceed what was asked, and a cost must not fall below what was stated, not even
//! by a cycle. Since f64 cannot represent 0.009, the rates and times of system files stay decimal
//! fractions until they become cycles.
use std::str::FromStr;

use crate::quantity::{self, Duration, QuantityError, Rate};

/// The largest number of cycles of any value in a system. Two such numbers can be added without
/// overflow.
pub(crate) const CYCLES_MOST: u64 = 1 << 62;
/// The most significant digits of a number. With a clock of 10¹² Hz the products stay within 128
/// bits.
const DIGITS_MOST: usize = 18;

/// The number digits · 10^exponent, which is more than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    /// Parses the number at the start of `text`, which the parser of quantities has already
    /// accepted.
    fn parse(text: &str) -> Result<Self, QuantityError> {
        let too_precise = || QuantityError::TooPrecise {
            text: text.to_owned(),
        };
        let (number, _) = quantity::number_and_unit(text);
        let number = number.trim_start_matches('+');
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let shifted = all.trim_end_matches('0');
        let digits = shifted.trim_start_matches('0');
        if digits.len() > DIGITS_MOST {
            return Err(too_precise());
        }
        let moved = i32::try_from(all.len() - shifted.len())
            .ok()
            .zip(i32::try_from(fraction.len()).ok())
            .map(|(zeros, fraction)| zeros - fraction);
        let exponent = exponent
            .parse::<i32>()
            .ok()
            .zip(moved)
            .and_then(|(exponent, moved)| exponent.checked_add(moved));
        Ok(Self {
            digits: digits.parse().map_err(|_| too_precise())?,
            exponent: exponent.ok_or_else(too_precise)?,
        })
    }

    /// The number times a power of ten.
    fn scaled(self, by: i32) -> Self {
        Self {
            exponent: self.exponent.saturating_add(by),
            ..self
        }
    }

    /// The number as a fraction of numerator and denominator. The numerator is multiplied by
    /// `factor`. `None` if one of the two exceeds 128 bits.
    fn fraction(self, factor: u128) -> Option<(u128, u128)> {
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        let digits = self.digits.checked_mul(factor)?;
        if self.exponent < 0 {
            Some((digits, power?))
        } else {
            Some((digits.checked_mul(power?)?, 1))
        }
    }
}

/// The direction in which a fraction of a cycle is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    Up,
    Down,
}

impl Round {
    fn divide(self, numerator: u128, denominator: u128) -> Option<u64> {
        let quotient = match self {
            Self::Up => numerator.div_ceil(denominator),
            Self::Down => numerator / denominator,
        };
        u64::try_from(quotient)
            .ok()
            .filter(|&cycles| cycles <= CYCLES_MOST)
    }
}

/// A rate in decimal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ExactRate {
    /// The rate as a floating-point number.
    pub rate: Rate,
    hertz: Decimal,
}

impl ExactRate {
    /// The cycles in which `events` come at this rate, for a clock of `clock_hz`. `None` if they
    /// exceed [`CYCLES_MOST`].
    pub fn interval(self, events: u64, clock_hz: u64, round: Round) -> Option<u64> {
        let cycles = u128::from(events) * u128::from(clock_hz);
        // The result is events · clock / (digits · 10^exponent).
        let power = 10_u128.checked_pow(self.hertz.exponent.unsigned_abs())?;
        if self.hertz.exponent < 0 {
            round.divide(cycles.checked_mul(power)?, self.hertz.digits)
        } else {
            round.divide(cycles, self.hertz.digits.checked_mul(power)?)
        }
    }

    /// The rate in hertz; `None` if it is not a whole number.
    pub fn whole_hertz(self) -> Option<u64> {
        let (numerator, denominator) = self.hertz.fraction(1)?;
        (numerator % denominator == 0)
            .then(|| u64::try_from(numerator / denominator).ok())
            .flatten()
    }
}

impl FromStr for ExactRate {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rate: Rate = text.parse()?;
        let power = match quantity::number_and_unit(text).1 {
            "kHz" => 3,
            "MHz" => 6,
            _ => 0,
        };
        Ok(Self {
            rate,
            hertz: Decimal::parse(text)?.scaled(power),
        })
    }
}

/// A span of time in decimal, more than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExactTime(TimeForm);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeForm {
    Cycles(u64),
    Seconds(Decimal),
}

impl ExactTime {
    /// The cycles of a clock of `clock_hz`; `None` if they exceed [`CYCLES_MOST`]. The result can
    /// be 0 if it is rounded down.
    pub fn cycles(self, clock_hz: u64, round: Round) -> Option<u64> {
        match self.0 {
            TimeForm::Cycles(cycles) => Some(cycles),
            TimeForm::Seconds(seconds) => match seconds.fraction(u128::from(clock_hz)) {
                Some((numerator, denominator)) => round.divide(numerator, denominator),
                // The number is below 10⁻³⁸, or beyond the 10⁹ s that the parser accepts.
                None => Some(u64::from(round == Round::Up)),
            },
        }
    }
}

impl FromStr for ExactTime {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Duration::Cycles(cycles) = text.parse()? {
            return Ok(Self(TimeForm::Cycles(cycles)));
        }
        let power = match quantity::number_and_unit(text).1 {
            "ns" => -9,
            "us" => -6,
            "ms" => -3,
            _ => 0,
        };
        Ok(Self(TimeForm::Seconds(Decimal::parse(text)?.scaled(power))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(text: &str) -> ExactTime {
        text.parse().unwrap()
    }

    fn rate(text: &str) -> ExactRate {
        text.parse().unwrap()
    }

    #[test]
    fn a_time_is_whole_cycles_where_it_is() {
        for (text, clock, cycles) in [
            ("9ms", 16_000_000, 144_000),
            ("0.009s", 16_000_000, 144_000),
            ("9e-3 s", 16_000_000, 144_000),
            ("9000us", 16_000_000, 144_000),
            ("9e+6ns", 16_000_000, 144_000),
            ("+.7s", 10, 7),
            ("7.00s", 10, 70),
            ("250 cycles", 4_000_000, 250),
            ("1000000000s", 4_000_000, 4_000_000_000_000_000),
        ] {
            assert_eq!(time(text).cycles(clock, Round::Up), Some(cycles), "{text}");
            assert_eq!(
                time(text).cycles(clock, Round::Down),
                Some(cycles),
                "{text}"
            );
        }
    }

    #[test]
    fn a_fraction_of_a_cycle_goes_to_the_side_asked_for() {
        for text in ["50us", "50\u{b5}s", "50\u{3bc}s"] {
            assert_eq!(time(text).cycles(7_372_800, Round::Down), Some(368));
        }
        assert_eq!(time("50us").cycles(7_372_800, Round::Up), Some(369));
        assert_eq!(time("1e-300s").cycles(1_000_000, Round::Down), Some(0));
        assert_eq!(time("1e-300s").cycles(1_000_000, Round::Up), Some(1));
        assert_eq!(time("1e9s").cycles(1_000_000_000_000, Round::Up), None);
    }

    #[test]
    fn an_interval_of_a_rate_is_exact() {
        assert_eq!(rate("110Hz").interval(1, 4_000_000, Round::Up), Some(36364));
        assert_eq!(
            rate("110Hz").interval(1, 4_000_000, Round::Down),
            Some(36363)
        );
        assert_eq!(
            rate("0.1Hz").interval(1, 16_000_000, Round::Down),
            Some(160_000_000)
        );
        assert_eq!(
            rate("1.5kHz").interval(3, 16_000_000, Round::Up),
            Some(32000)
        );
        assert_eq!(rate("1e-30Hz").interval(1, 16_000_000, Round::Up), None);
        assert_eq!(rate("1e-300Hz").interval(1, 16_000_000, Round::Up), None);
    }

    #[test]
    fn a_clock_is_whole_hertz() {
        assert_eq!(rate("7.3728MHz").whole_hertz(), Some(7_372_800));
        assert_eq!(rate("0.5Hz").whole_hertz(), None);
        assert_eq!(rate("1e-300Hz").whole_hertz(), None);
    }

    #[test]
    fn digits_that_cannot_be_kept_are_refused() {
        let error = "0.3333333333333333333ms".parse::<ExactTime>().unwrap_err();
        assert!(error.to_string().contains("18 digits"), "{error}");
    }

    proptest! {
        #[test]
        fn rounding_up_and_down_are_a_cycle_apart_at_most(
            digits in 1..1_000_000_000_u64, exponent in -20..3_i32, clock in 1..1_000_000_000_u64
        ) {
            let time = time(&format!("{digits}e{exponent}us"));
            let (down, up) = (time.cycles(clock, Round::Down).unwrap(), time.cycles(clock, Round::Up).unwrap());
            prop_assert!(up - down <= 1);
            let about = digits as f64 * 10_f64.powi(exponent - 6) * clock as f64;
            prop_assert!((down as f64) <= about * (1.0 + 1e-9) && about * (1.0 - 1e-9) <= up as f64);
        }

        #[test]
        fn a_whole_rate_of_the_clock_has_a_whole_interval(hertz in 1..1_000_000_u64, cycles in 1..1_000_000_u64) {
            let rate = rate(&format!("{hertz}Hz"));
            prop_assert_eq!(rate.interval(1, hertz * cycles, Round::Up), Some(cycles));
            prop_assert_eq!(rate.interval(1, hertz * cycles, Round::Down), Some(cycles));
        }
    }
}
