// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts quantities to cycles, rounded to the safe side.
use miette::SourceSpan;

use crate::diagnostics::Problems;
use crate::exact::{CYCLES_MOST, ExactTime, Round};
use crate::file::leaf::{Amount, StatedCost};
use crate::file::value::KeyValue;
use crate::{Cost, Origin};

/// The clock whose cycles are the unit of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CycleClock {
    pub hz: u64,
}

impl CycleClock {
    /// Converts a time that must not become longer, such as a period or a deadline. The result is
    /// at least one cycle.
    pub fn at_most(
        self,
        time: ExactTime,
        at: SourceSpan,
        problems: &mut Problems<'_>,
    ) -> Option<u64> {
        match time.cycles(self.hz, Round::Down) {
            Some(0) => problems.refuse(
                format!("this is less than one cycle of a {} clock", self.text()),
                at,
                "too short",
                "write at least \"1 cycle\"",
            ),
            Some(cycles) => Some(cycles),
            None => self.too_long(at, problems),
        }
    }

    /// Converts a time that must not become shorter, such as a cost or an interval. The result is
    /// at least one cycle.
    pub fn at_least(
        self,
        time: ExactTime,
        at: SourceSpan,
        problems: &mut Problems<'_>,
    ) -> Option<u64> {
        time.cycles(self.hz, Round::Up)
            .or_else(|| self.too_long(at, problems))
    }

    /// Works like [`Self::at_least`], for a time that may be zero.
    pub fn amount(
        self,
        amount: Amount,
        at: SourceSpan,
        problems: &mut Problems<'_>,
    ) -> Option<u64> {
        match amount {
            Amount::Zero => Some(0),
            Amount::Time(time) => self.at_least(time, at, problems),
        }
    }

    /// The amount of a key, 0 if the file does not state it.
    pub fn amount_of(self, key: &KeyValue<Amount>, problems: &mut Problems<'_>) -> Option<u64> {
        self.amount(key.or(Amount::Zero)?, key.at, problems)
    }

    /// The time of a key, rounded down; `Some(None)` if the file does not state it.
    pub fn optional(
        self,
        key: &KeyValue<ExactTime>,
        problems: &mut Problems<'_>,
    ) -> Option<Option<u64>> {
        match key.optional()? {
            None => Some(None),
            Some(time) => self.at_most(time, key.at, problems).map(Some),
        }
    }

    /// The cost of a key; the default is 0 if the file does not state it.
    pub fn cost(self, key: &KeyValue<StatedCost>, problems: &mut Problems<'_>) -> Option<Cost> {
        let Some(stated) = key.optional()? else {
            return Some(Cost {
                cycles: 0,
                origin: Origin::Default,
            });
        };
        Some(Cost {
            cycles: self.amount(stated.worst, key.at, problems)?,
            origin: if stated.measured {
                Origin::Measured
            } else {
                Origin::Declared
            },
        })
    }

    /// Reports a time whose cycles exceed the largest number of cycles.
    pub fn too_long<T>(self, at: SourceSpan, problems: &mut Problems<'_>) -> Option<T> {
        problems.refuse(
            format!(
                "this is more than {CYCLES_MOST} cycles of a {} clock",
                self.text()
            ),
            at,
            "too long",
            "write a time that some system could meet",
        )
    }

    /// The clock's rate with its unit.
    pub fn text(self) -> String {
        hertz_text(self.hz as f64)
    }

    /// The time of `cycles` as text, rounded to a few digits.
    pub fn time_text(self, cycles: u64, digits: Digits) -> String {
        scaled(
            cycles as f64 / self.hz as f64,
            &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")],
            digits,
        )
    }

    /// The rate of `events` per `cycles` as text, rounded to a few digits.
    pub fn rate_text(self, events: u64, cycles: u64, digits: Digits) -> String {
        let hertz = events as f64 * self.hz as f64 / cycles.max(1) as f64;
        scaled(hertz, RATE_UNITS, digits)
    }
}

/// How a number is rounded to the digits that are shown. A number that a message tells the reader
/// to write must be valid as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Digits {
    Nearest,
    Up,
    Down,
}

const RATE_UNITS: &[(f64, &str)] = &[(1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz")];

/// The text of a rate with at most six digits.
pub(super) fn hertz_text(hertz: f64) -> String {
    scaled(hertz, RATE_UNITS, Digits::Nearest)
}

fn scaled(value: f64, units: &[(f64, &str)], digits: Digits) -> String {
    let fits = units.iter().find(|unit| value >= unit.0);
    let (scale, unit) = fits.or(units.last()).copied().unwrap_or((1.0, ""));
    let number = value / scale;
    // Six digits are enough to distinguish the intervals of a 16-bit timer.
    let decimals = (5.0 - number.log10().floor()).clamp(0.0, 40.0);
    let last = 10_f64.powf(decimals);
    let number = match digits {
        Digits::Nearest => number,
        // The small addend keeps whole numbers whole if their last bit was lost.
        Digits::Up => (number * last - 1e-6).ceil() / last,
        Digits::Down => (number * last + 1e-6).floor() / last,
    };
    let text = format!("{number:.0$}", decimals as usize);
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_the_reader_are_short() {
        let clock = CycleClock { hz: 4_000_000 };
        assert_eq!(clock.text(), "4MHz");
        assert_eq!(clock.rate_text(1, 36364, Digits::Nearest), "109.999Hz");
        assert_eq!(clock.rate_text(3, 36416, Digits::Nearest), "329.525Hz");
        assert_eq!(clock.time_text(36364, Digits::Nearest), "9.091ms");
        assert_eq!(clock.time_text(1, Digits::Nearest), "250ns");
        assert_eq!(hertz_text(1_000_000.0), "1MHz");
        assert_eq!(hertz_text(0.25), "0.25Hz");
    }

    #[test]
    fn what_the_reader_is_told_to_write_is_on_the_safe_side() {
        let clock = CycleClock { hz: 4_000_000 };
        // The exact value is 0.23843313...
        let cycles = 16383 * 1024;
        assert_eq!(clock.rate_text(1, cycles, Digits::Up), "0.238434Hz");
        assert_eq!(clock.rate_text(1, cycles, Digits::Down), "0.238433Hz");
        assert_eq!(clock.time_text(cycles, Digits::Down), "4.19404s");
        for digits in [Digits::Up, Digits::Down] {
            assert_eq!(clock.rate_text(1, 4000, digits), "1kHz");
            assert_eq!(clock.time_text(4000, digits), "1ms");
        }
    }
}
