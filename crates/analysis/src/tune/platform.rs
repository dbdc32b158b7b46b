// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes the timers that a tuner may use, and the costs of limiters on them.

pub use weir_model::TickRange as Range;
use weir_model::{EventCosts, Level, Policy, Timing};

/// The largest burst. core/include/weir/limit.h stores the count in a byte.
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
    /// The counter's name, as the chip or the file calls it.
    pub name: String,
    /// The index of the first counter with the same abilities; this counter's own index if no
    /// earlier one has them.
    pub kind: usize,
}

/// A compare channel of a counter.
#[derive(Debug, Clone, PartialEq)]
pub struct TimerChannel {
    /// The channel's name as the port calls it, for example `TIMER1A`.
    pub name: String,
    /// The `[[timer]]` of the file by which limits refer to the channel. `None` if limits refer to
    /// it by its own name, as on boards.
    pub timer: Option<String>,
    /// Index in [`Platform::counters`].
    pub counter: usize,
    /// The channel's interrupt. Where several limits use the channel, its interrupt is in the
    /// preemption group of their sources.
    pub level: Level,
    /// The most limits that the channel can serve at once.
    pub limits: usize,
    /// Processor cycles of one cycle of the channel's input clock, which the prescaler divides.
    pub clock_cycles: u64,
    /// The limiters that can use the channel alone.
    pub own: Vec<Offer>,
    /// The costs of clearing several sources with this channel; `None` if it cannot.
    pub shared: Option<SharedOffer>,
}

/// A limiter with a channel of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The limiter's policy.
    pub policy: Policy,
    /// When the limiter masks the source.
    pub timing: Timing,
    /// The costs of the limiter's interrupts for each source, by index in
    /// [`weir_model::System::sources`]. Registers that a handler saves may also add to interrupts
    /// that do not run it.
    pub costs: Vec<EventCosts>,
    /// The number of ticks by which the one-shot is set short ([`weir_model::Limit::lag`]).
    pub lag: u32,
    /// The width of the limiter's timer in bits ([`weir_model::Limit::bits`]).
    pub bits: u32,
    /// The ranges of ticks that the limiter can count, by divisor in ascending order. Divisors with
    /// which it does not work are missing.
    pub ranges: Vec<Range>,
}

/// A timer that clears several bursty limiters (regehr2005 §3.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedOffer {
    /// The costs of each source's interrupts, with what the source adds to the timer's interrupt,
    /// by index in [`weir_model::System::sources`].
    pub costs: Vec<EventCosts>,
    /// The cost of the timer's interrupt in cycles, without what the sources add.
    pub base: u64,
    /// The width of the timer in bits ([`weir_model::Limit::bits`]).
    pub bits: u32,
    /// The ranges of ticks that the timer can count, by divisor in ascending order. Divisors with
    /// which it does not work are missing.
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

/// The ranges that a channel can count, with the policy and timing of the limiter. The policy and
/// timing are `None` for a shared timer.
type Ability<'a> = (Option<(Policy, Timing)>, &'a [Range]);

impl TimerChannel {
    fn abilities(&self) -> Vec<Ability<'_>> {
        let own = self.own.iter();
        own.map(|of| (Some((of.policy, of.timing)), &of.ranges[..]))
            .chain(self.shared.iter().map(|of| (None, &of.ranges[..])))
            .collect()
    }

    /// The channel's interrupt for a limit of the source whose interrupt is `source`.
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

    /// The channel's offer for a limiter that uses it alone; `None` if it cannot serve this policy
    /// and timing.
    #[must_use]
    pub fn offer(&self, policy: Policy, timing: Timing) -> Option<&Offer> {
        self.own
            .iter()
            .find(|offer| offer.policy == policy && offer.timing == timing)
    }
}
