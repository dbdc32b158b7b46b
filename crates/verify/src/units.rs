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

/// Interrupts above tasks; the higher group or urgency; the lower order. The greater runs first.
type Rank = (bool, u32, Reverse<u32>);

#[derive(Debug, Clone, Copy)]
struct Standing {
    rank: Rank,
    /// The lowest rank that does not preempt it.
    threshold: Rank,
    /// Do equals preempt it?
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

/// A unit, as the system has it.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) unit: Unit,
    standing: Standing,
    /// Its jobs; none: without bound.
    pub(crate) own: Option<Demand>,
    /// Its longest run.
    longest: u64,
    pub(crate) deadline: Option<u64>,
}

struct OfSource {
    line: Standing,
    /// Its own timer.
    timer: Option<Standing>,
    /// Whose interrupt ends its intervals: its own timer's or a shared one's.
    ends: Option<Standing>,
    /// In any window.
    plain: Views,
    /// In the busy windows of tasks, of interrupts that wait for its timer, and of other
    /// interrupts.
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

/// The units of a system.
pub(crate) struct Units<'a> {
    system: &'a System,
    latencies: &'a [u64],
    sources: Vec<OfSource>,
    timers: Vec<OfTimer>,
    /// Where two or more take turns: the switches at the ends of their slices.
    turns: Vec<(Standing, Demand)>,
    /// In no order that matters.
    pub(crate) list: Vec<Expected>,
    index: HashMap<Unit, usize>,
    /// Most packets of each flow that the device hands over.
    taken: Vec<Option<Curve>>,
    /// Most packets that the bottom half of each flow gets.
    packets: Vec<Option<Curve>>,
}

/// W of each source: the handler with as much work as one interrupt may do.
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

/// May the handler of a source leave packets in its device?
fn may_leave_packets(system: &System, index: usize) -> bool {
    let source = &system.sources[index];
    let has_packets = source.moderation.is_some()
        || source.queue.is_some()
        || system.flows.iter().any(|flow| flow.source == index);
    has_packets && rounds(source, source.queue) != Some(1)
}

impl<'a> Units<'a> {
    /// The units of `system`, if a source's timer is served as late as `latencies` says. There is
    /// one latency per source.
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
        // The window begins with no expiry that is late already (docs/analysis.md).
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
                    // Who is polled, or had to wait, is served inside the timer's interrupt.
                    deadline: source
                        .deadline
                        .filter(|_| expiry_serves(source.limit.policy, source.limit.costs)),
                });
            }
        }
    }

    /// Where sources share a timer's alarm, its longest run is of all that may be due at once.
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

    /// The most packets of `flow` whose top halves end in any window; none: no bound.
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
            // No more are taken than have waited and come. None is less than any number.
            let Some(apart) = source.interarrival.max(flow.interarrival) else {
                return Ok(Some(all));
            };
            let all_that_are = Curve::stairs(waiting.saturating_add(1), 1, apart, 0)?;
            return Ok(Some(all.and(all_that_are)));
        }
        // A moderated device that may hold more than one interrupt takes keeps packets for longer
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

    /// The index in [`Self::list`] of a unit that the system has.
    pub(crate) fn find(&self, unit: Unit) -> Option<usize> {
        self.index.get(&unit).copied()
    }

    /// The longest run of a shared timer's interrupt.
    pub(crate) fn longest_timer(&self, timer: usize) -> Option<u64> {
        self.timers.get(timer).map(|of| of.longest)
    }

    /// The most packets of a flow that can come in a window of so many cycles.
    pub(crate) fn packets(&self, flow: usize, window: u64) -> Option<u64> {
        let curve = self.packets.get(flow)?.as_ref()?;
        Some(curve.events(window))
    }

    /// May more packets come for a flow's receiver from one beginning of its budget to the next, at
    /// most two ticks later, than it is?
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

    /// Does `latencies`' source have a timer interrupt of its own whose latency matters?
    pub(crate) fn has_expiry(&self, source: usize) -> bool {
        self.find(Unit(Kind::Expiry, source)).is_some()
    }

    /// Is the limiter of `source` counted on never to hold a request back?
    pub(crate) fn is_counted_on(&self, source: usize) -> bool {
        let of = self
            .system
            .sources
            .get(source)
            .zip(self.latencies.get(source));
        of.is_some_and(|(source, &latency)| is_limited(source) && never_held(source, latency))
    }
}

/// What the budget of a flow's receiver leaves of its packets. At the begin of a window a whole
/// budget may be left, a tick that is late may come at once, and the next one on time with it.
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

/// Does software limit `source`?
fn is_limited(source: &Source) -> bool {
    source.limit.policy != Policy::Off && source.limit.place == Place::Software
}

/// The interrupts of `source` until so many packets are taken, of which each takes as many as it
/// may; none: nobody knows how many wait.
pub(crate) fn rounds(source: &Source, packets: Option<u64>) -> Option<u64> {
    packets.map(|packets| packets.div_ceil(taken_by_one(source)))
}

/// The packets that one interrupt of `source` takes at least, where so many wait: long ones, of
/// which the last may do more work than is left.
pub(crate) fn taken_by_one(source: &Source) -> u64 {
    let units = source.packet_units.unwrap_or(1);
    source.max_work.unwrap_or(1).div_ceil(units)
}

/// Can the limit never hold a request of `source` back?
pub(crate) fn never_held(source: &Source, latency: u64) -> bool {
    interarrival(source).is_some() && within_limit(source, source.limit.costs, latency)
}
