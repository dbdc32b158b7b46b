// SPDX-License-Identifier: MIT OR Apache-2.0
//! One processor in virtual time.
//!
//! The engine advances from one event to the next: an arrival, a timer match, or the end of the
//! running work. Once all events of an instant have been handled, [`Engine::dispatch`] decides what
//! runs next. An interrupt that may preempt the running work goes first, by rank. If no interrupt
//! is in progress, the most urgent task or bottom half runs.

mod build;
mod costs;
mod devices;
mod frames;
mod halves;
mod lines;
mod tasks;
mod ticks;

use rand_chacha::ChaCha8Rng;
use weir_arrivals::Arrivals;
use weir_core_sys::W64;
use weir_core_sys::moderate::Moderator;
use weir_model::System;

use crate::SimulationError;
use crate::accounting::Accounting;
use crate::agenda::{Agenda, NEVER};
use crate::observer::{Observer, SimulationEvent, Track};
use crate::options::{Options, Target};
use crate::ranks::Ranks;
use crate::ready::Ready;
use crate::selectors::Selectors;
use crate::tally::{Stage, Tally};

use costs::PacketCostTable;
use frames::{Frame, RankedInterrupt};
use halves::Halves;
use lines::SourceLine;
use tasks::Task;

/// Work that runs below all interrupts: a task or a bottom half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// The task with this index.
    Task(usize),
    /// The bottom half of the first packet in this queue of [`Halves`].
    Half(usize),
}

/// The state of the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessorState {
    Idle,
    /// The topmost interrupt frame runs.
    Interrupt,
    Thread(Work),
}

/// The first agenda slot of each kind of event. The slots of one kind are contiguous.
#[derive(Debug, Clone, Copy)]
struct Slots {
    own_timers: usize,
    shared_timers: usize,
    releases: usize,
    loop_ends: usize,
    moderation: usize,
    tick: usize,
    all: usize,
}

/// A stream of arrivals from one feed.
struct Stream {
    to: Target,
    arrivals: Arrivals,
    /// The index in the system of each flow that the recording names.
    flows: Vec<usize>,
    /// The next arrival, which is scheduled in the stream's agenda slot. `None` if the stream has
    /// ended.
    next: Option<weir_arrivals::Arrival>,
}

/// The state of a simulated system during a run.
pub(crate) struct Engine<'a, O> {
    system: &'a System,
    options: &'a Options,
    observer: &'a mut O,
    rng: ChaCha8Rng,
    now: u64,
    agenda: Agenda,
    slots: Slots,
    streams: Vec<Stream>,

    lines: Vec<SourceLine>,
    selectors: Selectors,
    moderator: Option<Moderator<W64>>,
    /// The index of the source of each queue of the moderator.
    moderated: Vec<usize>,
    /// The interrupts, sorted by rank; rank 0 is the highest.
    interrupts: Vec<RankedInterrupt>,
    /// The ranks of the interrupts that are pending and enabled.
    asking: Ranks,
    timer_ranks: Vec<usize>,
    /// The sources that each shared timer clears.
    clears: Vec<Vec<usize>>,
    /// The stack of interrupts in progress, with their remaining work. The last one runs.
    frames: Vec<Frame>,

    costs: PacketCostTable,
    tasks: Vec<Task>,
    ready: Ready,
    halves: Halves,
    /// The cooperative task that has started. It runs to completion before any other task or bottom
    /// half.
    begun: Option<Work>,
    accounting: Accounting,

    running: ProcessorState,
    /// The instant at which the running work was started or resumed last.
    since: u64,
    /// The instant at which the running work ends if nothing preempts it.
    ends_at: u64,
    /// Whether something has changed that may change what runs.
    attention: bool,
    tally: Tally,
}

impl<O: Observer> Engine<'_, O> {
    /// Runs the simulation until its duration is over.
    ///
    /// # Errors
    /// Fails if a recording turns out shorter than when it was checked.
    pub fn run(mut self) -> Result<Tally, SimulationError> {
        let end = self.options.duration;
        loop {
            let (at, slot) = self.agenda.earliest();
            let next = at.min(self.ends_at);
            if self.attention && next > self.now {
                self.dispatch();
                continue;
            }
            if next >= end {
                break;
            }
            self.now = next;
            // Work that ends at this instant ends before arrivals of the same instant are handled.
            if self.ends_at <= at {
                self.finish();
            } else {
                self.happen(slot);
            }
        }
        self.now = end;
        self.leave();
        self.close();
        let mut errors = self
            .streams
            .iter()
            .filter_map(|stream| stream.arrivals.error());
        match errors.next() {
            Some(error) => Err(SimulationError::Recording(error.to_string())),
            None => Ok(self.tally),
        }
    }

    fn happen(&mut self, slot: usize) {
        let slots = self.slots;
        if slot < slots.own_timers {
            self.arrive(slot);
        } else if slot < slots.shared_timers {
            self.own_timer_matches(slot - slots.own_timers);
        } else if slot < slots.releases {
            self.shared_timer_matches(slot - slots.shared_timers);
        } else if slot < slots.loop_ends {
            self.release(slot - slots.releases);
        } else if slot < slots.moderation {
            self.end_loop(slot - slots.loop_ends);
        } else if slot == slots.moderation {
            self.moderation_is_due();
        } else {
            self.tick();
        }
    }

    /// Decides what runs from now on.
    fn dispatch(&mut self) {
        self.attention = false;
        let asks = self.asking.first().filter(|&rank| self.may_preempt(rank));
        if let Some(rank) = asks {
            self.leave();
            self.take(rank);
            return;
        }
        if self.running == ProcessorState::Interrupt {
            return;
        }
        if !self.frames.is_empty() {
            self.leave();
            self.resume_frame();
            return;
        }
        let wanted = self.choose_thread();
        if wanted.is_some_and(|thread| self.running == ProcessorState::Thread(thread)) {
            return;
        }
        self.leave();
        if let Some(thread) = wanted {
            self.enter(thread);
        }
    }

    /// Charges the cycles since the last change to the work that used them.
    fn settle(&mut self) {
        let cycles = self.now - self.since;
        self.since = self.now;
        if cycles == 0 {
            return;
        }
        match self.running {
            ProcessorState::Idle => self.tally.stages.add(Stage::Idle, cycles),
            ProcessorState::Interrupt => {
                if let Some(frame) = self.frames.last_mut() {
                    frame.left -= cycles;
                }
                if let Some(victim) = self.ready.first() {
                    self.tally.tasks[victim].interrupted += cycles;
                }
            }
            ProcessorState::Thread(Work::Half(queue)) => {
                self.halves.ran(queue, cycles);
                self.tally.stages.add(Stage::BottomHalves, cycles);
                if let Some(victim) = self.ready.first() {
                    let receiver = self.halves.receiver(queue);
                    let task = &mut self.tally.tasks[victim];
                    task.interrupted += cycles;
                    if receiver != Some(victim) {
                        task.interrupted_by_bottom_halves += cycles;
                    }
                }
            }
            ProcessorState::Thread(Work::Task(task)) => self.task_ran(task, cycles),
        }
    }

    /// Stops the running work, if there is any.
    fn leave(&mut self) {
        self.settle();
        if let Some(track) = self.track() {
            self.tell(SimulationEvent::Stops(track));
        }
        self.running = ProcessorState::Idle;
        self.ends_at = NEVER;
    }

    /// Ends the current part of the running work.
    fn finish(&mut self) {
        self.settle();
        self.attention = true;
        match self.running {
            ProcessorState::Idle => {}
            ProcessorState::Interrupt => self.finish_frame(),
            ProcessorState::Thread(Work::Task(task)) => self.finish_task(task),
            ProcessorState::Thread(Work::Half(queue)) => self.finish_half(queue),
        }
    }

    /// Reports the end of the work. The next dispatch chooses other work.
    fn ended(&mut self, track: Track) {
        self.tell(SimulationEvent::Ends(track));
        if matches!(self.running, ProcessorState::Thread(_)) {
            self.begun = None;
        }
        self.running = ProcessorState::Idle;
        self.ends_at = NEVER;
    }

    fn runs(&mut self, what: ProcessorState, cycles: u64, track: Track, resumes: bool) {
        self.running = what;
        self.since = self.now;
        self.ends_at = self.now.saturating_add(cycles);
        self.tell(if resumes {
            SimulationEvent::Resumes(track)
        } else {
            SimulationEvent::Starts(track)
        });
    }

    /// Returns the timeline track of the running work.
    fn track(&self) -> Option<Track> {
        match self.running {
            ProcessorState::Idle => None,
            ProcessorState::Interrupt => self.frames.last().map(|frame| frame.track),
            ProcessorState::Thread(Work::Task(task)) => Some(Track::Task(task)),
            ProcessorState::Thread(Work::Half(queue)) => Some(self.halves.track(queue)),
        }
    }

    #[inline]
    fn tell(&mut self, event: SimulationEvent) {
        self.observer.event(self.now, event);
    }
}
