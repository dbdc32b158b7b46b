// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves sources with their limits, and the timers that they share.
use std::collections::HashSet;

use weir_boards::Events;

use super::allocate::allocate;
use super::band::{self, Effective, Near};
use super::costs::{self, CostTable};
use super::groups::{self, AlarmGroup};
use super::levels::{self, VectorOwner};
use super::limits::{self, LimitDraft};
use super::processor::Processor;
use super::silicon::Block;
use super::timers::{Bank, BankChannel};
use super::units::Digits;
use super::wish::IntervalWish;
use crate::SiliconLimit;
use crate::diagnostics::{Problem, Problems};
use crate::file::leaf::{Name, Whole};
use crate::file::sections::{self as raw, Root};
use crate::system::{
    Cost, EventCosts, Expiry, Interval, Level, Limit, Moderation, Place, Policy, Rates, Source,
    Timer, Timing,
};

/// Resolves all sources and shared timers, in the file's order.
pub(crate) fn resolve(
    root: &Root,
    processor: &Processor<'_>,
    silicon: Option<&Block>,
    problems: &mut Problems<'_>,
) -> Option<(Vec<Source>, Vec<Timer>)> {
    let bank = Bank::new(root, processor, problems);
    let raw = root.source.elements();
    let levels: Vec<Option<Level>> = raw
        .iter()
        .map(|source| levels::of_source(source, processor, problems))
        .collect();
    let plans: Vec<Option<LimitDraft>> = raw
        .iter()
        .map(|source| limits::plan(source, processor, &bank, problems))
        .collect();
    let known: Vec<(&raw::Source, &LimitDraft)> = raw
        .iter()
        .zip(&plans)
        .filter_map(|(source, plan)| Some((source, plan.as_ref()?)))
        .collect();
    limits::refuse_second(&known, processor, problems);
    limits::refuse_second_shared(&known, processor, problems);

    // The shared timers come first, then the sources with a timer of their own, each in their
    // order.
    let of_timers = bank.uses();
    let of_sources = plans.iter().flatten().filter_map(|plan| match plan {
        LimitDraft::Own { wish, .. } => Some(wish),
        _ => None,
    });
    let uses: Vec<&IntervalWish> = of_timers.iter().chain(of_sources).collect();
    unique(
        &bank,
        raw,
        &levels,
        &uses,
        spilled(&known, &bank, processor),
        problems,
    );
    let mut counted = allocate(&bank, &uses, processor.clock, problems).into_iter();
    let periods: Vec<Option<Interval>> = counted.by_ref().take(of_timers.len()).collect();
    let timers = timers(&bank, &periods, processor, problems);
    let groups = groups::of(&known, &bank, processor, problems);

    let with_flows: HashSet<&Name> = root
        .flow
        .elements()
        .iter()
        .filter_map(|flow| flow.source.get())
        .collect();
    let mut sources = Vec::new();
    for ((source, level), plan) in raw.iter().zip(levels).zip(&plans) {
        let rates = band::rates(source, problems);
        let limit = plan.as_ref().and_then(|plan| {
            let context = Context {
                source,
                bank: &bank,
                periods: &periods,
                groups: &groups,
                processor,
                silicon,
            };
            context.limit(plan, &mut counted, problems)
        });
        let queue = queue(source, &with_flows, problems);
        sources.push(one(source, level, rates, limit, queue, processor, problems));
    }
    let sources: Vec<Source> = sources.into_iter().collect::<Option<_>>()?;
    let mut timers = timers?;
    let alarms = groups
        .iter()
        .filter_map(|group| group.alarm(&bank, &sources));
    timers.extend(alarms);
    Some((sources, timers))
}

/// Reports vectors that sources or timers use twice.
fn unique(
    bank: &Bank,
    sources: &[raw::Source],
    levels: &[Option<Level>],
    uses: &[&IntervalWish],
    spilled: Vec<(Level, &IntervalWish)>,
    problems: &mut Problems<'_>,
) {
    let mut taken: Vec<VectorOwner<'_>> = sources
        .iter()
        .zip(levels)
        .filter_map(|(source, level)| {
            Some(VectorOwner {
                level: level.as_ref()?,
                at: source.vector.at,
                by: format!("the source `{}`", source.name.get()?.0),
            })
        })
        .collect();
    let mut seen = Vec::new();
    for one in uses {
        // Two limits on one channel are reported elsewhere.
        if seen.contains(&one.channel) {
            continue;
        }
        seen.push(one.channel);
        taken.extend(bank.channels.get(one.channel).map(|channel| VectorOwner {
            level: &channel.level,
            at: one.channel_at,
            by: one.who.clone(),
        }));
    }
    taken.extend(spilled.iter().map(|(level, of)| VectorOwner {
        level,
        at: of.channel_at,
        by: format!("{}, which takes two vectors,", of.who),
    }));
    levels::unique(&taken, problems);
}

/// The vectors that follow those of timers and are overwritten by the entries of limits, because
/// the port's code is longer than one vector.
fn spilled<'a>(
    sources: &[(&raw::Source, &'a LimitDraft)],
    bank: &Bank,
    processor: &Processor<'_>,
) -> Vec<(Level, &'a IntervalWish)> {
    let Some((rules, (board, _))) = processor.rules().zip(processor.board()) else {
        return Vec::new();
    };
    let behind = |(_, plan): &(&raw::Source, &'a LimitDraft)| match plan {
        LimitDraft::Own {
            table: CostTable::Own(policy, timing),
            wish,
            ..
        } if (rules.spills)(*policy, *timing) => {
            let own = &bank.channels.get(wish.channel)?.level;
            let next = board.vector_behind(&own.vector)?;
            Some((levels::of_vector(board, next, own.group)?, wish))
        }
        _ => None,
    };
    sources.iter().filter_map(behind).collect()
}

fn timers(
    bank: &Bank,
    periods: &[Option<Interval>],
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<Vec<Timer>> {
    let mut timers = Vec::new();
    for (timer, period) in bank.shared.iter().zip(periods) {
        let channel = bank.channels.get(timer.channel)?;
        let events = costs::events(
            processor,
            CostTable::Shared,
            Some(&channel.name),
            timer.at,
            problems,
        );
        timers.push(period.zip(events).map(|(period, events)| Timer {
            name: timer.name.clone(),
            channel: channel.name.clone(),
            level: channel.level.clone(),
            period,
            base: events.expiry_base.unwrap_or(0),
        }));
    }
    timers.into_iter().collect()
}

/// The data on which the limit of a source depends.
struct Context<'a> {
    source: &'a raw::Source,
    bank: &'a Bank,
    /// The periods of the shared timers; `None` for a period that was reported as wrong.
    periods: &'a [Option<Interval>],
    groups: &'a [AlarmGroup],
    processor: &'a Processor<'a>,
    /// The limiter in silicon; `None` if it is wrong, which was reported.
    silicon: Option<&'a Block>,
}

impl Context<'_> {
    /// Resolves a limit. `counted` holds the intervals of the limits with timers of their own, in
    /// the order of the sources.
    fn limit(
        &self,
        plan: &LimitDraft,
        counted: &mut impl Iterator<Item = Option<Interval>>,
        problems: &mut Problems<'_>,
    ) -> Option<Limit> {
        let off = Limit::off(self.processor.cpu.unlimited);
        match plan {
            LimitDraft::Off => Some(off),
            &LimitDraft::Hardware {
                policy,
                burst,
                cycles,
                at,
                is_level,
            } => {
                let block = self.silicon?;
                let silicon = block.of?;
                let rate = block.rate(cycles, at, self.processor.clock, problems)?;
                block.holds(burst, &self.source.limit, problems)?;
                let limit = Limit {
                    policy,
                    timing: if policy == Policy::Bursty {
                        Timing::OneShot
                    } else {
                        Timing::Eager
                    },
                    place: Place::Hardware,
                    interval: silicon.interval(rate),
                    burst,
                    silicon: Some(SiliconLimit {
                        asked: cycles,
                        rate,
                        delay: silicon.delay(),
                        is_level,
                    }),
                    ..off
                };
                let effective = Effective {
                    events: u64::from(limit.per_interval()),
                    cycles: limit.interval.cycles(),
                    near: block.near(rate),
                    at,
                };
                band::check(
                    &self.source.rate,
                    &effective,
                    self.processor.clock,
                    problems,
                );
                Some(limit)
            }
            LimitDraft::Own { table, burst, wish } => {
                let counted = counted.next().flatten();
                let channel = self.bank.channels.get(wish.channel)?;
                let events = self.events(*table, channel, problems);
                let counted = counted?;
                self.check(wish.events, counted, wish.at, problems);
                let (policy, timing) = match *table {
                    CostTable::Own(policy, timing) => (policy, timing),
                    CostTable::Poll | CostTable::Off | CostTable::Shared => {
                        (Policy::Poll, Timing::Eager)
                    }
                };
                Some(Limit {
                    policy,
                    timing,
                    interval: counted,
                    bits: self.bank.counters.get(channel.counter)?.bits,
                    burst: *burst,
                    expiry: Some(Expiry::Own {
                        channel: channel.name.clone(),
                        level: channel.level.clone(),
                    }),
                    costs: groups::costs(self.groups, wish.channel, costs::costs(*table, &events?)),
                    ..off
                })
            }
            &LimitDraft::Shared {
                timer,
                burst,
                at_least,
                at,
            } => {
                let shared = self.bank.shared.get(timer)?;
                let channel = self.bank.channels.get(shared.channel)?;
                let events = self.events(CostTable::Shared, channel, problems);
                let period = (*self.periods.get(timer)?)?;
                self.asked(u64::from(burst), period, at_least, at, problems);
                self.check(u64::from(burst), period, at, problems);
                Some(Limit {
                    policy: Policy::Bursty,
                    interval: period,
                    bits: self.bank.counters.get(channel.counter)?.bits,
                    burst,
                    expiry: Some(Expiry::Shared(timer)),
                    costs: costs::costs(CostTable::Shared, &events?),
                    ..off
                })
            }
        }
    }

    fn events(
        &self,
        table: CostTable,
        channel: &BankChannel,
        problems: &mut Problems<'_>,
    ) -> Option<Events> {
        let at = self.source.limit.at;
        costs::events(self.processor, table, Some(&channel.name), at, problems)
    }

    /// Reports a shared timer with which a burst per period exceeds the rate that the limit states.
    fn asked(
        &self,
        burst: u64,
        period: Interval,
        at_least: Option<u64>,
        at: miette::SourceSpan,
        problems: &mut Problems<'_>,
    ) {
        let clock = self.processor.clock;
        if at_least.is_some_and(|cycles| period.cycles() < cycles) {
            let rate = |burst| clock.rate_text(burst, period.cycles(), Digits::Nearest);
            let each = rate(1);
            problems.add(
                Problem::new(
                    format!(
                        "a burst of {burst} per period of this timer is {}, more than the rate asked for",
                        rate(burst)
                    ),
                    at,
                    "asked for",
                )
                .and_at(self.source.limit.get().map_or(at, |limit| limit.timer.at), format!("comes at {each}"))
                .help(format!("write a smaller burst (each request in it adds {each}), or leave `rate` out")),
            );
        }
    }

    fn check(
        &self,
        events: u64,
        interval: Interval,
        at: miette::SourceSpan,
        problems: &mut Problems<'_>,
    ) {
        let limit = Effective {
            events,
            cycles: interval.cycles(),
            near: Near::of(interval),
            at,
        };
        band::check(&self.source.rate, &limit, self.processor.clock, problems);
    }
}

fn one(
    source: &raw::Source,
    level: Option<Level>,
    rates: Option<Rates>,
    limit: Option<Limit>,
    queue: Option<Option<u64>>,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<Source> {
    let clock = processor.clock;
    let handler = clock.cost(&source.handler, problems);
    let work = clock.cost(&source.work, problems);
    let deadline = clock.optional(&source.deadline, problems);
    let moderation = moderation(source, processor, problems);
    let registers = handler.and_then(|handler| registers(source, handler, processor, problems));
    let limit = limit.zip(registers).map(|(limit, registers)| Limit {
        costs: match limit.expiry {
            Some(Expiry::Own { .. }) => with_registers(limit.costs, registers),
            Some(Expiry::Shared(_)) | None => limit.costs,
        },
        ..limit
    });
    Some(Source {
        name: source.name.get()?.0.clone(),
        level: level?,
        handler: handler?,
        work: work?,
        max_work: source.max_work.optional()?.map(|count| count.0),
        packet_units: 1,
        rates: rates?,
        limit: limit?,
        deadline: deadline?,
        moderation: moderation?,
        queue: queue?,
    })
}

/// The length of the device's ring, in which packets wait. Only sources of packets have a ring, and
/// it must hold at least the count for which moderation waits.
fn queue(
    source: &raw::Source,
    with_flows: &HashSet<&Name>,
    problems: &mut Problems<'_>,
) -> Option<Option<u64>> {
    let Some(Whole(queue)) = source.queue.optional()? else {
        return Some(None);
    };
    let name = source.name.get()?;
    if source.moderation.is_absent() && !with_flows.contains(name) {
        problems.report("only packets wait in a device, and this source brings none: it has neither flows nor moderation", source.queue.at, "a queue of packets", format!("add a [[flow]] with source = \"{}\", or leave `queue` out", name.0));
    }
    let count = source.moderation.get().map(|moderation| &moderation.count);
    if let Some(count) = count {
        if let Some(&Whole(packets)) = count.get().filter(|&&Whole(packets)| packets > queue) {
            problems.add(
                Problem::new(
                    format!("a device that holds {queue} packets never counts {packets}"),
                    source.queue.at,
                    "the queue",
                )
                .and_at(count.at, "the count")
                .help(format!(
                    "write a count of at most {queue}, or a longer queue"
                )),
            );
        }
    }
    Some(Some(queue))
}

/// The part of the handler's cycles that saves registers.
pub(crate) fn registers(
    source: &raw::Source,
    handler: Cost,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<u64> {
    let Some(stated) = source.registers.optional()? else {
        let most = processor.rules().map_or(0, |rules| rules.registers);
        return Some(handler.cycles.min(most));
    };
    let at = source.registers.at;
    let cycles = processor.clock.amount(stated, at, problems)?;
    if cycles > handler.cycles {
        return problems.refuse(
            format!(
                "saving registers takes {cycles} cycles, but they are a part of the handler's {}",
                handler.cycles
            ),
            at,
            "more than the handler",
            format!(
                "write at most \"{} cycles\", or leave it out",
                handler.cycles
            ),
        );
    }
    Some(cycles)
}

/// The costs of a limiter with a timer of its own if its handler saves registers. Its interrupts
/// that do not run the handler then also save the registers. (The interrupts of a shared timer do
/// not, because they contain no handler.)
pub(crate) fn with_registers(costs: EventCosts, registers: u64) -> EventCosts {
    let also = |cost: u64| match cost {
        0 => 0,
        cost => cost.saturating_add(registers),
    };
    EventCosts {
        request_refused: also(costs.request_refused),
        expiry_empty: also(costs.expiry_empty),
        ..costs
    }
}

fn moderation(
    source: &raw::Source,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<Option<Moderation>> {
    if source.moderation.is_absent() {
        return Some(None);
    }
    let clock = processor.clock;
    let moderation = source.moderation.get()?;
    let absolute = clock.optional(&moderation.absolute, problems)??;
    let packet = clock.optional(&moderation.packet, problems)?;
    Some(Some(Moderation {
        absolute,
        packet,
        count: moderation.count.optional()?.map(|count| count.0),
        tick: None,
    }))
}
