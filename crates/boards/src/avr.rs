// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flavours of ports/avr. Their rules repeat the checks of the port's headers
//! (weir/avr/check.h, lean.h, fast.h), so that users see an error before anything is compiled.
use std::ops::RangeInclusive;

use crate::{Policy, PortRules, Range, Timing};

/// The smallest prescaler for short intervals, and for all intervals in the flavour `fast`, because
/// its entries need a few cycles between two ticks.
pub const SHORT_DIVISOR: u64 = 8;
/// The most ticks for which `burst` intervals are short. One byte of the counter distinguishes
/// their instants.
pub const SHORT_TICKS: u64 = 240;
/// The fewest ticks of an interval in the flavour `fast`.
const FAST_LEAST_TICKS: u64 = 4;
/// The most ticks of an interval on an 8-bit timer. The rest of the 256 is needed by the entries of
/// `fast`.
const FAST_MOST_TICKS: u64 = 250;

/// A chip whose registers the port knows (weir/avr/registers.h).
#[derive(Debug, Clone, Copy)]
pub struct Chip {
    /// The chip's name, as `-mmcu` takes it.
    pub name: &'static str,
    /// The macro by which compilers identify the chip.
    pub symbol: &'static str,
    /// The names of the chip's timers.
    pub timers: &'static [&'static str],
    /// The names of the chip's external lines.
    pub lines: &'static [&'static str],
}

/// The chips whose registers the port knows.
pub const CHIPS: [Chip; 1] = [Chip {
    name: "atmega128",
    symbol: "__AVR_ATmega128__",
    timers: &["TIMER0", "TIMER1", "TIMER2", "TIMER3"],
    lines: &[
        "INT0", "INT1", "INT2", "INT3", "INT4", "INT5", "INT6", "INT7",
    ],
}];

/// The chip of this name; `None` if there is none.
#[must_use]
pub fn chip(name: &str) -> Option<Chip> {
    CHIPS.into_iter().find(|chip| chip.name == name)
}

/// The rules of the flavour `c`, which uses any 16-bit channel.
pub static C: PortRules = PortRules {
    own_bits: 16,
    shared_bits: 16,
    shared_letter: None,
    shared_lines: None,
    least_divisor: 1,
    limits_one: false,
    group: 1,
    // A compiler may keep values in 30 registers, and saving and restoring one takes 4 cycles
    // (ATmega128 data sheet, PUSH and POP).
    registers: 120,
    strict_timing: Timing::Lazy,
    offers: c_offers,
    spills: |_, _| false,
    bursts: c_bursts,
};

/// The rules of the flavour `fast`. It limits one source on an 8-bit timer, or up to four sources
/// that share channel A of a 16-bit timer, which restarts at its match.
pub static FAST: PortRules = PortRules {
    own_bits: 8,
    shared_bits: 16,
    shared_letter: Some('A'),
    shared_lines: Some(4),
    least_divisor: SHORT_DIVISOR,
    limits_one: true,
    group: 1,
    registers: 0,
    strict_timing: Timing::Eager,
    offers: fast_offers,
    spills: |policy, timing| matches!((policy, timing), (Policy::Strict, Timing::Eager)),
    bursts: fast_bursts,
};

fn c_offers(policy: Policy, timing: Timing, burst: u64, bits: u32) -> Option<Range> {
    let core = Range::of_core(policy, burst, bits);
    match policy {
        Policy::Off | Policy::Poll => None,
        _ if !c_bursts(policy).contains(&burst) => None,
        _ if timing == Timing::OneShot && policy != Policy::Bursty => None,
        _ => Some(Range {
            // The board's costs hold from this number of ticks on (WEIR_AVR_IS_LONG and
            // WEIR_AVR_BUCKET_IS_LONG in lean.h).
            least: if policy == Policy::Bucket && burst > 6 {
                40
            } else {
                16
            },
            short: SHORT_TICKS / burst,
            short_divisor: SHORT_DIVISOR,
            ..core
        }),
    }
}

/// The bursts of the flavour `c`, which core/include/weir/limit.h counts in a byte.
fn c_bursts(policy: Policy) -> RangeInclusive<u64> {
    1..=if policy.counts() { 255 } else { 1 }
}

fn fast_bursts(policy: Policy) -> RangeInclusive<u64> {
    match policy {
        // The entry counts down in a byte until the count is below 0.
        Policy::Bursty => 2..=128,
        Policy::Bucket => 2..=SHORT_TICKS / FAST_LEAST_TICKS,
        _ => 1..=1,
    }
}

fn fast_offers(policy: Policy, timing: Timing, burst: u64, _bits: u32) -> Option<Range> {
    let most = match (policy, timing) {
        _ if !fast_bursts(policy).contains(&burst) => return None,
        (Policy::Strict, Timing::Eager) | (Policy::Strict | Policy::Bursty, Timing::Lazy) => {
            FAST_MOST_TICKS
        }
        // A bucket looks ahead by `burst` intervals.
        (Policy::Bucket, Timing::Lazy) => SHORT_TICKS / burst,
        _ => return None,
    };
    Some(Range {
        least: FAST_LEAST_TICKS,
        most,
        least_divisor: FAST.least_divisor,
        short: 0,
        short_divisor: SHORT_DIVISOR,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Misfit;

    /// The expected numbers are those that weir/avr/check.h and fast.h print.
    #[test]
    fn the_ranges_are_those_of_the_headers() {
        let c = |policy, burst| c_offers(policy, Timing::Lazy, burst, 16).unwrap();
        assert_eq!(c(Policy::Strict, 1).most, 16383);
        assert_eq!(c(Policy::Bucket, 4).most, 32767 / 5);
        let fast = |policy, burst| fast_offers(policy, Timing::Lazy, burst, 8);
        assert_eq!(fast(Policy::Bucket, 4).unwrap().most, 60);
        assert_eq!(fast(Policy::Strict, 1).unwrap().most, 250);
        assert_eq!(fast(Policy::Bursty, 1), None);
        assert_eq!(fast(Policy::Bursty, 129), None);
        assert_eq!(fast(Policy::Bucket, 61), None);
    }

    #[test]
    fn an_interval_is_never_shorter_than_asked() {
        let range = c_offers(Policy::Strict, Timing::Lazy, 1, 16).unwrap();
        assert_eq!(range.ticks(16001, 8), Ok(2001));
        assert_eq!(range.ticks(16000, 8), Ok(2000));
        assert_eq!(range.ticks(200_000, 8), Err(Misfit::TooLong));
        // One byte of the counter distinguishes the instants, but it changes too fast without a
        // prescaler.
        assert_eq!(range.ticks(240, 1), Err(Misfit::Divisor));
        assert_eq!(range.ticks(241, 1), Ok(241));
        assert_eq!(range.ticks(240, 8), Ok(30));
        let fast = fast_offers(Policy::Strict, Timing::Lazy, 1, 8).unwrap();
        assert_eq!(fast.ticks(24, 8), Err(Misfit::TooShort));
        assert_eq!(fast.ticks(32, 8), Ok(4));
        assert_eq!(fast.ticks(100, 1), Err(Misfit::Divisor));
    }
}
