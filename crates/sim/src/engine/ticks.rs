// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock tick, and the accounting at the end of a run.

use crate::observer::{Observer, Track};

use super::Engine;
use super::frames::TICK_RANK;

impl<O: Observer> Engine<'_, O> {
    /// Takes the interrupt of the clock tick.
    pub(super) fn tick(&mut self) {
        let Some(tick) = self.options.tick else {
            return;
        };
        self.agenda.set(self.slots.tick, self.now + tick.period);
        if tick.cost == 0 {
            self.account_tick();
        } else {
            self.asking.insert(TICK_RANK);
            self.attention = true;
        }
    }

    /// Charges the tick to the task that runs, or that would run if no interrupt were in progress
    /// (zhang2006 §3.1).
    pub(super) fn account_tick(&mut self) {
        let running = self.ready.first();
        let urgency = self.urgency_of_tasks();
        self.halves.put_off(urgency);
        let adjusted = self.accounting.tick(running);
        match running {
            Some(task) => {
                self.tally.tasks[task].ticks += 1 + adjusted;
                self.give_back(task, adjusted);
            }
            None => self.tally.idle_ticks += 1,
        }
    }

    /// Corrects a task's time slice by `adjusted` ticks: the task gets back the time that work for
    /// others took, or pays for work that was done for it (zhang2006 §3.1: timeslice).
    fn give_back(&mut self, task: usize, adjusted: i64) {
        let (Some(slice), Some(tick)) = (self.system.cpu.time_slice, self.options.tick) else {
            return;
        };
        let of = &mut self.tasks[task];
        let change = tick.period.saturating_mul(adjusted.unsigned_abs());
        of.slice = if adjusted < 0 {
            of.slice.saturating_add(change).min(slice)
        } else {
            of.slice.saturating_sub(change).max(1)
        };
        if self.track() == Some(Track::Task(task)) {
            // The running work is restarted so that it ends with the new slice.
            self.leave();
            self.attention = true;
        }
    }

    /// Completes the tally at the end of the run.
    pub(super) fn close(&mut self) {
        self.close_frames();
        self.close_tasks();
        self.close_packets();
        self.close_lines();
    }
}
