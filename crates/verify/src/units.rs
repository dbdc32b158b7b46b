// SPDX-License-Identifier: MIT OR Apache-2.0
//! The units of a system and their order (docs/analysis.md, "Units and ranks").
mod urgent;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::curve::{Curve, Demand, TooLarge};
use crate::format::{
    Expiry, Flow, Kind, Level, Nesting, Place, Policy, Source, System, Tasks, Unit,
};
use crate::source::{
    Views, Window, beside, expiry_serves, interarrival, longer, longest_expiry, views, within_limit,
};

pub(crate) use urgent::Urgent;

/// Whether the unit is an interrupt; its group or urgency; its order. The greater rank runs first.
type Rank = (bool, u32, Reverse<u32>);

#[derive(Debug, Clone, Copy)]
struct Standing {
    rank: Rank,
    /// The lowest rank that does not preempt the unit.
    threshold: Rank,
    /// Whether units of the same rank preempt this one.
    yields_to_equals: bool,
}

impl Standing {
    fn of_interrupt(nesting: Nesting, level: Level) -> Self {
        let group = match nesting {
            Nesting::Flat => 0,
            Nesting::Grouped => level.group,
        };
        Self {
            rank: (true, group, Reverse(level.order)),
            threshold: (true, group, Reverse(0)),
            yields_to_equals: false,
        }
    }

    fn of_task(tasks: Tasks, urgency: u8) -> Self {
        let rank = (false, u32::from(urgency), Reverse(0));
        let highest = (false, u32::MAX, Reverse(0));
        Self {
            rank,
            threshold: match tasks {
                Tasks::Preemptive => rank,
                Tasks::Cooperative => highest,
            },
            yields_to_equals: tasks == Tasks::Preemptive,
        }
    }

    fn is_delayed_by(&self, other: &Self) -> bool {
        other.rank >= self.rank
    }

    fn is_preempted_by(&self, other: &Self) -> bool {
        other.rank > self.threshold || (self.yields_to_equals && other.rank == self.rank)
    }

    fn is_blocked_by(&self, other: &Self) -> bool {
        other.rank < self.rank && other.threshold >= self.rank
    }
}

/// A unit with its demand in the system.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) unit: Unit,
    standing: Standing,
    /// The demand of the unit's jobs. `None` if there is no bound.
    pub(crate) own: Option<Demand>,
    /// The longest run of a job in cycles.
    longest: u64,
    pub(crate) deadline: Option<u64>,
}

struct OfSource {
    line: Standing,
    /// The standing of the source's own timer. `None` if it has none.
    timer: Option<Standing>,
    /// The standing of the timer, own or shared, whose interrupt ends the limiter's intervals.
    ends: Option<Standing>,
    /// The demands in arbitrary windows.
    plain: Views,
    /// The demands in the busy windows of tasks, of interrupts that wait for this source's timer,
    /// and of other interrupts.
    by_tasks: Views,
    below_timer: Views,
    above_timer: Views,
}

struct OfTimer {
    standing: Standing,
    plain: Demand,
    padded: Demand,
    longest: u64,
}

/// All units of a system.
pub(crate) struct Units<'a> {
    system: &'a System,
    latencies: &'a [u64],
    sources: Vec<OfSource>,
    timers: Vec<OfTimer>,
    /// If tasks of the same rank take turns: their standing, and the demand of the switches at the
    /// ends of their slices.
    turns: Vec<(Standing, Demand)>,
    /// The units, in any order.
    pub(crate) list: Vec<Expected>,
    index: HashMap<Unit, usize>,
    /// For each flow, the curve of packets that the device hands over.
    taken: Vec<Option<Curve>>,
    /// For each flow, the curve of packets that its bottom half receives.
    packets: Vec<Option<Curve>>,
}

/// Returns W of each source: the cycles of its handler with the most work that one interrupt may
/// do.
fn bodies(system: &System) -> Vec<u64> {
    let mut dearest = vec![0; system.sources.len()];
    for flow in &system.flows {
        if let Some(packet) = dearest.get_mut(flow.source) {
            *packet = flow.top_half.saturating_add(flow.demux).max(*packet);
        }
    }
    let body = |(source, &packet): (&Source, &u64)| {
        source
            .work
            .saturating_add(packet)
            .saturating_mul(source.max_work.unwrap_or(1))
            .saturating_add(source.handler)
    };
    system.sources.iter().zip(&dearest).map(body).collect()
}

/// Returns whether the handler of a source may leave packets in its device.
fn may_leave_packets(system: &System, index: usize) -> bool {
    let source = &system.sources[index];
    let has_packets = source.moderation.is_some()
        || source.queue.is_some()
        || system.flows.iter().any(|flow| flow.source == index);
    has_packets && rounds(source, source.queue) != Some(1)
}

impl<'a> Units<'a> {
    /// Makes the units of `system`. `latencies` has the latency of each source's timer interrupt.
    pub(crate) fn new(system: &'a System, latencies: &'a [u64]) -> Result<Self, TooLarge> {
        let mut units = Self {
            system,
            latencies,
            sources: Vec::new(),
            timers: Vec::new(),
            turns: Vec::new(),
            list: Vec::new(),
            index: HashMap::new(),
            taken: Vec::new(),
            packets: Vec::new(),
        };
        let bodies = bodies(system);
        for (index, (&latency, &body)) in latencies.iter().zip(&bodies).enumerate() {
            let of = units.of_source(index, body, latency)?;
            units.sources.push(of);
        }
        units.list_interrupts(&bodies);
        units.share_alarms();
        units.list_timers(&bodies)?;
        units.taken = system
            .flows
            .iter()
            .map(|flow| units.taken_of(flow, latencies))
            .collect::<Result<_, _>>()?;
        units.packets = system
            .flows
            .iter()
            .zip(&units.taken)
            .map(|(flow, taken)| {
                taken
                    .as_ref()
                    .map(|taken| budgeted(flow, taken))
                    .transpose()
            })
            .collect::<Result<_, _>>()?;
        units.list_tasks()?;
        units.turns = units.turns()?;
        units.index = (units.list.iter().map(|of| of.unit)).zip(0..).collect();
        Ok(units)
    }

    fn of_source(&self, index: usize, body: u64, latency: u64) -> Result<OfSource, TooLarge> {
        let source = &self.system.sources[index];
        let leaves = may_leave_packets(self.system, index);
        let cpu = &self.system.cpu;
        let costs = source.limit.costs;
        let padded = longer(&source.limit, cpu.longest_instruction);
        let any = Window {
            latency,
            before: latency,
            expires: true,
        };
        // At the start of the window no expiry is already late (docs/analysis.md).
        let below = Window { before: 0, ..any };
        let above = Window {
            expires: false,
            ..any
        };
        let ends = match source.limit.expiry {
            Some(Expiry::Own(level)) => Some(level),
            Some(Expiry::Shared(timer)) => self.system.timers.get(timer).map(|timer| timer.level),
            None => None,
        };
        Ok(OfSource {
            line: Standing::of_interrupt(cpu.nesting, source.level),
            timer: match source.limit.expiry {
                Some(Expiry::Own(level)) => Some(Standing::of_interrupt(cpu.nesting, level)),
                _ => None,
            },
            ends: ends.map(|level| Standing::of_interrupt(cpu.nesting, level)),
            plain: views(source, costs, body, leaves, any)?,
            by_tasks: views(source, costs, body, leaves, below)?,
            below_timer: views(source, padded, body, leaves, below)?,
            above_timer: views(source, padded, body, leaves, above)?,
        })
    }

    fn list_interrupts(&mut self, bodies: &[u64]) {
        for (index, ((of, source), &body)) in self
            .sources
            .iter()
            .zip(&self.system.sources)
            .zip(bodies)
            .enumerate()
        {
            let served = source.limit.costs.request_served.saturating_add(body);
            let longest = |line: &[Demand]| line.iter().map(|demand| demand.cost).max();
            if !of.plain.line.is_empty() || of.plain.served.is_none() {
                self.list.push(Expected {
                    unit: Unit(Kind::Request, index),
                    standing: of.line,
                    own: of.plain.line.first().cloned(),
                    longest: longest(&of.plain.line).unwrap_or(served),
                    deadline: source.deadline,
                });
            }
            if let (Some(expiry), Some(standing)) = (&of.plain.expiry, of.timer) {
                self.list.push(Expected {
                    unit: Unit(Kind::Expiry, index),
                    standing,
                    own: Some(expiry.clone()),
                    longest: expiry.cost,
                    // A polled source, and a request that had to wait, are served inside the
                    // timer's interrupt.
                    deadline: source
                        .deadline
                        .filter(|_| expiry_serves(source.limit.policy, source.limit.costs)),
                });
            }
        }
    }

    /// If sources share a timer's alarm, its longest run serves all sources that may be due at
    /// once.
    fn share_alarms(&mut self) {
        let mut runs: BTreeMap<Rank, u64> = BTreeMap::new();
        let expiries = |of: &&mut Expected| matches!(of.unit, Unit(Kind::Expiry, _));
        for of in self.list.iter_mut().filter(expiries) {
            let run = runs.entry(of.standing.rank).or_default();
            *run = run.saturating_add(of.longest);
        }
        for of in self.list.iter_mut().filter(expiries) {
            of.longest = runs.get(&of.standing.rank).copied().unwrap_or(of.longest);
        }
    }

    fn list_timers(&mut self, bodies: &[u64]) -> Result<(), TooLarge> {
        let system = self.system;
        for (index, timer) in system.timers.iter().enumerate() {
            let cleared = || {
                system
                    .sources
                    .iter()
                    .zip(bodies)
                    .filter(|(source, _)| matches!(source.limit.expiry, Some(Expiry::Shared(timer)) if timer == index))
            };
            let all = |of: fn(&Source, u64) -> u64| {
                cleared().fold(timer.base, |sum, (source, &body)| {
                    sum.saturating_add(of(source, body))
                })
            };
            let cost = all(|source, _| beside(source.limit.costs));
            let longest =
                all(|source, body| longest_expiry(source.limit.policy, source.limit.costs, body));
            let curve = Curve::stairs(1, 1, timer.period, 0)?;
            let padded = longest.saturating_add(system.cpu.longest_instruction);
            let own = Demand::new(longest, curve.clone());
            let of = OfTimer {
                standing: Standing::of_interrupt(system.cpu.nesting, timer.level),
                plain: Demand::new(cost, curve.clone()),
                padded: Demand::new(padded, curve),
                longest,
            };
            self.list.push(Expected {
                unit: Unit(Kind::Timer, index),
                standing: of.standing,
                own: Some(own),
                longest,
                deadline: None,
            });
            self.timers.push(of);
        }
        Ok(())
    }

    fn list_tasks(&mut self) -> Result<(), TooLarge> {
        let system = self.system;
        let cpu = &system.cpu;
        for (index, receiver) in system.receivers.iter().enumerate() {
            let Some(period) = receiver.period.filter(|_| receiver.wcet > 0) else {
                continue;
            };
            let cost = receiver.wcet.saturating_add(cpu.context_switch);
            let curve = Curve::stairs(1, 1, period, u128::from(receiver.jitter))?;
            self.list.push(Expected {
                unit: Unit(Kind::Task, index),
                standing: Standing::of_task(cpu.tasks, receiver.urgency),
                own: Some(Demand::new(cost, curve)),
                longest: cost,
                deadline: receiver.deadline,
            });
        }
        for (index, (flow, packets)) in system.flows.iter().zip(&self.packets).enumerate() {
            let Some(receiver) = system.receivers.get(flow.receiver) else {
                continue;
            };
            let is_server = receiver.period.is_none();
            let served = if is_server { receiver.wcet } else { 0 };
            for (kind, work, deadline) in [
                (Kind::BottomHalf, flow.bottom_half, None),
                (Kind::Delivered, served, receiver.deadline),
            ] {
                if work == 0 {
                    continue;
                }
                let cost = work.saturating_add(cpu.context_switch);
                self.list.push(Expected {
                    unit: Unit(kind, index),
                    standing: Standing::of_task(cpu.tasks, receiver.urgency),
                    own: packets.clone().map(|curve| Demand::new(cost, curve)),
                    longest: cost,
                    deadline,
                });
            }
        }
        Ok(())
    }

    fn turns(&self) -> Result<Vec<(Standing, Demand)>, TooLarge> {
        let cpu = &self.system.cpu;
        let Some(slice) = cpu.time_slice.filter(|_| cpu.context_switch > 0) else {
            return Ok(Vec::new());
        };
        let mut at: BTreeMap<u32, Vec<Standing>> = BTreeMap::new();
        for of in &self.list {
            if !of.unit.is_interrupt() {
                let (_, urgency, _) = of.standing.rank;
                at.entry(urgency).or_default().push(of.standing);
            }
        }
        let switches = Curve::stairs(1, 1, slice, 0)?;
        let shared = at.into_values().filter(|standings| standings.len() >= 2);
        Ok(shared
            .filter_map(|standings| standings.first().copied())
            .map(|standing| (standing, Demand::new(cpu.context_switch, switches.clone())))
            .collect())
    }

    /// Returns the curve of packets of `flow` whose top halves end in a window. `None` if there is
    /// no bound.
    fn taken_of(&self, flow: &Flow, latencies: &[u64]) -> Result<Option<Curve>, TooLarge> {
        let source = self.system.sources.get(flow.source);
        let latency = latencies.get(flow.source).copied();
        let served = self.sources.get(flow.source);
        let (Some(source), Some(latency), Some(Some(served))) =
            (source, latency, served.map(|of| of.plain.served.clone()))
        else {
            return Ok(None);
        };
        let all = served.times(source.max_work.unwrap_or(1));
        if let (Some(_), Some(waiting)) = (source.moderation.and_then(|of| of.tick), source.queue) {
            // No more packets are taken than have waited and arrived. `None` compares as less than
            // any number.
            let Some(apart) = source.interarrival.max(flow.interarrival) else {
                return Ok(Some(all));
            };
            let all_that_are = Curve::stairs(waiting.saturating_add(1), 1, apart, 0)?;
            return Ok(Some(all.and(all_that_are)));
        }
        // If a moderated device may hold more packets than one interrupt takes, packets stay longer
        // than the delay.
        let in_time = source.moderation.is_none() || rounds(source, source.queue) == Some(1);
        let counts = in_time && never_held(source, latency);
        let Some(interarrival) = flow.interarrival.filter(|_| counts) else {
            return Ok(Some(all));
        };
        let wait = source.moderation.map_or(0, |of| u128::from(of.absolute));
        let own = Curve::stairs(1, 1, interarrival, wait + u128::from(source.limit.delay))?;
        Ok(Some(all.and(own)))
    }

    /// Returns the index in [`Self::list`] of a unit. `None` if the system has no such unit.
    pub(crate) fn find(&self, unit: Unit) -> Option<usize> {
        self.index.get(&unit).copied()
    }

    /// Returns the longest run of a shared timer's interrupt.
    pub(crate) fn longest_timer(&self, timer: usize) -> Option<u64> {
        self.timers.get(timer).map(|of| of.longest)
    }

    /// Returns the most packets of a flow that can arrive in a window of `window` cycles.
    pub(crate) fn packets(&self, flow: usize, window: u64) -> Option<u64> {
        let curve = self.packets.get(flow)?.as_ref()?;
        Some(curve.events(window))
    }

    /// Returns whether the packets for a flow's receiver may exceed the receiver's budget in one
    /// budget period, which lasts at most two ticks.
    pub(crate) fn exceeds_budget(&self, flow: &Flow) -> bool {
        let Some(budget) = flow.budget else {
            return false;
        };
        let window = budget.tick.saturating_mul(2);
        let flows = self.system.flows.iter().zip(&self.taken);
        let all = flows
            .filter(|(other, _)| other.receiver == flow.receiver && other.budget.is_some())
            .try_fold(0, |sum: u64, (_, taken)| {
                Some(sum.saturating_add(taken.as_ref()?.events(window)))
            });
        all.is_none_or(|all| all > budget.frames)
    }

    /// Returns whether the source has a timer interrupt of its own whose latency matters.
    pub(crate) fn has_expiry(&self, source: usize) -> bool {
        self.find(Unit(Kind::Expiry, source)).is_some()
    }

    /// Returns whether the analysis relies on the limiter of `source` never holding a request back.
    pub(crate) fn is_counted_on(&self, source: usize) -> bool {
        let of = self
            .system
            .sources
            .get(source)
            .zip(self.latencies.get(source));
        of.is_some_and(|(source, &latency)| is_limited(source) && never_held(source, latency))
    }
}

/// Returns the curve of a flow's packets that pass the receiver's budget. At the start of a window
/// a full budget may be left; a late tick may replenish it at once, and the next tick may be on
/// time.
fn budgeted(flow: &Flow, taken: &Curve) -> Result<Curve, TooLarge> {
    let taken = taken.clone();
    let Some(budget) = flow.budget else {
        return Ok(taken);
    };
    let twice = budget.frames.saturating_mul(2);
    let late = u128::from(budget.tick);
    let stairs = Curve::stairs(twice, budget.frames, budget.tick, late)?;
    Ok(taken.and(stairs))
}

/// Returns whether `source` is limited in software.
fn is_limited(source: &Source) -> bool {
    source.limit.policy != Policy::Off && source.limit.place == Place::Software
}

/// Returns the most interrupts of `source` until `packets` packets have been taken, if each
/// interrupt takes as many as it may. `None` if the number of waiting packets is unknown.
pub(crate) fn rounds(source: &Source, packets: Option<u64>) -> Option<u64> {
    packets.map(|packets| packets.div_ceil(taken_by_one(source)))
}

/// Returns the least number of packets that one interrupt of `source` takes while enough wait.
/// Packets are assumed long, and the last one may need more work than is left.
pub(crate) fn taken_by_one(source: &Source) -> u64 {
    let units = source.packet_units.unwrap_or(1);
    source.max_work.unwrap_or(1).div_ceil(units)
}

/// Returns whether the limit can never hold a request of `source` back.
pub(crate) fn never_held(source: &Source, latency: u64) -> bool {
    interarrival(source).is_some() && within_limit(source, source.limit.costs, latency)
}
