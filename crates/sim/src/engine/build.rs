// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the initial state of a simulated system.

use std::collections::VecDeque;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use weir_arrivals::Pattern;
use weir_core_sys::Trigger;
use weir_core_sys::moderate::{Moderator, QueueConfig};
use weir_model::{Expiry, Level, Nesting, Place, Policy, Source, System};

use crate::SimulationError;
use crate::accounting::Accounting;
use crate::agenda::{Agenda, NEVER};
use crate::limiter::{Orders, TimedLimiter, core_config};
use crate::observer::{Observer, Track};
use crate::options::{Options, Target};
use crate::ranks::Ranks;
use crate::ready::Ready;
use crate::selectors::Selectors;
use crate::tally::{FlowTally, SourceTally, Tally, TaskTally};

use super::costs::PacketCostTable;
use super::devices::DeviceRing;
use super::frames::RankedInterrupt;
use super::halves::Halves;
use super::lines::{Gate, SourceLine};
use super::tasks::{Releases, Task, scramble};
use super::{Engine, ProcessorState, Slots, Stream};

/// The capacity, in packets, of a queue whose capacity the system does not state. An overload still
/// shows losses, and the memory of a run is bounded.
pub(super) const UNSTATED: usize = 4096;

impl<'a, O: Observer> Engine<'a, O> {
    /// Builds the state at the beginning of a run.
    ///
    /// # Errors
    /// Fails if the system or the options cannot be simulated; [`SimulationError`] names the cause.
    pub fn new(
        system: &'a System,
        options: &'a Options,
        observer: &'a mut O,
    ) -> Result<Self, SimulationError> {
        let slots = Slots::new(system, options);
        let (interrupts, ranks) = ranks(system, options);
        let mut engine = Self {
            system,
            options,
            observer,
            rng: ChaCha8Rng::seed_from_u64(options.seed),
            now: 0,
            agenda: Agenda::new(slots.all),
            slots,
            streams: Vec::new(),
            lines: Vec::new(),
            selectors: Selectors::new(system).map_err(SimulationError::Demux)?,
            moderator: None,
            moderated: Vec::new(),
            asking: Ranks::new(interrupts.len()),
            interrupts,
            timer_ranks: ranks.timers.clone(),
            clears: clears(system, options),
            frames: Vec::new(),
            costs: PacketCostTable::new(system),
            tasks: tasks(system, options),
            ready: Ready::new(),
            halves: Halves::new(system, options.defer)?,
            begun: None,
            accounting: Accounting::new(system, options)?,
            running: ProcessorState::Idle,
            since: 0,
            ends_at: NEVER,
            attention: true,
            tally: empty_tally(system, options),
        };
        engine.make_moderator()?;
        engine.make_lines(&ranks)?;
        engine.start_streams()?;
        engine.start_timers();
        Ok(engine)
    }

    fn make_moderator(&mut self) -> Result<(), SimulationError> {
        if !self.options.moderation {
            return Ok(());
        }
        let mut configs = Vec::new();
        for (index, source) in self.system.sources.iter().enumerate() {
            if let Some(moderation) = &source.moderation {
                self.moderated.push(index);
                configs.push(QueueConfig {
                    absolute: Some(moderation.absolute),
                    packet: moderation.packet,
                    count: moderation
                        .count
                        .map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
                    size: u32::try_from(device_size(source)).unwrap_or(u32::MAX),
                });
            }
        }
        if !configs.is_empty() {
            let moderator = Moderator::new(&configs).map_err(SimulationError::Moderation)?;
            self.moderator = Some(moderator);
        }
        Ok(())
    }

    fn make_lines(&mut self, ranks: &AllRanks) -> Result<(), SimulationError> {
        for (index, source) in self.system.sources.iter().enumerate() {
            let policy = self.policy_of(index);
            let is_level = self.options.feeds.iter().any(|feed| {
                feed.to == Target::Source(index) && matches!(feed.pattern, Pattern::Level { .. })
            });
            let mut line = SourceLine {
                limiter: None,
                gate: None,
                request_rank: ranks.requests[index],
                expiry_rank: ranks.expiries[index],
                poll: (policy == Policy::Poll).then_some(source.limit.interval.cycles()),
                pending: false,
                asked: 0,
                admitted: 0,
                matched: 0,
                held: None,
                enabled: true,
                is_high: false,
                watched: None,
                costs: if policy == Policy::Off {
                    self.system.cpu.unlimited
                } else {
                    source.limit.costs
                },
                plain: self.system.cpu.unlimited.request_served,
                handler: source.handler.cycles,
                work: source.work.cycles,
                max_work: source.max_work.unwrap_or(1),
                device: self.system.brings_packets(index).then(|| DeviceRing {
                    ring: VecDeque::new(),
                    size: device_size(source),
                    moderated: self.moderated.iter().position(|&other| other == index),
                }),
            };
            let mut orders = Orders::default();
            if !matches!(policy, Policy::Off | Policy::Poll) {
                let trigger = if is_level {
                    Trigger::Level
                } else {
                    Trigger::Edge
                };
                let config = core_config(&source.limit, trigger);
                // A timer that several sources share is free-running, and the limiter reads no time
                // from it.
                let bits = match source.limit.expiry {
                    Some(Expiry::Shared(_)) => 64,
                    _ => source.limit.bits,
                };
                let (limiter, first) =
                    TimedLimiter::start(&config, source.limit.interval.tick, bits, 0).map_err(
                        |error| SimulationError::Limit {
                            source_name: source.name.clone(),
                            error,
                        },
                    )?;
                if source.limit.place == Place::Hardware {
                    line.gate = Some(Gate {
                        limiter,
                        open: true,
                        noted: None,
                    });
                } else {
                    line.limiter = Some(limiter);
                    orders = first;
                }
            }
            self.lines.push(line);
            let own_timer = ranks.expiries[index].and(orders.arm);
            if let Some(at) = own_timer {
                self.agenda.set(self.slots.own_timers + index, at);
            }
            self.lines[index].watched = orders.watch;
        }
        Ok(())
    }

    fn stream_seed(&self, stream: usize) -> u64 {
        scramble(self.options.seed ^ scramble(stream as u64 + 1))
    }

    fn start_streams(&mut self) -> Result<(), SimulationError> {
        for (index, feed) in self.options.feeds.iter().enumerate() {
            let mut arrivals = feed
                .pattern
                .start(self.system.cpu.clock_hz, self.stream_seed(index))
                .map_err(SimulationError::Pattern)?;
            let flows = named_flows(self.system, &feed.pattern)?;
            let next = arrivals.next();
            let at = next.as_ref().map_or(NEVER, |arrival| arrival.at);
            self.agenda.set(index, at);
            self.streams.push(Stream {
                to: feed.to,
                arrivals,
                flows,
                next,
            });
        }
        Ok(())
    }

    fn start_timers(&mut self) {
        for index in 0..self.lines.len() {
            if let Some(interval) = self.lines[index].poll {
                self.agenda.set(self.slots.own_timers + index, interval);
            }
        }
        for (timer, of) in self.system.timers.iter().enumerate() {
            if !self.clears[timer].is_empty() {
                self.agenda
                    .set(self.slots.shared_timers + timer, of.period.cycles());
            }
        }
        for task in 0..self.tasks.len() {
            if let Releases::Periodic { period, jitter, .. } = self.tasks[task].releases {
                let at = self.first_release(task, period, jitter);
                if let Releases::Periodic { last, first, .. } = &mut self.tasks[task].releases {
                    *last = (0, at);
                    *first = (0, at);
                }
                self.agenda.set(self.slots.releases + task, at);
            }
        }
        if let Some(tick) = self.options.tick {
            self.agenda.set(self.slots.tick, tick.period);
        }
    }
}

impl Slots {
    fn new(system: &System, options: &Options) -> Self {
        let own_timers = options.feeds.len();
        let shared_timers = own_timers + system.sources.len();
        let releases = shared_timers + system.timers.len();
        let loop_ends = releases + system.receivers.len();
        let loops = options.closed_loops.len().min(system.receivers.len());
        let moderation = loop_ends + loops;
        Self {
            own_timers,
            shared_timers,
            releases,
            loop_ends,
            moderation,
            tick: moderation + 1,
            all: moderation + 2,
        }
    }
}

/// The rank of each interrupt. `None` if the interrupt does not exist in this run.
struct AllRanks {
    requests: Vec<Option<usize>>,
    expiries: Vec<Option<usize>>,
    timers: Vec<usize>,
}

/// Sorts all interrupts by rank: higher groups first, and within a group lower orders first. The
/// clock tick ranks above all others.
fn ranks(system: &System, options: &Options) -> (Vec<RankedInterrupt>, AllRanks) {
    let mut all: Vec<(Level, Track)> = Vec::new();
    for (index, source) in system.sources.iter().enumerate() {
        let limited = options.limits && source.limit.policy != Policy::Off;
        if !(limited && source.limit.policy == Policy::Poll) {
            all.push((source.level.clone(), Track::Request(index)));
        }
        if let (true, Some(Expiry::Own { level, .. })) = (limited, &source.limit.expiry) {
            all.push((level.clone(), Track::Expiry(index)));
        }
    }
    for (index, timer) in system.timers.iter().enumerate() {
        all.push((timer.level.clone(), Track::Timer(index)));
    }
    let group = |level: &Level| match system.cpu.nesting {
        Nesting::Flat => 0,
        Nesting::Grouped => level.group,
    };
    all.sort_by_key(|(level, _)| (std::cmp::Reverse(group(level)), level.order));
    // The clock tick has the highest rank; see `TICK_RANK`.
    let mut interrupts = vec![RankedInterrupt {
        track: Track::Tick,
        group: u32::MAX,
    }];
    interrupts.extend(all.iter().map(|(level, track)| RankedInterrupt {
        track: *track,
        group: group(level),
    }));
    let mut ranks = AllRanks {
        requests: vec![None; system.sources.len()],
        expiries: vec![None; system.sources.len()],
        timers: vec![0; system.timers.len()],
    };
    for (rank, interrupt) in interrupts.iter().enumerate() {
        match interrupt.track {
            Track::Request(source) => ranks.requests[source] = Some(rank),
            Track::Expiry(source) => ranks.expiries[source] = Some(rank),
            Track::Timer(timer) => ranks.timers[timer] = rank,
            Track::Tick | Track::BottomHalf(_) | Track::Orphan(_) | Track::Task(_) => {}
        }
    }
    (interrupts, ranks)
}

/// Returns the index in the system of each flow that a recording names.
fn named_flows(system: &System, pattern: &Pattern) -> Result<Vec<usize>, SimulationError> {
    let Pattern::File(recording) = pattern else {
        return Ok(Vec::new());
    };
    let index_of = |name: &String| {
        let index = system.flows.iter().position(|flow| flow.name == *name);
        index.ok_or_else(|| SimulationError::UnknownFlow(name.clone()))
    };
    recording.flows().iter().map(index_of).collect()
}

/// Returns the sources that each shared timer clears in this run.
fn clears(system: &System, options: &Options) -> Vec<Vec<usize>> {
    (0..system.timers.len())
        .map(|timer| {
            let clears = |source: &Source| {
                options.limits && source.limit.expiry == Some(Expiry::Shared(timer))
            };
            (0..system.sources.len())
                .filter(|&index| clears(&system.sources[index]))
                .collect()
        })
        .collect()
}

fn device_size(source: &Source) -> usize {
    source.queue.map_or(UNSTATED, |queue| {
        usize::try_from(queue).unwrap_or(usize::MAX)
    })
}

fn tasks(system: &System, options: &Options) -> Vec<Task> {
    let slice = system.cpu.time_slice.unwrap_or(u64::MAX);
    let task = |(index, receiver): (usize, &weir_model::Receiver)| Task {
        urgency: receiver.urgency,
        wcet: receiver.wcet.cycles,
        switching: system.cpu.context_switch.cycles,
        deadline: receiver.deadline,
        closed_loop: options.closed_loops.get(index).copied().flatten(),
        releases: match receiver.period {
            Some(period) => Releases::Periodic {
                period,
                jitter: receiver.jitter,
                last: (0, 0),
                first: (0, 0),
                waiting: 0,
            },
            None => Releases::Events(VecDeque::new()),
        },
        room: receiver.backlog.map_or(UNSTATED, |backlog| {
            usize::try_from(backlog).unwrap_or(usize::MAX)
        }),
        job: None,
        slice,
    };
    system.receivers.iter().enumerate().map(task).collect()
}

fn empty_tally(system: &System, options: &Options) -> Tally {
    Tally {
        duration: options.duration,
        tasks: vec![TaskTally::default(); system.receivers.len()],
        sources: vec![SourceTally::default(); system.sources.len()],
        flows: vec![FlowTally::default(); system.flows.len()],
        timers: vec![0; system.timers.len()],
        ..Tally::default()
    }
}
