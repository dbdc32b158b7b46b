// SPDX-License-Identifier: MIT OR Apache-2.0
//! What limits a port can keep: core/CONTRACTS.md (LIMIT-TIME-3) for all, ports/avr/README.md and its headers for the boards, which are AVR.
use super::costs::Table;
use crate::system::{Policy, Timing};

/// The ticks that an interval may have on a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    /// The fewest.
    pub least: u64,
    /// The most.
    pub most: u64,
    /// The smallest prescaler.
    pub least_divisor: u64,
    /// Up to so many ticks the prescaler must be [`SHORT_DIVISOR`] or more: the port then compares one byte of the counter.
    pub short: u64,
}

/// The smallest prescaler of short intervals, and of all in the flavour `fast`: its entries need a few cycles between two ticks.
const SHORT_DIVISOR: u64 = 8;
/// `burst` intervals of at most so many ticks are short.
const SHORT_TICKS: u64 = 240;

/// The fewest ticks in the flavour `c`: the costs hold from there on (lean.h, `WEIR_AVR_IS_LONG`, `WEIR_AVR_BUCKET_IS_LONG`).
fn c_least_ticks(policy: Policy, burst: u64) -> u64 {
    if policy == Policy::Bucket && burst > 6 {
        40
    } else {
        16
    }
}

/// Why an interval does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    TooLong,
    TooShort,
    Divisor,
}

impl Range {
    /// All that a counter of so many bits can hold: for a timer that runs by itself.
    pub fn of_period(bits: u32) -> Self {
        Self {
            least: 1,
            most: 1_u64.checked_shl(bits).map_or(u64::MAX, |wrap| wrap - 1),
            least_divisor: 1,
            short: 0,
        }
    }

    /// LIMIT-TIME-3: an interval stays below half a wrap, divided by 2, for a bucket by N + 1.
    pub fn of_core(policy: Policy, burst: u64, bits: u32) -> Self {
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

    /// The flavour `c` of ports/avr (weir/avr/check.h, lean.h).
    pub fn of_c(policy: Policy, burst: u64, bits: u32) -> Self {
        Self {
            least: c_least_ticks(policy, burst),
            short: SHORT_TICKS / burst.max(1),
            ..Self::of_core(policy, burst, bits)
        }
    }

    /// The flavour `fast` of ports/avr (weir/avr/fast.h): an 8-bit timer.
    pub fn of_fast(policy: Policy, burst: u64) -> Self {
        Self {
            least: 4,
            most: if policy == Policy::Bucket {
                SHORT_TICKS / burst.max(1)
            } else {
                250
            },
            least_divisor: SHORT_DIVISOR,
            short: 0,
        }
    }

    /// The ticks of at least so many cycles.
    pub fn ticks(&self, cycles: u64, divisor: u64) -> Result<u64, Misfit> {
        let ticks = cycles.div_ceil(divisor.max(1));
        if ticks > self.most {
            Err(Misfit::TooLong)
        } else if ticks < self.least {
            Err(Misfit::TooShort)
        } else if divisor < self.least_divisor || (ticks <= self.short && divisor < SHORT_DIVISOR) {
            Err(Misfit::Divisor)
        } else {
            Ok(ticks)
        }
    }
}

/// What a flavour of ports/avr asks of a limit, beside the ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Port<'a> {
    pub flavour: &'a str,
}

impl Port<'_> {
    fn is_fast(self) -> bool {
        self.flavour == "fast"
    }

    /// The timing that holds if the file states none.
    pub fn timing(self, policy: Policy) -> Timing {
        if self.is_fast() && policy == Policy::Strict {
            Timing::Eager
        } else {
            Timing::Lazy
        }
    }

    /// May only one source have a timer of its own?
    pub fn limits_one(self) -> bool {
        self.is_fast()
    }

    /// The smallest burst, where there is one.
    pub fn least_burst(self, policy: Policy) -> u64 {
        if self.is_fast() && matches!(policy, Policy::Bursty | Policy::Bucket) {
            2
        } else {
            1
        }
    }

    /// The bits of the timers that this kind of limit runs on; none: any.
    pub fn bits(self, table: Table) -> Option<u32> {
        match table {
            Table::Off | Table::Poll => None,
            Table::Own(..) if self.is_fast() => Some(8),
            Table::Own(..) | Table::Shared => Some(16),
        }
    }

    /// Can a shared timer be on this channel? `fast` restarts its timer at the match of channel A.
    pub fn shares(self, channel: &str) -> bool {
        !self.is_fast() || channel.ends_with('A')
    }

    /// How many of the board's lines, from the first, can share a timer; none: all.
    pub fn shared_lines(self) -> Option<usize> {
        self.is_fast().then_some(4)
    }

    /// The ticks of a limit.
    pub fn range(self, policy: Policy, burst: u64, bits: u32) -> Range {
        if policy == Policy::Poll {
            Range::of_period(bits)
        } else if self.is_fast() {
            Range::of_fast(policy, burst)
        } else {
            Range::of_c(policy, burst, bits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that weir/avr/check.h and fast.h print.
    #[test]
    fn the_ranges_are_those_of_the_headers() {
        assert_eq!(Range::of_c(Policy::Strict, 1, 16).most, 16383);
        assert_eq!(Range::of_c(Policy::Bucket, 4, 16).most, 32767 / 5);
        assert_eq!(Range::of_period(16).most, 65535);
        assert_eq!(Range::of_period(64).most, u64::MAX);
        assert_eq!(Range::of_fast(Policy::Bucket, 4).most, 60);
        assert_eq!(Range::of_fast(Policy::Strict, 1).most, 250);
        assert_eq!(Range::of_core(Policy::Strict, 1, 8).most, 63);
        assert_eq!(Range::of_core(Policy::Strict, 1, 64).most, (1 << 62) - 1);
    }

    #[test]
    fn an_interval_is_never_shorter_than_asked() {
        let range = Range::of_c(Policy::Strict, 1, 16);
        assert_eq!(range.ticks(16001, 8), Ok(2001));
        assert_eq!(range.ticks(16000, 8), Ok(2000));
        assert_eq!(range.ticks(200_000, 8), Err(Misfit::TooLong));
        // One byte of the counter tells its instants apart, and changes too fast without a prescaler.
        assert_eq!(range.ticks(240, 1), Err(Misfit::Divisor));
        assert_eq!(range.ticks(241, 1), Ok(241));
        assert_eq!(range.ticks(240, 8), Ok(30));
        let fast = Range::of_fast(Policy::Strict, 1);
        assert_eq!(fast.ticks(24, 8), Err(Misfit::TooShort));
        assert_eq!(fast.ticks(32, 8), Ok(4));
        assert_eq!(fast.ticks(100, 1), Err(Misfit::Divisor));
    }
}
