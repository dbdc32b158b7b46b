// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes a system as units that compete for the processor: interrupts, tasks and bottom halves,
//! each with its rank.
mod interference;

use weir_model::{Cpu, EventCosts, Expiry, Flow, Source, System, TaskModel, TickBudget};

use crate::curve::{Curve, Staircase};
pub use crate::limiter::body;
use crate::limiter::{self, Body, Tasks, Window};
use crate::rank::{PreemptionRank, Rank};
use crate::rta::Demand;
use crate::shared_timer::TimerDemands;

pub use crate::shared_timer::longest_timer;
pub use interference::Interference;

/// The kind of a unit, with the index of its source, timer, receiver or flow in the system's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The interrupt of a source's line.
    Request(usize),
    /// The interrupt of a source's own timer.
    Expiry(usize),
    /// The interrupt of a shared timer.
    Timer(usize),
    /// A receiver's own work, if a timer or a period releases it.
    Task(usize),
    /// The bottom half of a flow.
    BottomHalf(usize),
    /// The work of a flow's receiver for each packet, if packets release the receiver.
    Delivered(usize),
}

impl Part {
    /// Whether the part runs as an interrupt, as opposed to work at a task's urgency.
    #[must_use]
    pub const fn is_interrupt(self) -> bool {
        matches!(self, Self::Request(_) | Self::Expiry(_) | Self::Timer(_))
    }

    /// The index of the receiver whose own work this part is; `None` for any other work.
    pub(crate) fn worker(self, system: &System) -> Option<usize> {
        match self {
            Self::Task(receiver) => Some(receiver),
            Self::Delivered(flow) => system.flows.get(flow).map(|flow| flow.receiver),
            Self::Request(_) | Self::Expiry(_) | Self::Timer(_) | Self::BottomHalf(_) => None,
        }
    }
}

/// A unit that competes for the processor.
#[derive(Debug, Clone)]
pub struct Unit {
    /// The kind of the unit.
    pub part: Part,
    /// The unit's rank and preemption threshold.
    pub place: PreemptionRank,
    /// The demand of the unit's jobs; `None` if nothing bounds how often they come.
    pub own: Option<Demand>,
    /// The most cycles for which one run of the unit can keep others waiting, if nothing preempts
    /// it. Where sources share the alarm of a timer, this includes all expiries that are due in the
    /// run.
    pub longest: u64,
    /// The cycles from the unit's release to its deadline; `None` if it has no deadline.
    pub deadline: Option<u64>,
}

/// How late interrupts begin, in cycles: L of core/CONTRACTS.md without the cost of the interrupt
/// itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latencies {
    /// For each source, the latency of the timer's interrupt that clears it, whether the timer is
    /// its own or shared. If the analysis relies on the source staying below its limit, the latency
    /// of the source's own line is added.
    pub source: Vec<u64>,
}

/// The demands of one source as other units see them in their busy windows.
#[derive(Debug)]
pub(crate) struct TaskViews {
    /// The demands that tasks see. Every timer delays tasks.
    pub by_tasks: Tasks,
    /// The demands that an interrupt sees if the source's timer delays it. As for every interrupt,
    /// they include the one instruction that runs between two interrupts.
    pub below_timer: Tasks,
    /// The demands that all other interrupts see.
    pub above_timer: Tasks,
}

impl TaskViews {
    fn new(source: &Source, body: Body, cpu: &Cpu, latency: u64) -> Self {
        let padded = padded(source, cpu);
        let of = |source: &Source, window| limiter::tasks(source, body, cpu.clock_hz, window);
        Self {
            by_tasks: of(source, Window::below_timer(latency)),
            below_timer: of(&padded, Window::below_timer(latency)),
            above_timer: of(&padded, Window::above_timer(latency)),
        }
    }

    /// All three views.
    pub fn views(&self) -> [&Tasks; 3] {
        [&self.by_tasks, &self.below_timer, &self.above_timer]
    }
}

/// The units of a system, with their demands.
#[derive(Debug)]
pub struct Units<'a> {
    system: &'a System,
    /// The most cycles by which the timer of each source is served late.
    latencies: Vec<u64>,
    /// The units, in the order of the system's lists: sources (request, then expiry), timers,
    /// receivers, flows.
    pub units: Vec<Unit>,
    /// The demands of each source alone; their curves hold in any window.
    plain: Vec<Tasks>,
    /// The demands of each source as other units see them.
    seen: Vec<TaskViews>,
    /// The demands of each shared timer's interrupt.
    timers: Vec<TimerDemands>,
    /// The context switches at the ends of time slices, for each rank at which tasks share the
    /// processor in turns.
    switches: Vec<(PreemptionRank, Demand)>,
}

/// The least number of cycles between two packets of `flow`; `None` if the flow states no rate, so
/// that only its source bounds it.
#[must_use]
pub fn flow_interarrival(flow: &Flow, clock_hz: u64) -> Option<u64> {
    flow.rate.map(|rate| rate.least_cycles(clock_hz))
}

fn longest_wait(source: &Source, clock_hz: u64, latency: u64) -> Option<u64> {
    let moderation = source
        .moderation
        .map_or(0, |moderation| moderation.absolute);
    limiter::never_holds(source, clock_hz, latency)
        .then_some(moderation.saturating_add(source.limit.delay()))
}

fn padded(source: &Source, cpu: &Cpu) -> Source {
    let costs = source.limit.costs;
    let pad_if = |happens: bool, cost: u64| {
        if happens {
            cost.saturating_add(cpu.longest_instruction)
        } else {
            0
        }
    };
    let pad = |cost: u64| pad_if(cost > 0, cost);
    let mut padded = source.clone();
    padded.limit.costs = EventCosts {
        // A run that serves a request takes place even if its stated cost is zero.
        request_served: pad_if(true, costs.request_served),
        request_refused: pad(costs.request_refused),
        expiry_served: pad_if(
            limiter::serves_in_expiry(&source.limit),
            costs.expiry_served,
        ),
        expiry_empty: pad(costs.expiry_empty),
    };
    padded
}

fn level_of_timer(system: &System, source: &Source) -> Option<PreemptionRank> {
    match source.limit.expiry.as_ref()? {
        Expiry::Own { level, .. } => Some(PreemptionRank::of_interrupt(&system.cpu, level)),
        Expiry::Shared(timer) => system
            .timers
            .get(*timer)
            .map(|timer| PreemptionRank::of_interrupt(&system.cpu, &timer.level)),
    }
}

/// The rank of a flow's bottom half: it runs at the urgency of its receiver (zhang2006 §3, lee2010
/// §4).
fn place_of_receiver(system: &System, receiver: usize) -> PreemptionRank {
    let urgency = system
        .receivers
        .get(receiver)
        .map_or(0, |receiver| receiver.urgency);
    PreemptionRank::of_task(&system.cpu, urgency)
}

/// The work that runs for each packet of a flow at its receiver's urgency.
struct PerPacket {
    part: Part,
    /// The cost of the work in cycles, with the switch to it and back.
    cost: u64,
    deadline: Option<u64>,
}

/// The bottom half of a flow and, if packets release the receiver, the receiver's own work.
fn per_packet(system: &System, index: usize, flow: &Flow) -> impl Iterator<Item = PerPacket> {
    let switch = system.cpu.context_switch.cycles;
    let of = move |part, cycles: u64, deadline| PerPacket {
        part,
        cost: cycles.saturating_add(switch),
        deadline,
    };
    let bottom_half = Some(flow.bottom_half.cycles).filter(|&cycles| cycles > 0);
    let receiver = system.receivers.get(flow.receiver);
    let receiver = receiver.filter(|receiver| receiver.works_per_packet());
    bottom_half
        .map(|cycles| of(Part::BottomHalf(index), cycles, None))
        .into_iter()
        .chain(receiver.map(|receiver| {
            of(
                Part::Delivered(index),
                receiver.wcet.cycles,
                receiver.deadline,
            )
        }))
}

/// The context switches at the ends of time slices, for each urgency that more than one unit has.
/// Turns at one urgency do not overlap, so these switches are a slice apart. A unit that more
/// urgent work preempts keeps its turn.
fn switches(cpu: &Cpu, units: &[Unit]) -> Vec<(PreemptionRank, Demand)> {
    let cost = cpu.context_switch.cycles;
    let takes_turns = cpu.tasks == TaskModel::Preemptive && cost > 0;
    let Some(slice) = cpu.time_slice.filter(|_| takes_turns) else {
        return Vec::new();
    };
    let mut places: Vec<PreemptionRank> = units
        .iter()
        .filter(|unit| !unit.part.is_interrupt())
        .map(|unit| unit.place)
        .collect();
    places.sort_unstable_by_key(|place| place.rank);
    let switch = Demand {
        cost,
        curve: Curve::new(Staircase::sporadic(slice, 0)),
    };
    places
        .chunk_by(|one, next| one.rank == next.rank)
        .filter_map(|equals| match equals {
            &[place, _, ..] => Some((place, switch.clone())),
            _ => None,
        })
        .collect()
}

/// Sets the longest run of the expiries at one rank to that of the single interrupt in which they
/// all can be due, because their sources share an alarm (LIMIT-SHARED-1).
fn share_alarms(units: &mut [Unit]) {
    let is_expiry = |unit: &&Unit| matches!(unit.part, Part::Expiry(_));
    let alone: Vec<(Rank, u64)> = units
        .iter()
        .filter(is_expiry)
        .map(|unit| (unit.place.rank, unit.longest))
        .collect();
    for unit in units {
        if matches!(unit.part, Part::Expiry(_)) {
            let due = alone.iter().filter(|(rank, _)| *rank == unit.place.rank);
            unit.longest = due.fold(0, |sum, (_, longest)| sum.saturating_add(*longest));
        }
    }
}

impl<'a> Units<'a> {
    /// Lists the units of `system` for timers that are served as late as `latencies` says.
    #[must_use]
    pub fn new(system: &'a System, latencies: &Latencies) -> Self {
        let clock = system.cpu.clock_hz;
        let (mut plain, mut seen) = (Vec::new(), Vec::new());
        for (index, source) in system.sources.iter().enumerate() {
            let latency = latencies.source.get(index).copied().unwrap_or(0);
            let body = body(system, index);
            let any_window = Window::any(latency);
            plain.push(limiter::tasks(source, body, clock, any_window));
            seen.push(TaskViews::new(source, body, &system.cpu, latency));
        }
        let timers = (0..system.timers.len())
            .map(|timer| TimerDemands::new(system, timer, &plain))
            .collect();
        let mut units = Self {
            system,
            latencies: latencies.source.clone(),
            units: Vec::new(),
            plain,
            seen,
            timers,
            switches: Vec::new(),
        };
        units.units = units.list();
        units.switches = switches(&system.cpu, &units.units);
        units
    }

    /// The request and expiry units of the source `index`, whose demands are `tasks`.
    pub(crate) fn interrupts(&self, index: usize, tasks: &Tasks) -> impl Iterator<Item = Unit> {
        let system = self.system;
        let source = system.sources.get(index);
        let request = source
            .filter(|_| tasks.request.is_some() || tasks.serves.is_none())
            .map(|source| Unit {
                part: Part::Request(index),
                place: PreemptionRank::of_interrupt(&system.cpu, &source.level),
                own: tasks.request.as_ref().map(|request| request.own.clone()),
                longest: tasks.request.as_ref().map_or_else(
                    || {
                        source
                            .limit
                            .costs
                            .request_served
                            .saturating_add(body(system, index).cycles)
                    },
                    |request| request.longest,
                ),
                deadline: source.deadline,
            });
        let expiry = source
            .and_then(|source| Some((source, tasks.expiry.as_ref()?)))
            .and_then(|(source, expiry)| {
                Some(Unit {
                    part: Part::Expiry(index),
                    place: level_of_timer(system, source)?,
                    own: Some(expiry.own.clone()),
                    longest: expiry.longest,
                    // The timer's interrupt serves a request that had to wait for the limiter.
                    deadline: source
                        .deadline
                        .filter(|_| limiter::serves_in_expiry(&source.limit)),
                })
            });
        request.into_iter().chain(expiry)
    }

    fn list(&self) -> Vec<Unit> {
        let system = self.system;
        let mut units: Vec<Unit> = self
            .plain
            .iter()
            .enumerate()
            .flat_map(|(index, tasks)| self.interrupts(index, tasks))
            .collect();
        share_alarms(&mut units);
        for (index, (timer, demands)) in system.timers.iter().zip(&self.timers).enumerate() {
            let longest = longest_timer(system, index);
            units.push(Unit {
                part: Part::Timer(index),
                place: PreemptionRank::of_interrupt(&system.cpu, &timer.level),
                // Other units count the handlers that run inside this interrupt as runs of the
                // sources' lines. The interrupt's own response time has to include them.
                own: Some(Demand {
                    cost: longest,
                    curve: demands.by_tasks.curve.clone(),
                }),
                longest,
                deadline: None,
            });
        }
        self.list_tasks(&mut units);
        units
    }

    fn list_tasks(&self, units: &mut Vec<Unit>) {
        let system = self.system;
        let switch = system.cpu.context_switch.cycles;
        for (index, receiver) in system.receivers.iter().enumerate() {
            let Some(period) = receiver.period.filter(|_| receiver.wcet.cycles > 0) else {
                continue;
            };
            let cost = receiver.wcet.cycles.saturating_add(switch);
            units.push(Unit {
                part: Part::Task(index),
                place: place_of_receiver(system, index),
                own: Some(Demand {
                    cost,
                    curve: Curve::new(Staircase::sporadic(period, receiver.jitter)),
                }),
                longest: cost,
                deadline: receiver.deadline,
            });
        }
        for (index, flow) in system.flows.iter().enumerate() {
            for work in per_packet(system, index, flow) {
                units.push(Unit {
                    part: work.part,
                    place: place_of_receiver(system, flow.receiver),
                    own: self.packets(index).map(|curve| Demand {
                        cost: work.cost,
                        curve,
                    }),
                    longest: work.cost,
                    deadline: work.deadline,
                });
            }
        }
    }

    /// The most packets of a flow that release a bottom half in any window: the packets that the
    /// interrupt takes, up to what the receiver's budget allows.
    #[must_use]
    pub fn packets(&self, flow: usize) -> Option<Curve> {
        let flow = self.system.flows.get(flow)?;
        Some(self.within_budget(flow, self.taken(flow)?))
    }

    /// The most packets for the receiver of `flow` that are taken between two ticks. The receiver's
    /// budget is refilled at each tick, and the second tick may be late. `None` if there is no
    /// budget or no bound.
    #[must_use]
    pub fn packets_between_ticks(&self, flow: &Flow) -> Option<u64> {
        let budget = self.system.tick_budget(flow)?;
        let same = |other: &&Flow| {
            other.receiver == flow.receiver && self.system.tick_budget(other).is_some()
        };
        let mut flows = self.system.flows.iter().filter(same);
        flows.try_fold(0, |sum: u64, other| {
            let window = budget.tick.saturating_mul(2);
            Some(sum.saturating_add(self.taken(other)?.events(window)))
        })
    }

    /// The most packets of a flow whose top halves run in any window: as many as the source serves.
    /// If no packet has to wait for the limit, the flow's own rate is a second bound.
    fn taken(&self, flow: &Flow) -> Option<Curve> {
        let source = self.system.sources.get(flow.source)?;
        let tasks = self.plain.get(flow.source)?;
        let latency = self.latencies.get(flow.source).copied()?;
        self.taken_if(flow, source, tasks, latency)
    }

    /// The part of `taken` that the budget of the flow's receiver lets through. A tick comes less
    /// than one tick late, so a window may begin with a full budget and see two ticks right after
    /// that.
    fn within_budget(&self, flow: &Flow, taken: Curve) -> Curve {
        match self.system.tick_budget(flow) {
            Some(TickBudget { frames, tick }) => taken.and(Staircase {
                base: frames.saturating_mul(2),
                step: frames,
                period: tick,
                jitter: tick,
            }),
            None => taken,
        }
    }

    /// Like [`Self::taken`], but for a changed `source` with the demands `tasks` and a timer that
    /// is `latency` cycles late.
    fn taken_if(&self, flow: &Flow, source: &Source, tasks: &Tasks, latency: u64) -> Option<Curve> {
        let clock = self.system.cpu.clock_hz;
        let per_interrupt = source.max_work.unwrap_or(1);
        let all = tasks.serves.as_ref()?.times(per_interrupt);
        if let Some(kept) = limiter::kept_until_a_tick(source) {
            // These are the packets that wait when the window begins, and those that come in it.
            let apart =
                flow_interarrival(flow, clock).max(limiter::line_interarrival(source, clock));
            return Some(match apart {
                Some(period) => all.and(Staircase {
                    base: kept.saturating_add(1),
                    ..Staircase::sporadic(period, 0)
                }),
                None => all,
            });
        }
        let own = flow_interarrival(flow, clock)
            .zip(longest_wait(source, clock, latency))
            .filter(|_| !limiter::piles_up(source));
        Some(match own {
            Some((period, wait)) => all.and(Staircase::sporadic(period, wait)),
            None => all,
        })
    }

    /// The work at receivers' urgencies for the packets of a source: first as the system is, then
    /// with the source changed to `changed`, with the demands `tasks` and a timer that is `latency`
    /// cycles late. `None` if there is no bound.
    pub(crate) fn per_packet_if(
        &self,
        source: usize,
        changed: &Source,
        tasks: &Tasks,
        latency: u64,
    ) -> Option<Vec<(Demand, Demand)>> {
        let system = self.system;
        system
            .flows_of(source)
            .map(|(index, flow)| {
                let cost = per_packet(system, index, flow)
                    .fold(0, |sum: u64, work| sum.saturating_add(work.cost));
                let of = |curve| Demand { cost, curve };
                let then = self.taken_if(flow, changed, tasks, latency)?;
                Some((of(self.packets(index)?), of(self.within_budget(flow, then))))
            })
            .collect()
    }

    /// The most cycles for which a packet can wait in the device until the device interrupts: the
    /// delay of moderation plus that of a limiter in hardware. `None` if there is no bound, because
    /// packets can come faster than the limit lets them through and the file does not state the
    /// size of the device's ring.
    #[must_use]
    pub fn longest_wait(&self, source: usize) -> Option<u64> {
        let of = self.system.sources.get(source)?;
        let latency = self.latencies.get(source).copied()?;
        longest_wait(of, self.system.cpu.clock_hz, latency)
    }

    /// Whether the analysis relies on the limiter of a source never holding a request back, because
    /// requests are too far apart. The source's latency then includes how late its own interrupt
    /// begins, because the limiter distinguishes two requests by the start times of their
    /// interrupts.
    #[must_use]
    pub fn is_counted_on(&self, source: usize) -> bool {
        let of = self.system.sources.get(source);
        let latency = self.latencies.get(source);
        of.zip(latency)
            .is_some_and(|(of, &latency)| self.counts_on(of, latency))
    }

    /// Like [`Self::is_counted_on`], but for the source as in `changed`, with the latency `latency`
    /// in cycles.
    pub(crate) fn counts_on(&self, changed: &Source, latency: u64) -> bool {
        limiter::longest_borne(changed, self.system.cpu.clock_hz)
            .is_some_and(|longest| latency <= longest)
    }

    /// The demand of a shared timer's interrupt as tasks see it. The handlers that run inside it
    /// are not included, because they count as runs of the sources' lines.
    #[must_use]
    pub fn timer(&self, timer: usize) -> Option<&Demand> {
        self.timers.get(timer).map(|demands| &demands.by_tasks)
    }

    /// The context switches at the ends of time slices: one demand for each urgency at which tasks
    /// take turns.
    pub fn switches(&self) -> impl Iterator<Item = &Demand> {
        self.switches.iter().map(|(_, switch)| switch)
    }

    /// The demands of a source as other units see them; `None` if there is no such source.
    pub(crate) fn seen(&self, source: usize) -> Option<&TaskViews> {
        self.seen.get(source)
    }

    /// The demands of a source, alone and as other units see them, for the source as in `changed`
    /// and a timer that is `latency` cycles late.
    pub(crate) fn tasks_if(
        &self,
        source: usize,
        changed: &Source,
        latency: u64,
    ) -> (Tasks, TaskViews) {
        let cpu = &self.system.cpu;
        let body = body(self.system, source);
        let any_window = Window::any(latency);
        (
            limiter::tasks(changed, body, cpu.clock_hz, any_window),
            TaskViews::new(changed, body, cpu, latency),
        )
    }

    /// The demands of a source alone, whose curves hold in any window; `None` if there is no such
    /// source.
    #[must_use]
    pub fn tasks(&self, source: usize) -> Option<&Tasks> {
        self.plain.get(source)
    }
}
