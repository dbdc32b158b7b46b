// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules of ports: those of LIMIT-TIME-3 in core/CONTRACTS.md for all ports, and those of each
//! flavour.
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::{Policy, Timing, avr, cortex_m};

/// A port: the code in a folder of ports/ that binds core/ to a family of chips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Port {
    /// The port in ports/avr.
    Avr,
    /// The port in ports/cortex-m.
    #[serde(rename = "cortex-m")]
    CortexM,
    /// The port in ports/riscv. The costs of its limits in software are not measured, so Weir
    /// analyses no such limits.
    Riscv,
}

impl Port {
    /// The port's folder below ports/.
    #[must_use]
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Avr => "ports/avr",
            Self::CortexM => "ports/cortex-m",
            Self::Riscv => "ports/riscv",
        }
    }

    /// The rules of a flavour; `None` if the port does not have this flavour.
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

/// A flavour of a port: the way in which its interrupt handlers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// The handlers are ordinary C.
    C,
    /// The entries of handlers are in assembly.
    Fast,
}

impl Flavour {
    /// Every flavour.
    pub const ALL: [Self; 2] = [Self::C, Self::Fast];

    /// The flavour of this name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flavour| flavour.name() == name)
    }

    /// The flavour's name in system files and costs.toml.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Fast => "fast",
        }
    }
}

/// The rules of what a flavour of a port can do.
#[derive(Debug)]
pub struct PortRules {
    /// The width in bits of timers that serve a single limit.
    pub own_bits: u32,
    /// The width in bits of timers that limits share (regehr2005 §3.5).
    pub shared_bits: u32,
    /// The letter of the only channel that limits can share on such a timer; `None` if they can
    /// share any.
    pub shared_letter: Option<char>,
    /// The number of the board's lines, from the first, that can share a timer; `None` if all can.
    pub shared_lines: Option<usize>,
    /// The smallest prescaler for a limit with a timer of its own.
    pub least_divisor: u64,
    /// Whether only one source can have a timer of its own.
    pub limits_one: bool,
    /// The most sources that one channel serves, all by the same alarm (LIMIT-SHARED-1).
    pub group: usize,
    /// The most cycles of a handler that save and restore registers. The compiler may also spend
    /// them in the source's interrupts that do not run the handler.
    pub registers: u64,
    /// The default timing of strict limits; that of all other limits is lazy.
    pub strict_timing: Timing,
    /// The ticks that a limit with a timer of its own can have. `None` if the flavour lacks this
    /// policy, timing or burst.
    pub offers: fn(Policy, Timing, u64, u32) -> Option<Range>,
    /// Whether the entry of a limit's timer is longer than its vector, so that it also occupies the
    /// next vector.
    pub spills: fn(Policy, Timing) -> bool,
    /// The bursts that the flavour supports for a policy.
    pub bursts: fn(Policy) -> RangeInclusive<u64>,
}

impl PortRules {
    /// Whether limits can share the channel of this name, on a timer of this width in bits.
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
    /// The fewest ticks.
    pub least: u64,
    /// The most ticks.
    pub most: u64,
    /// The smallest prescaler for intervals that are not short.
    pub least_divisor: u64,
    /// The most ticks of a short interval. (On AVR the port compares one byte of the counter for a
    /// short interval.)
    pub short: u64,
    /// The smallest prescaler for short intervals.
    pub short_divisor: u64,
}

/// The reason why an interval does not fit a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// The interval has more ticks than the timer can hold.
    TooLong,
    /// The interval has fewer ticks than the limiter needs.
    TooShort,
    /// The timer counts too fast for the interval, so its prescaler must be larger.
    Divisor,
}

impl Range {
    /// The range of everything that a counter of this width can hold, for a free-running timer.
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

    /// The range of LIMIT-TIME-3. An interval stays below a quarter of the timer's wrap. In a
    /// bucket of N tokens it stays below half of the wrap divided by N + 1.
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

    /// The fewest and the most ticks with a divisor; `None` if the divisor is too small.
    #[must_use]
    pub fn ticks_of(&self, divisor: u64) -> Option<(u64, u64)> {
        let least = if divisor < self.short_divisor {
            self.least.max(self.short + 1)
        } else {
            self.least
        };
        (divisor >= self.least_divisor && least <= self.most).then_some((least, self.most))
    }

    /// The number of ticks that take at least `cycles`.
    ///
    /// # Errors
    /// Returns the reason why that many ticks do not fit.
    pub fn ticks(&self, cycles: u64, divisor: u64) -> Result<u64, Misfit> {
        let ticks = cycles.div_ceil(divisor.max(1));
        self.fits(ticks, divisor).map(|()| ticks)
    }

    /// Checks that `ticks` ticks of `divisor` cycles fit.
    ///
    /// # Errors
    /// Returns the reason why they do not fit.
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
