// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models the threads of a Linux kernel that take packets as tasks of the analysis.
//!
//! A file states the work for a packet, and Linux decides where this work runs: in the thread of
//! the packet's interface, which ranks above or among the tasks. [`System::with_threads`] returns a
//! system whose bounds hold on Linux, with one receive queue for each source of an interface.
use std::time::Duration;

use miette::Diagnostic;

use super::{InterfaceThread, LinuxContradiction, TopHalf};
use crate::system::{Cost, Flow, Origin, Receiver, Source, System};

/// The default cap of the mode [`LinuxMode::Exact`]: 5 % of a processor, in pieces so short that a
/// job of some ms tolerates them.
pub const CAP: TopHalf = TopHalf::Cap {
    runtime: CAP_RUNTIME,
    period: CAP_PERIOD,
};
const CAP_RUNTIME: Duration = Duration::from_micros(500);
const CAP_PERIOD: Duration = Duration::from_millis(10);

/// The most packets that a thread takes before it can be preempted. This is the kernel's
/// NAPI_POLL_WEIGHT, which drivers keep. If a task of SCHED_DEADLINE runs out of run time during
/// these packets, the rest is not charged to it (`update_curr_dl`: the task has left its queue).
pub const MOST_OF_POLL: u32 = 64;

/// The longest tick of any kernel's clock. CONFIG_HZ is at least 100.
pub const LONGEST_TICK: Duration = Duration::from_millis(10);

/// The highest priority of a thread in the mode [`LinuxMode::Predicted`].
const MOST_PREDICTED: u8 = 98;

/// The urgency of threads with a cap. SCHED_DEADLINE precedes every priority of SCHED_FIFO.
pub const DEADLINE_URGENCY: u8 = u8::MAX;

/// The urgency of the top half if there is no thread. An interrupt precedes all of SCHED_FIFO.
pub const INTERRUPT_URGENCY: u8 = 100;

/// Seconds in which a thread is late at most twice. This is longer than any busy window.
const RARELY: u64 = 3_600;

/// The reason why a deadline of a file has no bound on Linux.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
pub enum LinuxBoundError {
    /// A flow has a deadline. Its packets wait for a thread, and before that in the network card.
    #[error(
        "no bound is known for the deadline of the flow `{flow}`: on Linux its packets wait in the card for a thread"
    )]
    #[diagnostic(help("leave that deadline out: the tasks' deadlines are analysed without it"))]
    FlowDeadline {
        /// The name of the flow.
        flow: String,
    },
    /// The section `[linux]` contradicts itself.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Contradiction(#[from] LinuxContradiction),
    /// A task has a deadline but is not more urgent than work that comes in bursts. Such work comes
    /// from packets, because threads deliver them in bursts.
    #[error(
        "no bound is known for the deadline of `{receiver}`: threads hand packets on in bursts, and the work for `{other}` is as urgent or more"
    )]
    #[diagnostic(help(
        "give `{receiver}` a higher urgency than `{other}`, or leave its deadline out"
    ))]
    Exposed {
        /// The name of the task.
        receiver: String,
        /// The name of the receiver whose packets delay the task.
        other: String,
    },
    /// A task has a deadline and is released by its own packets, which come in bursts.
    #[error(
        "no bound is known for the deadline of `{receiver}`: threads hand its packets on in bursts, and that work is as urgent as it is"
    )]
    #[diagnostic(help(
        "leave that deadline out, or give the work that has it to a receiver of its own, which is more urgent and gets no packets"
    ))]
    ExposedToItself {
        /// The name of the task.
        receiver: String,
    },
    /// A task has a deadline but is not more urgent than threads whose work the file does not
    /// state.
    #[error(
        "no bound is known for the deadline of `{receiver}`: the threads of {interface} are as urgent or more, and the file states no costs of their packets"
    )]
    #[diagnostic(help(
        "state `top_half` and `bottom_half` of a [[flow]] of {interface}: docs/linux.md says how to measure them; or leave that deadline out"
    ))]
    NoCosts {
        /// The name of the task.
        receiver: String,
        /// The name of the interface.
        interface: String,
    },
    /// A task has a deadline but is not more urgent than a thread that a flood keeps busy.
    #[error(
        "no bound is known for the deadline of `{receiver}`: the threads of {interface} are as urgent or more, and nothing bounds how many packets come"
    )]
    #[diagnostic(help(
        "state the source's `rate = {{ worst = … }}`, give the threads a cap (`top_half`), or give `{receiver}` a higher urgency"
    ))]
    Flooded {
        /// The name of the task.
        receiver: String,
        /// The name of the interface.
        interface: String,
    },
}

/// A kernel thread that will be added to the receivers, as in [`InterfaceThread`].
struct Thread {
    receiver: Receiver,
    takes: Option<(usize, Cost)>,
}

/// The work that a thread without a cap does for the packets of a source.
struct ThreadWork {
    period: u64,
    jitter: u64,
    wcet: Cost,
}

impl ThreadWork {
    /// Computes the work for a source, with the cost `packet` per packet. The packets that come
    /// during moderation share one switch to the thread. If no rate bounds the packets, the work
    /// never ends.
    fn of(source: &Source, packet: Cost, clock_hz: u64) -> Self {
        let gathered = source.moderation.map_or(0, |of| of.absolute);
        let Some(worst) = source.rates.worst else {
            let period = gathered.max(1);
            return Self {
                period,
                jitter: gathered,
                wcet: Cost {
                    cycles: period,
                    ..packet
                },
            };
        };
        let apart = worst.least_cycles(clock_hz).max(1);
        Self {
            period: gathered.max(apart),
            jitter: gathered,
            wcet: Cost {
                cycles: packet.cycles.saturating_mul(gathered / apart + 1),
                ..packet
            },
        }
    }

    fn give(&self, receiver: &mut Receiver) {
        receiver.period = Some(self.period);
        receiver.jitter = self.jitter;
        receiver.wcet = self.wcet;
    }
}

/// The threads of one interface.
struct InterfaceThreads<'a> {
    interface: &'a str,
    /// The sources of the interface, as indices in [`System::sources`].
    sources: Vec<usize>,
}

impl System {
    /// Adds the kernel threads that take packets of the network interfaces to the system, as tasks.
    /// Without an interface the system does not change.
    ///
    /// # Errors
    /// Returns [`LinuxBoundError`] if a deadline of the file has no known bound, or if `[linux]`
    /// contradicts itself.
    pub fn with_threads(self) -> Result<Self, LinuxBoundError> {
        let mut system = self;
        system.linux.check(system.linux.mode)?;
        for (interface, sources) in interfaces(&system) {
            let threads = InterfaceThreads {
                interface: &interface,
                sources,
            };
            threads.add(&mut system)?;
        }
        Ok(system)
    }

    /// Recomputes the work of the kernel's threads from the present rates of the sources. This is
    /// necessary after a rate has changed or has been removed.
    pub fn renew_threads(&mut self) {
        for thread in &self.linux.threads {
            let source = thread.takes.and_then(|(source, packet)| {
                let source = self.sources.get(source)?;
                Some(ThreadWork::of(source, packet, self.cpu.clock_hz))
            });
            if let (Some(work), Some(of)) = (source, self.receivers.get_mut(thread.receiver)) {
                work.give(of);
            }
        }
    }
}

/// The interfaces with the indices of their sources, in the file's order.
fn interfaces(system: &System) -> Vec<(String, Vec<usize>)> {
    let mut found: Vec<(String, Vec<usize>)> = Vec::new();
    for of in &system.linux.interfaces {
        match found.iter_mut().find(|(name, _)| *name == of.name) {
            Some((_, sources)) => sources.push(of.source),
            None => found.push((of.name.clone(), vec![of.source])),
        }
    }
    found
}

impl InterfaceThreads<'_> {
    fn add(&self, system: &mut System) -> Result<(), LinuxBoundError> {
        if let Some(flow) = self.flows(system).find(|flow| flow.deadline.is_some()) {
            return Err(LinuxBoundError::FlowDeadline {
                flow: flow.name.clone(),
            });
        }
        self.refuse_exposed(system)?;
        let packet = self.per_packet(system);
        let threads = match system.linux.top_half {
            Some(TopHalf::Cap { runtime, period }) => {
                self.capped(system, packet, runtime, period)?
            }
            Some(TopHalf::Urgency(urgency)) => self.urgent(system, packet, urgency)?,
            Some(TopHalf::Interrupt) => self.urgent(system, packet, INTERRUPT_URGENCY)?,
            None if system.linux.mode.facts().demultiplexes => {
                self.capped(system, packet, CAP_RUNTIME, CAP_PERIOD)?
            }
            None => self.urgent(system, packet, self.urgency(system))?,
        };
        // The threads now contain the work of these flows.
        system
            .flows
            .retain(|flow| !self.sources.contains(&flow.source));
        for Thread { receiver, takes } in threads {
            system.linux.threads.push(InterfaceThread {
                receiver: system.receivers.len(),
                takes,
            });
            system.receivers.push(receiver);
        }
        Ok(())
    }

    fn flows<'s>(&'s self, system: &'s System) -> impl Iterator<Item = &'s Flow> {
        let flows = system.flows.iter();
        flows.filter(|flow| self.sources.contains(&flow.source))
    }

    fn receivers<'s>(&'s self, system: &'s System) -> impl Iterator<Item = &'s Receiver> {
        let flows = self.flows(system);
        flows.filter_map(|flow| system.receivers.get(flow.receiver))
    }

    /// The urgency that the mode gives the threads if the file states none.
    fn urgency(&self, system: &System) -> u8 {
        let most = self.receivers(system).map(|of| of.urgency).max();
        if system.linux.mode.facts().follows_receivers {
            most.unwrap_or(MOST_PREDICTED).min(MOST_PREDICTED)
        } else {
            most.unwrap_or(0)
        }
    }

    /// Refuses deadlines that are not above work that the threads release, because no file bounds
    /// the bursts of that work.
    fn refuse_exposed(&self, system: &System) -> Result<(), LinuxBoundError> {
        let is_demultiplexed = system.linux.mode.facts().demultiplexes;
        let others = self.receivers(system);
        let other = others
            .filter(|of| is_demultiplexed || of.works_per_packet())
            .max_by_key(|of| of.urgency);
        let exposed = other.and_then(|other| Some((late(system, other.urgency)?, other)));
        match exposed {
            None => Ok(()),
            Some((receiver, other)) if receiver.name == other.name => {
                Err(LinuxBoundError::ExposedToItself {
                    receiver: receiver.name.clone(),
                })
            }
            Some((receiver, other)) => Err(LinuxBoundError::Exposed {
                receiver: receiver.name.clone(),
                other: other.name.clone(),
            }),
        }
    }

    /// Refuses deadlines that are not more urgent than threads of this urgency, if the file does
    /// not state the threads' cost for a packet.
    fn refuse_unknown_costs(
        &self,
        system: &System,
        packet: Cost,
        urgency: u8,
    ) -> Result<(), LinuxBoundError> {
        match late(system, urgency).filter(|_| packet.cycles == 0) {
            None => Ok(()),
            Some(receiver) => Err(LinuxBoundError::NoCosts {
                receiver: receiver.name.clone(),
                interface: self.interface.to_owned(),
            }),
        }
    }

    /// Makes the task of a thread under SCHED_DEADLINE, which precedes every other task. In each
    /// period it takes its run time and the rest of a poll, at worst twice in a row. If no timer
    /// ends the cap, it also runs on to the next tick. It does so once, and again when its deadline
    /// has come, because the kernel then moves the deadline on by as many periods as the thread has
    /// overdrawn (`replenish_dl_entity`).
    fn capped(
        &self,
        system: &System,
        packet: Cost,
        runtime: Duration,
        period: Duration,
    ) -> Result<Vec<Thread>, LinuxBoundError> {
        self.refuse_unknown_costs(system, packet, DEADLINE_URGENCY)?;
        let cycles = |time: Duration| in_cycles(time, system.cpu.clock_hz);
        let (runtime, period) = (cycles(runtime), cycles(period));
        let queues = self.sources.len() as u64;
        let poll = packet.cycles.saturating_mul(u64::from(MOST_OF_POLL));
        let mut threads = vec![Receiver {
            jitter: period,
            ..self.thread(
                "threads",
                period,
                Cost {
                    cycles: runtime.saturating_add(poll.saturating_mul(queues)),
                    ..packet
                },
            )
        }];
        if !system.linux.cap_timer {
            let tick = cycles(system.linux.tick.unwrap_or(LONGEST_TICK));
            let rarely = system.cpu.clock_hz.saturating_mul(RARELY).max(period);
            let overrun = Cost {
                cycles: tick.saturating_mul(queues),
                origin: match system.linux.tick {
                    Some(_) => Origin::Declared,
                    None => Origin::Default,
                },
            };
            threads.push(Receiver {
                jitter: rarely - period,
                ..self.thread("last tick", rarely, overrun)
            });
        }
        let of = |receiver| Thread {
            receiver,
            takes: None,
        };
        Ok(threads.into_iter().map(of).collect())
    }

    /// Makes the tasks of threads under SCHED_FIFO: one for each source, which takes the source's
    /// packets at their worst rate.
    fn urgent(
        &self,
        system: &System,
        packet: Cost,
        urgency: u8,
    ) -> Result<Vec<Thread>, LinuxBoundError> {
        self.refuse_unknown_costs(system, packet, urgency)?;
        let mut threads = Vec::new();
        for &index in &self.sources {
            let Some(source) = system.sources.get(index) else {
                continue;
            };
            if source.rates.worst.is_none() {
                self.refuse_flooded(system, urgency)?;
                continue;
            }
            let mut receiver = Receiver {
                urgency,
                ..self.thread("threads", 1, Cost::NONE)
            };
            ThreadWork::of(source, packet, system.cpu.clock_hz).give(&mut receiver);
            threads.push(Thread {
                receiver,
                takes: Some((index, packet)),
            });
        }
        Ok(threads)
    }

    /// Refuses deadlines that are not more urgent than threads that a flood keeps busy.
    fn refuse_flooded(&self, system: &System, urgency: u8) -> Result<(), LinuxBoundError> {
        match late(system, urgency) {
            None => Ok(()),
            Some(receiver) => Err(LinuxBoundError::Flooded {
                receiver: receiver.name.clone(),
                interface: self.interface.to_owned(),
            }),
        }
    }

    /// A task of SCHED_DEADLINE that stands for the interface's threads.
    fn thread(&self, what: &str, period: u64, wcet: Cost) -> Receiver {
        Receiver {
            name: format!("{what} of {}", self.interface),
            urgency: DEADLINE_URGENCY,
            period: Some(period),
            jitter: 0,
            deadline: None,
            wcet,
            blocking: Cost::NONE,
            critical_section: Cost::NONE,
            backlog: None,
            port: None,
        }
    }

    /// The worst cost of the thread's work for a packet, from the largest of each part, as in
    /// `weir linux plan`. With demultiplexing the thread does the top half only.
    fn per_packet(&self, system: &System) -> Cost {
        let is_demultiplexed = system.linux.mode.facts().demultiplexes;
        let (top, bottom) =
            self.flows(system)
                .fold((Cost::NONE, Cost::NONE), |(top, bottom), flow| {
                    let of_flow = sum(flow.top_half, flow.demux);
                    (larger(top, of_flow), larger(bottom, flow.bottom_half))
                });
        if is_demultiplexed {
            top
        } else {
            sum(top, bottom)
        }
    }
}

/// A receiver whose deadline is not more urgent than `urgency`; `None` if there is none.
fn late(system: &System, urgency: u8) -> Option<&Receiver> {
    let mut late = system.receivers.iter().filter(|of| of.deadline.is_some());
    late.find(|of| of.urgency <= urgency)
}

fn in_cycles(time: Duration, clock_hz: u64) -> u64 {
    let cycles = (time.as_nanos() * u128::from(clock_hz)).div_ceil(1_000_000_000);
    u64::try_from(cycles).unwrap_or(u64::MAX)
}

fn sum(a: Cost, b: Cost) -> Cost {
    Cost {
        cycles: a.cycles.saturating_add(b.cycles),
        origin: weaker(a.origin, b.origin),
    }
}

fn larger(a: Cost, b: Cost) -> Cost {
    Cost {
        cycles: a.cycles.max(b.cycles),
        origin: weaker(a.origin, b.origin),
    }
}

fn weaker(a: Origin, b: Origin) -> Origin {
    if [a, b].contains(&Origin::Measured) {
        Origin::Measured
    } else {
        Origin::Declared
    }
}
