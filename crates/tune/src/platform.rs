// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timers that a tuner may use, and what limiters on them cost.

pub use weir_model::TickRange as Range;
use weir_model::{EventCosts, Level, Policy, Timing};

/// The largest burst: core/include/weir/limit.h counts it in a byte.
pub const MOST_BURST: u32 = 255;

/// The timers of a processor.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Platform {
    /// What counts. All channels of one counter have the same divisor.
    pub counters: Vec<TimerCounter>,
    /// What can interrupt when a counter reaches a value, in the order in which they are given
    /// away.
    pub channels: Vec<TimerChannel>,
}

/// A hardware timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerCounter {
    /// What the chip or the file calls it.
    pub name: String,
    /// The first counter that can do the same: its own index, if none before it can.
    pub kind: usize,
}

/// A compare channel of a counter.
#[derive(Debug, Clone, PartialEq)]
pub struct TimerChannel {
    /// As the port calls it: `TIMER1A`.
    pub name: String,
    /// The `[[timer]]` that it is in the file, and by which limits refer to it. None: limits refer
    /// to it by its own name (boards).
    pub timer: Option<String>,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// How it limits.
    pub policy: Policy,
    /// When it masks.
    pub timing: Timing,
    /// What its interrupts cost, by source ([`weir_model::System::sources`]): what a handler saves
    /// may cost those interrupts, too, that do not run it.
    pub costs: Vec<EventCosts>,
    /// The `lag` of its one-shot in ticks ([`weir_model::Limit::lag`]).
    pub lag: u32,
    /// Bits of its timer ([`weir_model::Limit::bits`]).
    pub bits: u32,
    /// What it can count, by divisor in ascending order; divisors with which it does not work are
    /// missing.
    pub ranges: Vec<Range>,
}

/// A timer that clears several bursty limiters (regehr2005 §3.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedOffer {
    /// What each source's interrupts cost, and what it adds to the timer's; by source
    /// ([`weir_model::System::sources`]).
    pub costs: Vec<EventCosts>,
    /// What the timer's interrupt costs beside.
    pub base: u64,
    /// Its bits ([`weir_model::Limit::bits`]).
    pub bits: u32,
    /// What it can count, by divisor in ascending order; divisors with which it does not work are
    /// missing.
    pub ranges: Vec<Range>,
}

impl Platform {
    /// Sets [`TimerCounter::kind`] of all counters.
    pub fn tell_kinds(&mut self) {
        let abilities: Vec<Vec<_>> = (0..self.counters.len())
            .map(|counter| {
                let channels = self.channels.iter().filter(|of| of.counter == counter);
                channels.map(TimerChannel::abilities).collect()
            })
            .collect();
        for (index, counter) in self.counters.iter_mut().enumerate() {
            let own = abilities.get(index);
            let first = abilities.iter().position(|of| Some(of) == own);
            counter.kind = first.unwrap_or(index);
        }
    }
}

/// A policy, its timing, and what can be counted; or the same of a shared timer.
type Ability<'a> = (Option<(Policy, Timing)>, &'a [Range]);

impl TimerChannel {
    fn abilities(&self) -> Vec<Ability<'_>> {
        let own = self.own.iter();
        own.map(|of| (Some((of.policy, of.timing)), &of.ranges[..]))
            .chain(self.shared.iter().map(|of| (None, &of.ranges[..])))
            .collect()
    }

    /// What the channel offers for a limiter of its own.
    #[must_use]
    pub fn offer(&self, policy: Policy, timing: Timing) -> Option<&Offer> {
        self.own
            .iter()
            .find(|offer| offer.policy == policy && offer.timing == timing)
    }
}
