// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a system file's processor that programs need in order to choose limits.
use miette::SourceSpan;
use weir_boards::Range;

use super::costs::{self, CostTable};
use super::cpu;
use super::processor::Processor;
use super::timers::Bank;
use super::{groups, levels, limits, receivers, sources};
use crate::Level;
use crate::diagnostics::{Diagnostics, Problems};
use crate::file;
use crate::file::sections::{Root, Source};
use crate::system::{EventCosts, Policy, System, Timing};

/// A way in which a limiter can use a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimiterShape {
    /// The limiter has the channel for itself. The values are its policy, timing and burst.
    Own(Policy, Timing, u32),
    /// The limiter is one of several whose counts the channel clears (regehr2005 §3.5).
    Shared,
}

/// The intervals that a timer can count with one divisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickRange {
    /// Cycles per tick.
    pub divisor: u64,
    /// The fewest ticks that an interval can have.
    pub least: u64,
    /// The most ticks that an interval can have.
    pub most: u64,
}

/// A compare channel, as a file's limits name it.
#[derive(Debug)]
pub struct HardwareChannel<'a> {
    /// The name of the channel in the port, or of the file's `[[timer]]`.
    pub name: &'a str,
    /// The name of the channel's counter.
    pub counter: &'a str,
    /// The width of the channel's counter in bits.
    pub bits: u32,
    /// The channel's interrupt.
    pub level: &'a Level,
    /// The most limits that the channel can serve at once by its alarm. Their sources must all have
    /// the preemption group of the channel's interrupt.
    pub limits: usize,
    /// Processor cycles of one cycle of the counter's clock, which the prescaler divides.
    pub clock_cycles: u64,
}

/// The timers of a file's processor, and the costs of limiters on them for the file's sources.
pub struct Hardware<'a> {
    root: &'a Root,
    processor: Processor<'a>,
    bank: Bank,
    text: &'a str,
}

/// Calls `ask` with the processor of a system file. Returns `None` if the text does not describe a
/// processor.
pub fn with_hardware<T>(text: &str, ask: impl FnOnce(&Hardware<'_>) -> T) -> Option<T> {
    let mut problems = Problems::of(text);
    let root = file::read(text, &mut problems)?;
    let processor = cpu::resolve(root.cpu.get()?, &root, &mut problems)?;
    let bank = Bank::new(&root, &processor, &mut problems);
    Some(ask(&Hardware {
        root: &root,
        processor,
        bank,
        text,
    }))
}

impl Hardware<'_> {
    /// The compare channels; channels of one counter are adjacent.
    pub fn channels(&self) -> impl Iterator<Item = HardwareChannel<'_>> {
        self.bank.channels.iter().filter_map(|channel| {
            let counter = self.bank.counters.get(channel.counter)?;
            Some(HardwareChannel {
                name: &channel.name,
                counter: &counter.name,
                bits: counter.bits,
                level: &channel.level,
                limits: self.processor.rules().map_or(1, |rules| rules.group),
                clock_cycles: counter.clock_cycles,
            })
        })
    }

    /// Whether only one source can have a channel for itself, and then no other source a limit.
    #[must_use]
    pub fn limits_one(&self) -> bool {
        let rules = self.processor.rules();
        rules.is_some_and(|rules| rules.limits_one)
    }

    /// The intervals that a limiter on the channel with this index can have, by divisor in
    /// ascending order. Empty if the channel cannot serve the limiter.
    #[must_use]
    pub fn ranges(&self, channel: usize, limiter: LimiterShape) -> Vec<TickRange> {
        let Some((range, counter)) = self
            .range(channel, limiter)
            .zip(self.bank.counter_of(channel))
        else {
            return Vec::new();
        };
        let with = |&divisor: &u64| {
            let (least, most) = range.ticks_of(divisor)?;
            Some(TickRange {
                divisor: divisor.saturating_mul(counter.clock_cycles),
                least,
                most,
            })
        };
        counter.divisors.iter().filter_map(with).collect()
    }

    fn range(&self, channel: usize, limiter: LimiterShape) -> Option<Range> {
        let bits = self.bank.counter_of(channel)?.bits;
        let rules = self.processor.rules();
        match limiter {
            LimiterShape::Shared => {
                let name = &self.bank.channels.get(channel)?.name;
                rules
                    .is_none_or(|rules| rules.shares(name, bits))
                    .then(|| Range::of_period(bits))
            }
            LimiterShape::Own(policy, timing, burst) => {
                let burst = u64::from(burst);
                let Some(rules) = rules else {
                    return Some(Range::of_core(policy, burst, bits));
                };
                (rules.offers)(policy, timing, burst, bits).filter(|_| rules.own_bits == bits)
            }
        }
    }

    /// The costs of a limiter on the channel for the source with this index. `None` if the source
    /// cannot have this limiter.
    #[must_use]
    pub fn costs(
        &self,
        source: usize,
        channel: usize,
        limiter: LimiterShape,
    ) -> Option<EventCosts> {
        let source = self.root.source.elements().get(source)?;
        if source.interface.is_stated() {
            // Linux has no code for limits in software.
            return None;
        }
        let mut problems = Problems::of(self.text);
        let shared = limiter == LimiterShape::Shared;
        limits::is_line(source, shared, &self.processor, &mut problems)?;
        let level = levels::of_source(source, &self.processor, &mut problems)?;
        let of_channel = &self.bank.channels.get(channel)?.level;
        let is_apart = level.vector != of_channel.vector
            && (level.group, level.order) != (of_channel.group, of_channel.order);
        let costs = self.events(source, channel, limiter, &mut problems)?;
        is_apart.then_some(costs)
    }

    /// Checks whether the priorities of these sources, given by index, allow a limit. No limiter
    /// changes priorities. `name` is the name of the file.
    ///
    /// # Errors
    /// Returns the sources whose interrupts a limiter cannot hold back.
    pub fn check_priorities(&self, name: &str, sources: &[usize]) -> Result<(), Diagnostics> {
        let mut problems = Problems::of(self.text);
        let all = self.root.source.elements();
        if let Some((_, (board, _))) = groups::rules(&self.processor) {
            for source in sources.iter().filter_map(|&index| all.get(index)) {
                groups::at_least_one(source, board, &mut problems);
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(problems.into_diagnostics(name))
    }

    /// Checks that no limit of `system` lets through less than what flows with deadlines bring.
    /// `system` must be that of this file, and `name` is the file's name. A limit of a source in
    /// `tuned` (indices) may let through what the source tolerates.
    ///
    /// # Errors
    /// Returns the flows that bring more.
    pub fn check_rates(
        &self,
        name: &str,
        system: &System,
        tuned: &[usize],
    ) -> Result<(), Diagnostics> {
        let mut problems = Problems::of(self.text);
        let is_tuned = |source: usize| tuned.contains(&source);
        receivers::check_rates(self.root, system, &is_tuned, &mut problems);
        if problems.is_empty() {
            return Ok(());
        }
        Err(problems.into_diagnostics(name))
    }

    fn events(
        &self,
        source: &Source,
        channel: usize,
        limiter: LimiterShape,
        problems: &mut Problems<'_>,
    ) -> Option<EventCosts> {
        let table = table(limiter);
        let name = &self.bank.channels.get(channel)?.name;
        let events = costs::events(&self.processor, table, Some(name), source.at, problems)?;
        let all = self.root.source.elements().len();
        let costs = groups::most(&self.processor, all, costs::costs(table, &events));
        let handler = self.processor.clock.cost(&source.handler, problems)?;
        let registers = sources::registers(source, handler, &self.processor, problems)?;
        Some(if limiter == LimiterShape::Shared {
            costs
        } else {
            sources::with_registers(costs, registers)
        })
    }

    /// The lines that the file lacks to state the costs of this limiter, as a user would write
    /// them. `None` if the file or a board states the costs.
    #[must_use]
    pub fn missing_costs(&self, limiter: LimiterShape) -> Option<String> {
        let mut problems = Problems::of(self.text);
        costs::missing_in_file(&self.processor, table(limiter), &mut problems)
    }

    /// The cost in cycles of the interrupt of a shared timer on the channel, without what its
    /// sources add.
    #[must_use]
    pub fn base(&self, channel: usize) -> u64 {
        let name = self.bank.channels.get(channel).map(|of| of.name.as_str());
        let mut problems = Problems::of(self.text);
        let at = SourceSpan::from(0);
        costs::events(&self.processor, CostTable::Shared, name, at, &mut problems)
            .and_then(|events| events.expiry_base)
            .unwrap_or(0)
    }
}

fn table(limiter: LimiterShape) -> CostTable {
    match limiter {
        LimiterShape::Shared => CostTable::Shared,
        LimiterShape::Own(Policy::Poll, ..) => CostTable::Poll,
        LimiterShape::Own(policy, timing, _) => CostTable::Own(policy, timing),
    }
}
