// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timers that a tuner may use, and what limiters on them cost.

pub use weir_model::TickRange as Range;
use weir_model::{EventCosts, Level, Policy, Timing};

/// The largest burst: core/include/weir/limit.h counts it in a byte.
pub const MOST_BURST: u32 = 255;

/// The timers of a processor.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Platform {
    /// The counters. All channels of one counter have the same divisor.
    pub counters: Vec<TimerCounter>,
    /// The compare channels, in the order in which they are assigned.
    pub channels: Vec<TimerChannel>,
}

/// A hardware timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerCounter {
    /// Its name in the chip's or the file's words.
    pub name: String,
    /// The first counter that can do the same; its own index if none before it can.
    pub kind: usize,
}

/// A compare channel of a counter.
#[derive(Debug, Clone, PartialEq)]
pub struct TimerChannel {
    /// Its name in the port's words: `TIMER1A`.
    pub name: String,
    /// The `[[timer]]` of the file by which limits refer to it. None: limits refer to it by its own
    /// name (boards).
    pub timer: Option<String>,
    /// Index in [`Platform::counters`].
    pub counter: usize,
    /// Its interrupt. Where several limits use the channel, that is in the preemption group of
    /// their sources.
    pub level: Level,
    /// The most limits that it can serve at once.
    pub limits: usize,
    /// Cycles of one of its clock, which the prescaler divides.
    pub clock_cycles: u64,
    /// The limiters that it can serve.
    pub own: Vec<Offer>,
    /// The way it clears several sources, if it can.
    pub shared: Option<SharedOffer>,
}

/// A limiter with a channel of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// How it limits.
    pub policy: Policy,
    /// When it masks.
    pub timing: Timing,
    /// The costs of its interrupts for each source ([`weir_model::System::sources`]). Registers
    /// that a handler saves may add to interrupts that do not run it.
    pub costs: Vec<EventCosts>,
    /// The `lag` of its one-shot in ticks ([`weir_model::Limit::lag`]).
    pub lag: u32,
    /// Bits of its timer ([`weir_model::Limit::bits`]).
    pub bits: u32,
    /// The ticks that it can count, by divisor in ascending order. Divisors with which it does not
    /// work are missing.
    pub ranges: Vec<Range>,
}

/// A timer that clears several bursty limiters (regehr2005 §3.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedOffer {
    /// The costs of each source's interrupts, with what it adds to the timer's; by source
    /// ([`weir_model::System::sources`]).
    pub costs: Vec<EventCosts>,
    /// The cost of the timer's interrupt beside that.
    pub base: u64,
    /// Its bits ([`weir_model::Limit::bits`]).
    pub bits: u32,
    /// The ticks that it can count, by divisor in ascending order. Divisors with which it does not
    /// work are missing.
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

/// What a channel can count for a policy and timing; without these, for a shared timer.
type Ability<'a> = (Option<(Policy, Timing)>, &'a [Range]);

impl TimerChannel {
    fn abilities(&self) -> Vec<Ability<'_>> {
        let own = self.own.iter();
        own.map(|of| (Some((of.policy, of.timing)), &of.ranges[..]))
            .chain(self.shared.iter().map(|of| (None, &of.ranges[..])))
            .collect()
    }

    /// Its interrupt for a limit of the source whose interrupt is `source`.
    #[must_use]
    pub fn level_for(&self, source: &Level) -> Level {
        Level {
            group: if self.limits > 1 {
                source.group
            } else {
                self.level.group
            },
            ..self.level.clone()
        }
    }

    /// The offer of the channel for a limiter of its own.
    #[must_use]
    pub fn offer(&self, policy: Policy, timing: Timing) -> Option<&Offer> {
        self.own
            .iter()
            .find(|offer| offer.policy == policy && offer.timing == timing)
    }
}
