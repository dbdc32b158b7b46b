// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flavour of ports/cortex-m. Its rules repeat the checks of the port's headers
//! (weir/cortex_m/limit.h, group.h), so that users see an error before anything is compiled.
use std::ops::RangeInclusive;

use serde::Deserialize;

use crate::{Policy, PortRules, Range, Timing};

/// The processors for which the port has code. Each has the macro by which compilers identify its
/// family.
pub const CHIPS: [(&str, &str); 3] = [
    ("cortex-m3", "__ARM_ARCH_7M__"),
    ("cortex-m4", "__ARM_ARCH_7EM__"),
    ("cortex-m7", "__ARM_ARCH_7EM__"),
];
/// The number of vectors before the first line of the NVIC.
pub const EXCEPTIONS: usize = 15;
/// The timers for which the port has code, by the names that boards use for them.
pub const DRIVERS: [(&str, TimerCode<'static>); 1] = [(
    "cmsdk-dual-timer",
    TimerCode {
        header: "weir/chips/cmsdk.h",
        call: "WEIR_CMSDK_DUAL_TIMER",
        divisors: &[1, 16, 256],
    },
)];

/// The code that runs a board's timer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    expecting = "a driver is the name of one, or { header = \"my_timer.h\", macro = \"MY_TIMER\" }"
)]
pub enum TimerDriver {
    /// The name of one of [`DRIVERS`].
    Known(String),
    /// A header that the board brings itself.
    Own(OwnDriver),
}

/// A board's own code for a timer: a macro with the same parameters as those of [`DRIVERS`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnDriver {
    /// The header, as firmware includes it.
    header: String,
    /// The name of the macro in the header.
    #[serde(rename = "macro")]
    call: String,
}

impl TimerDriver {
    /// The code for the timer; `None` if no driver has this name.
    #[must_use]
    pub fn code(&self) -> Option<TimerCode<'_>> {
        match self {
            Self::Known(name) => DRIVERS.iter().find(|of| of.0 == name).map(|of| of.1),
            Self::Own(OwnDriver { header, call }) => Some(TimerCode {
                header,
                call,
                divisors: &[],
            }),
        }
    }
}

/// The code of a timer (ports/cortex-m/README.md, "Another chip").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerCode<'a> {
    /// The header that firmware includes.
    pub header: &'a str,
    /// The macro that defines the timer. Its parameters are the timer's name, the address of its
    /// registers, its line and its divisor.
    pub call: &'a str,
    /// The divisors that the code can set. They are empty for a board's own code, because the
    /// board's file states them.
    pub divisors: &'static [u64],
}

impl TimerCode<'_> {
    /// Whether the header and the macro can be written into a C header.
    pub(crate) fn is_safe(&self) -> bool {
        let of_name = |of: char| of.is_ascii_alphanumeric() || of == '_';
        let of_path = |of: char| of_name(of) || "-./".contains(of);
        let begins = |text: &str| text.starts_with(|of: char| of_name(of) && !of.is_ascii_digit());
        begins(self.call)
            && self.call.chars().all(of_name)
            && !self.header.is_empty()
            && self.header.chars().all(of_path)
    }
}

/// The most ticks that a limiter looks ahead and back together (WEIR_CORTEX_M_SPAN_MOST).
const SPAN_MOST: u64 = 1 << 30;
/// The fewest ticks with and without a prescaler. A shorter interval ends before the interrupts of
/// its limiter do, and their costs in that case have not been measured.
const LEAST_TICKS: u64 = 4;
const LEAST_UNDIVIDED: u64 = 16 * LEAST_TICKS;
/// The ticks after which the alarm of an idle group interrupts to age its sources. It is
/// WEIR_CORTEX_M_REST less one tick, because the alarm may come one tick early.
pub const REST_TICKS: u64 = (1 << 29) - 1;
/// The most urgent priority that a group can have.
pub const MOST_URGENT_GROUP: u32 = 1;
/// The message for a limited source that is more urgent.
pub const TOO_URGENT: &str = "a limited source has no priority 0, which BASEPRI cannot hold back";

/// The rules of the flavour `c`. It uses any 32-bit timer, whose alarm up to eight sources of one
/// priority share.
pub static C: PortRules = PortRules {
    own_bits: 32,
    // No timer of this port clears the counts of several limits (regehr2005 §3.5).
    shared_bits: 0,
    shared_letter: None,
    shared_lines: Some(0),
    least_divisor: 1,
    limits_one: false,
    group: 8,
    // The handler has one instruction that pushes registers and one that moves the stack pointer,
    // and the same two at its end.
    registers: 4,
    strict_timing: Timing::Lazy,
    offers,
    spills: |_, _| false,
    bursts,
};

fn offers(policy: Policy, timing: Timing, burst: u64, bits: u32) -> Option<Range> {
    let is_missing = matches!(policy, Policy::Off | Policy::Poll)
        || (timing == Timing::OneShot && policy != Policy::Bursty)
        || !bursts(policy).contains(&burst);
    let span = if policy == Policy::Bucket {
        burst + 1
    } else {
        2
    };
    (!is_missing).then(|| Range {
        least: LEAST_TICKS,
        most: SPAN_MOST / span,
        short: LEAST_UNDIVIDED - 1,
        short_divisor: 16,
        ..Range::of_core(policy, burst, bits)
    })
}

/// The bursts that core/include/weir/limit.h can count in a byte.
fn bursts(policy: Policy) -> RangeInclusive<u64> {
    1..=if policy.counts() { 255 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Misfit;

    /// The expected numbers are those of weir_cortex_m_bad_limit() in limit.h.
    #[test]
    fn the_ranges_are_those_of_the_headers() {
        let most = |policy, burst| offers(policy, Timing::Lazy, burst, 32).unwrap().most;
        assert_eq!(most(Policy::Strict, 1), 1 << 29);
        assert_eq!(most(Policy::Bursty, 255), 1 << 29);
        assert_eq!(most(Policy::Bucket, 7), 1 << 27);
        assert_eq!(offers(Policy::Bucket, Timing::Lazy, 256, 32), None);
        assert_eq!(offers(Policy::Strict, Timing::OneShot, 1, 32), None);
        assert_eq!(offers(Policy::Strict, Timing::Lazy, 2, 32), None);
        let range = offers(Policy::Bursty, Timing::OneShot, 3, 32).unwrap();
        assert_eq!(range.ticks(63, 1), Err(Misfit::Divisor));
        assert_eq!(range.ticks(63, 16), Ok(4));
        assert_eq!(range.ticks(48, 16), Err(Misfit::TooShort));
        assert_eq!(range.ticks((1 << 29) + 1, 1), Err(Misfit::TooLong));
        assert_eq!(range.ticks(1600, 16), Ok(100));
    }
}
