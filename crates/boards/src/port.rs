// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules of ports: LIMIT-TIME-3 of core/CONTRACTS.md for all of them, and those of each
//! flavour.
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::{Policy, Timing, avr, cortex_m};

/// Code that binds core/ to a family of chips: a folder of ports/.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Port {
    /// ports/avr.
    Avr,
    /// ports/cortex-m.
    #[serde(rename = "cortex-m")]
    CortexM,
    /// ports/riscv. The costs of its limits in software are not measured, so Weir analyses none.
    Riscv,
}

impl Port {
    /// Its folder.
    #[must_use]
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Avr => "ports/avr",
            Self::CortexM => "ports/cortex-m",
            Self::Riscv => "ports/riscv",
        }
    }

    /// The rules of a flavour; none: the port has no such flavour.
    #[must_use]
    pub fn rules(self, flavour: Flavour) -> Option<&'static PortRules> {
        match (self, flavour) {
            (Self::Avr, Flavour::C) => Some(&avr::C),
            (Self::Avr, Flavour::Fast) => Some(&avr::FAST),
            (Self::CortexM, Flavour::C) => Some(&cortex_m::C),
            (Self::CortexM, Flavour::Fast) | (Self::Riscv, _) => None,
        }
    }
}

/// A flavour of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// Ordinary C handlers.
    C,
    /// Entries in assembly.
    Fast,
}

impl Flavour {
    /// Every flavour.
    pub const ALL: [Self; 2] = [Self::C, Self::Fast];

    /// The flavour of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flavour| flavour.name() == name)
    }

    /// The name in system files and costs.toml.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Fast => "fast",
        }
    }
}

/// What a flavour of a port can do.
#[derive(Debug)]
pub struct PortRules {
    /// The bits of the timers for one limit each.
    pub own_bits: u32,
    /// The bits of the timers that limits share (regehr2005 §3.5).
    pub shared_bits: u32,
    /// The letter of the channel that can be shared on such a timer; none: any.
    pub shared_letter: Option<char>,
    /// How many of the board's lines, from the first, can share a timer; none: all.
    pub shared_lines: Option<usize>,
    /// The smallest prescaler of a limit with a timer of its own.
    pub least_divisor: u64,
    /// Can only one source have a timer of its own?
    pub limits_one: bool,
    /// The most sources that a channel serves, all of them by its one alarm (LIMIT-SHARED-1).
    pub group: usize,
    /// The most cycles of a handler that save and restore registers. The compiler may spend them in
    /// the source's interrupts that do not run the handler, too.
    pub registers: u64,
    /// The timing of strict limits if a file states none; that of other limits is lazy.
    pub strict_timing: Timing,
    /// The ticks of a limit with a timer of its own. None: the flavour lacks this policy, timing or
    /// burst.
    pub offers: fn(Policy, Timing, u64, u32) -> Option<Range>,
    /// Is the entry of a limit's timer longer than its vector, so that it takes the one behind it,
    /// too?
    pub spills: fn(Policy, Timing) -> bool,
    /// The bursts that the flavour has for a policy.
    pub bursts: fn(Policy) -> RangeInclusive<u64>,
}

impl PortRules {
    /// Can limits share the channel of this name, on a timer of so many bits?
    #[must_use]
    pub fn shares(&self, channel: &str, bits: u32) -> bool {
        bits == self.shared_bits
            && self
                .shared_letter
                .is_none_or(|letter| channel.ends_with(letter))
    }
}

/// The ticks that an interval may have on a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The fewest.
    pub least: u64,
    /// The most.
    pub most: u64,
    /// The smallest prescaler.
    pub least_divisor: u64,
    /// Up to so many ticks the interval is short (on AVR the port then compares one byte of the
    /// counter).
    pub short: u64,
    /// The smallest prescaler of short intervals.
    pub short_divisor: u64,
}

/// Why an interval does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// It has more ticks than the timer can hold.
    TooLong,
    /// It has fewer ticks than the limiter needs.
    TooShort,
    /// The timer counts too fast for it.
    Divisor,
}

impl Range {
    /// All that a counter of so many bits can hold, for a timer that runs by itself.
    #[must_use]
    pub fn of_period(bits: u32) -> Self {
        Self {
            least: 1,
            most: 1_u64.checked_shl(bits).map_or(u64::MAX, |wrap| wrap - 1),
            least_divisor: 1,
            short: 0,
            short_divisor: 1,
        }
    }

    /// LIMIT-TIME-3: an interval stays below a quarter of the timer's wrap; in a bucket of N tokens
    /// below half of the wrap divided by N + 1.
    #[must_use]
    pub fn of_core(policy: Policy, burst: u64, bits: u32) -> Self {
        if policy == Policy::Poll {
            return Self::of_period(bits);
        }
        let half = bits
            .checked_sub(1)
            .and_then(|bits| 1_u64.checked_shl(bits))
            .unwrap_or(1);
        let span = if policy == Policy::Bucket {
            burst + 1
        } else {
            2
        };
        Self {
            most: (half - 1) / span,
            ..Self::of_period(bits)
        }
    }

    /// The fewest and the most ticks with a divisor; none: it does not fit.
    #[must_use]
    pub fn ticks_of(&self, divisor: u64) -> Option<(u64, u64)> {
        let least = if divisor < self.short_divisor {
            self.least.max(self.short + 1)
        } else {
            self.least
        };
        (divisor >= self.least_divisor && least <= self.most).then_some((least, self.most))
    }

    /// The ticks for at least so many cycles.
    ///
    /// # Errors
    /// Why that many do not fit.
    pub fn ticks(&self, cycles: u64, divisor: u64) -> Result<u64, Misfit> {
        let ticks = cycles.div_ceil(divisor.max(1));
        self.fits(ticks, divisor).map(|()| ticks)
    }

    /// Checks that so many ticks of so many cycles fit.
    ///
    /// # Errors
    /// Why they do not.
    pub fn fits(&self, ticks: u64, divisor: u64) -> Result<(), Misfit> {
        if ticks > self.most {
            Err(Misfit::TooLong)
        } else if ticks < self.least {
            Err(Misfit::TooShort)
        } else if self
            .ticks_of(divisor)
            .is_none_or(|(least, _)| ticks < least)
        {
            Err(Misfit::Divisor)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_contracts() {
        assert_eq!(Range::of_period(16).most, 65535);
        assert_eq!(Range::of_period(64).most, u64::MAX);
        assert_eq!(Range::of_core(Policy::Strict, 1, 8).most, 63);
        assert_eq!(Range::of_core(Policy::Strict, 1, 64).most, (1 << 62) - 1);
        assert_eq!(Range::of_core(Policy::Poll, 1, 16).most, 65535);
    }
}
