// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timers that a tuner may use, and what limiters on them cost.

use weir_model::{EventCosts, Level, Policy, Timing};

/// The largest burst: core/limit.h counts it in a byte.
pub const MOST_BURST: u32 = 255;

/// The timers of a processor.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Platform {
    /// What counts. All channels of one counter have the same divisor.
    pub counters: Vec<Counter>,
    /// What can interrupt when a counter reaches a value, in the order in which they are given away.
    pub channels: Vec<Channel>,
}

/// A hardware timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// What the chip or the file calls it.
    pub name: String,
    /// Cycles per tick that it can be set to, ascending.
    pub divisors: Vec<u64>,
}

/// A compare channel of a counter.
#[derive(Debug, Clone, PartialEq)]
pub struct Channel {
    /// As the file calls it: `TIMER1A`.
    pub name: String,
    /// Index in [`Platform::counters`].
    pub counter: usize,
    /// Its interrupt.
    pub level: Level,
    /// The limiters that it can serve alone.
    pub own: Vec<Offer>,
    /// How it clears several, if it can.
    pub shared: Option<SharedOffer>,
}

/// A limiter with a channel of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// How it limits.
    pub policy: Policy,
    /// When it masks.
    pub timing: Timing,
    /// What its interrupts cost.
    pub costs: EventCosts,
    /// The most ticks that intervals may last together: one and a half of them must stay below (core/CONTRACTS.md, LIMIT-TIME-3).
    pub reach: u64,
    /// The least divisor with which the limiter works.
    pub least_divisor: u64,
}

impl Offer {
    /// The longest interval in ticks for this burst.
    #[must_use]
    pub fn most_ticks(&self, burst: u32) -> u64 {
        let intervals = match self.policy {
            Policy::Bucket => u64::from(burst).saturating_add(1),
            _ => 2,
        };
        self.reach / intervals
    }
}

/// A timer that clears several bursty limiters (regehr2005 §3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedOffer {
    /// What each source's interrupts cost, and what it adds to the timer's.
    pub costs: EventCosts,
    /// What the timer's interrupt costs beside.
    pub base: u64,
    /// The longest period in ticks.
    pub most_ticks: u64,
    /// The least divisor with which it works.
    pub least_divisor: u64,
}

impl Channel {
    /// What the channel offers for a limiter of its own.
    #[must_use]
    pub fn offer(&self, policy: Policy, timing: Timing) -> Option<&Offer> {
        self.own
            .iter()
            .find(|offer| offer.policy == policy && offer.timing == timing)
    }
}
