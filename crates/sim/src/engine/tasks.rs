// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks: their releases, their jobs, and the choice between them and bottom halves.

use std::collections::VecDeque;

use weir_model::TaskModel;

use crate::agenda::NEVER;
use crate::observer::{Observer, Queue, SimulationEvent, Track};
use crate::tally::Stage;

use super::{Engine, ProcessorState, Work};

/// The state of a task.
pub(super) struct Task {
    pub urgency: u8,
    pub wcet: u64,
    /// The cycles of switching to the task and back, charged once per job.
    pub switching: u64,
    pub deadline: Option<u64>,
    /// In a closed loop: the cycles after each release for which the task works. `None` if the task
    /// works for its WCET.
    pub closed_loop: Option<u64>,
    pub releases: Releases,
    /// The most packets or events that can wait for the task.
    pub room: usize,
    pub job: Option<Job>,
    /// The remaining cycles before tasks of the same urgency get their turn.
    pub slice: u64,
}

/// What releases a task's jobs.
pub(super) enum Releases {
    /// Jobs are released at fixed intervals. Packets and events wait until the end of the next job,
    /// which takes all of them.
    Periodic {
        period: u64,
        jitter: u64,
        /// The number and the instant of the last released job.
        last: (u64, u64),
        /// The number and the instant of the oldest job that has not ended.
        first: (u64, u64),
        /// The number of delivered packets or events that wait.
        waiting: usize,
    },
    /// Each delivered packet or event releases a job. The queue holds the instants of the releases.
    Events(VecDeque<u64>),
}

/// The job that a task has started.
pub(super) struct Job {
    pub released: u64,
    /// The remaining cycles.
    pub left: u64,
    /// The cycles that the job has executed.
    pub executed: u64,
    /// Whether the job has ever run.
    pub started: bool,
}

/// Returns the release instant of job `number`: its nominal instant plus a jitter. The jitter
/// depends only on the seed and the number, so that no job has to be stored. The result is never
/// before the release of the previous job.
fn release_of(seed: u64, number: u64, before: u64, period: u64, jitter: u64) -> u64 {
    let late = if jitter == 0 {
        0
    } else {
        scramble(seed.wrapping_add(number)) % (jitter + 1)
    };
    period
        .saturating_mul(number)
        .saturating_add(late)
        .max(before)
}

/// The finalizer of the SplitMix64 generator (Steele, Lea, Flood 2014): every bit of the result
/// depends on every bit of the argument.
pub(super) fn scramble(of: u64) -> u64 {
    let mut z = of.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl<O: Observer> Engine<'_, O> {
    fn release_seed(&self, task: usize) -> u64 {
        scramble(self.options.seed ^ scramble(task as u64))
    }

    /// Returns the first instant at which a periodic task is released.
    pub(super) fn first_release(&self, task: usize, period: u64, jitter: u64) -> u64 {
        release_of(self.release_seed(task), 0, 0, period, jitter)
    }

    /// Releases a job of a periodic task.
    pub(super) fn release(&mut self, task: usize) {
        let (now, seed) = (self.now, self.release_seed(task));
        if let Releases::Periodic {
            period,
            jitter,
            last,
            ..
        } = &mut self.tasks[task].releases
        {
            let number = last.0 + 1;
            let next = release_of(seed, number, now, *period, *jitter);
            *last = (number, next);
            self.agenda.set(self.slots.releases + task, next);
        }
        self.tally.tasks[task].released += 1;
        self.tell(SimulationEvent::Released(task));
        if self.tasks[task].job.is_none() {
            self.begin_job(task, now);
        }
    }

    /// Delivers a packet or an event to a task. Returns false if the task's queue is full.
    pub(super) fn deliver(&mut self, task: usize) -> bool {
        let now = self.now;
        let receiver = &mut self.tasks[task];
        let depth = match &mut receiver.releases {
            Releases::Periodic { waiting, .. } => {
                if *waiting >= receiver.room {
                    return false;
                }
                *waiting += 1;
                *waiting
            }
            Releases::Events(_) if receiver.wcet == 0 => {
                self.tally.tasks[task].received += 1;
                return true;
            }
            Releases::Events(events) => {
                if events.len() >= receiver.room {
                    return false;
                }
                events.push_back(now);
                self.tally.tasks[task].released += 1;
                events.len()
            }
        };
        self.tell(SimulationEvent::Depth(Queue::Backlog(task), depth as u64));
        if matches!(self.tasks[task].releases, Releases::Events(_)) {
            self.tell(SimulationEvent::Released(task));
            if self.tasks[task].job.is_none() {
                self.begin_job(task, now);
            }
        }
        true
    }

    fn begin_job(&mut self, task: usize, released: u64) {
        // The release may change the task that interrupts delay, so the elapsed cycles are charged
        // first.
        self.settle();
        let worst = self.tasks[task].wcet;
        let work = self.draw_task(worst);
        let of = &mut self.tasks[task];
        let left = match of.closed_loop {
            Some(window) => {
                let end = released.saturating_add(window).max(self.now);
                self.agenda.set(self.slots.loop_ends + task, end);
                u64::MAX / 2
            }
            None => work.saturating_add(of.switching),
        };
        of.job = Some(Job {
            released,
            left,
            executed: 0,
            started: false,
        });
        of.slice = self.system.cpu.time_slice.unwrap_or(u64::MAX);
        self.ready.push(task, of.urgency);
        self.halves.receiver_waits(task, false);
        self.attention = true;
    }

    /// Ends the job of a closed-loop task whose time is over.
    pub(super) fn end_loop(&mut self, task: usize) {
        self.agenda.set(self.slots.loop_ends + task, NEVER);
        if self.running == ProcessorState::Thread(Work::Task(task)) {
            self.settle();
        }
        self.end_job(task);
    }

    /// Ends the running task's job, or its time slice.
    pub(super) fn finish_task(&mut self, task: usize) {
        let of = &mut self.tasks[task];
        if of.job.as_ref().is_none_or(|job| job.left == 0) {
            self.end_job(task);
            return;
        }
        let urgency = of.urgency;
        of.slice = self.system.cpu.time_slice.unwrap_or(u64::MAX);
        if self.ready.has_equals(urgency) {
            self.ready.rotate(urgency);
        }
        self.leave();
    }

    fn end_job(&mut self, task: usize) {
        let (now, seed) = (self.now, self.release_seed(task));
        let of = &mut self.tasks[task];
        let Some(job) = of.job.take() else {
            return;
        };
        let tally = &mut self.tally.tasks[task];
        let response = now - job.released;
        tally.ended += 1;
        tally.responses.add(response);
        tally.executed.add(job.executed);
        let late = of.deadline.is_some_and(|deadline| response > deadline);
        if late {
            tally.missed += 1;
            tally.lateness += response - of.deadline.unwrap_or(0);
        }
        let urgency = of.urgency;
        let depth;
        let next = match &mut of.releases {
            Releases::Periodic {
                period,
                jitter,
                last,
                first,
                waiting,
            } => {
                tally.received += *waiting as u64;
                depth = (*waiting > 0).then_some(0);
                *waiting = 0;
                let number = first.0 + 1;
                let at = release_of(seed, number, first.1, *period, *jitter);
                *first = (number, at);
                (number < last.0).then_some(at)
            }
            Releases::Events(events) => {
                events.pop_front();
                tally.received += 1;
                depth = Some(events.len() as u64);
                events.front().copied()
            }
        };
        if self.running == ProcessorState::Thread(Work::Task(task)) {
            self.ended(Track::Task(task));
            self.ready.pop(urgency);
        } else {
            // A closed loop can end while an interrupt runs.
            self.ready.remove(task, urgency);
            self.begun = self.begun.filter(|&thread| thread != Work::Task(task));
        }
        if late {
            self.tell(SimulationEvent::Missed(task));
        }
        if let Some(depth) = depth {
            self.tell(SimulationEvent::Depth(Queue::Backlog(task), depth));
        }
        self.attention = true;
        match next {
            Some(released) => self.begin_job(task, released),
            None => self.halves.receiver_waits(task, true),
        }
    }

    /// Returns the most urgent of the ready tasks and bottom halves.
    pub(super) fn choose_thread(&mut self) -> Option<Work> {
        if self.begun.is_some() {
            return self.begun;
        }
        match self.halves.choose(self.urgency_of_tasks()) {
            Some(class) => Some(Work::Half(class)),
            None => self.ready.first().map(Work::Task),
        }
    }

    /// Returns the urgency of the most urgent ready task.
    pub(super) fn urgency_of_tasks(&self) -> Option<u8> {
        self.ready.first().map(|task| self.tasks[task].urgency)
    }

    /// Starts or resumes a task or a bottom half.
    pub(super) fn enter(&mut self, thread: Work) {
        if self.system.cpu.tasks == TaskModel::Cooperative {
            self.begun = Some(thread);
        }
        match thread {
            Work::Task(task) => {
                let of = &mut self.tasks[task];
                let Some(job) = &mut of.job else {
                    return;
                };
                let resumes = std::mem::replace(&mut job.started, true);
                let cycles = job.left.min(of.slice);
                self.runs(
                    ProcessorState::Thread(thread),
                    cycles,
                    Track::Task(task),
                    resumes,
                );
            }
            Work::Half(queue) => self.enter_half(queue),
        }
    }

    /// Charges `cycles` cycles to a task.
    pub(super) fn task_ran(&mut self, task: usize, cycles: u64) {
        let of = &mut self.tasks[task];
        let mut switching = 0;
        if let Some(job) = &mut of.job {
            switching = of.switching.saturating_sub(job.executed).min(cycles);
            job.executed += cycles;
            job.left = job.left.saturating_sub(cycles);
        }
        if of.slice != u64::MAX {
            of.slice = of.slice.saturating_sub(cycles);
        }
        self.tally.tasks[task].ran += cycles;
        self.tally.stages.add(Stage::Switches, switching);
        self.tally.stages.add(Stage::Tasks, cycles - switching);
    }

    /// Counts as missed the unfinished jobs that are past their deadline at the end of the run,
    /// whether or not they have started.
    pub(super) fn close_tasks(&mut self) {
        for task in 0..self.tasks.len() {
            let seed = self.release_seed(task);
            let of = &self.tasks[task];
            let Some(deadline) = of.deadline else {
                continue;
            };
            let is_late = |released: u64| self.now.saturating_sub(released) > deadline;
            let mut missed = 0;
            match &of.releases {
                Releases::Periodic {
                    period,
                    jitter,
                    last,
                    first,
                    ..
                } => {
                    let (mut number, mut at) = *first;
                    while number < last.0 && is_late(at) {
                        missed += 1;
                        number += 1;
                        at = release_of(seed, number, at, *period, *jitter);
                    }
                }
                Releases::Events(events) => {
                    missed += events.iter().filter(|&&at| is_late(at)).count() as u64;
                }
            }
            self.tally.tasks[task].missed += missed;
        }
    }
}
