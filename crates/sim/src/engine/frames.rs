// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts in progress, from entry to return.

use weir_model::Nesting;

use crate::observer::{Observer, SimulationEvent, Track};
use crate::tally::Stage;

use super::lines::Service;
use super::{Engine, ProcessorState};

/// An interrupt with its rank in the interrupt controller.
#[derive(Debug, Clone, Copy)]
pub(super) struct RankedInterrupt {
    /// The interrupt's track on the timeline.
    pub track: Track,
    /// The preemption group. If interrupts nest, higher groups preempt lower ones.
    pub group: u32,
}

/// The rank of the clock tick, above all other interrupts.
pub(super) const TICK_RANK: usize = 0;

/// An interrupt in progress.
#[derive(Debug)]
pub(super) struct Frame {
    pub rank: usize,
    pub track: Track,
    /// Cycles until the current part of the interrupt ends.
    pub left: u64,
    /// The source's work in the current part of the interrupt.
    pub service: Service,
    /// The index of the next source to clear. Only the interrupt of a shared timer uses it.
    pub next: usize,
}

impl<O: Observer> Engine<'_, O> {
    /// Returns whether the interrupt with this rank may preempt the running work.
    pub(super) fn may_preempt(&self, rank: usize) -> bool {
        match self.frames.last() {
            None => true,
            Some(frame) => {
                self.system.cpu.nesting == Nesting::Grouped
                    && self.interrupts[rank].group > self.interrupts[frame.rank].group
            }
        }
    }

    /// Starts the interrupt with this rank.
    pub(super) fn take(&mut self, rank: usize) {
        self.asking.remove(rank);
        self.tally.interrupts += 1;
        let track = self.interrupts[rank].track;
        let mut service = match track {
            Track::Request(source) => self.take_request(source),
            Track::Expiry(source) => self.take_expiry(source),
            Track::Timer(timer) => {
                self.tally.timers[timer] += 1;
                Service::limiting(self.draw_interrupt(self.system.timers[timer].base))
            }
            Track::Tick => Service::tick(self.options.tick.map_or(0, |tick| tick.cost)),
            Track::BottomHalf(_) | Track::Orphan(_) | Track::Task(_) => Service::limiting(0),
        };
        // Each interrupt takes at least one cycle. Otherwise an interrupt could be taken without
        // end at one instant.
        if service.cycles() == 0 {
            service.limit = 1;
        }
        let frame = Frame {
            rank,
            track,
            left: service.cycles(),
            service,
            next: 0,
        };
        let cycles = frame.left;
        self.frames.push(frame);
        self.runs(ProcessorState::Interrupt, cycles, track, false);
    }

    /// Resumes the topmost interrupt after a nested one has ended.
    pub(super) fn resume_frame(&mut self) {
        if let Some(frame) = self.frames.last() {
            let (cycles, track) = (frame.left, frame.track);
            self.runs(ProcessorState::Interrupt, cycles, track, true);
        }
    }

    /// Ends the current part of the running interrupt.
    pub(super) fn finish_frame(&mut self) {
        let Some(mut frame) = self.frames.pop() else {
            return;
        };
        self.account_service(&frame.service, frame.service.cycles());
        self.complete(&frame);
        let cleared = match frame.track {
            Track::Timer(timer) => self.clears[timer].get(frame.next).copied(),
            _ => None,
        };
        if let Some(source) = cleared {
            frame.next += 1;
            frame.service = self.clear(source);
            frame.left = frame.service.cycles();
            self.ends_at = self.now + frame.left;
            self.frames.push(frame);
            return;
        }
        self.ended(frame.track);
    }

    /// Charges `cycles` of a service to stages: the limiter first, then the handler, then the
    /// demultiplexing.
    pub(super) fn account_service(&mut self, service: &Service, cycles: u64) {
        let mut left = cycles;
        for (stage, part) in [
            (Stage::Tick, service.tick),
            (Stage::Limit, service.limit),
            (Stage::Handlers, service.handler),
            (Stage::Demux, service.demux),
        ] {
            let part = part.min(left);
            self.tally.stages.add(stage, part);
            left -= part;
        }
    }

    /// Charges the work of unfinished interrupts at the end of the run.
    pub(super) fn close_frames(&mut self) {
        for frame in std::mem::take(&mut self.frames) {
            let done = frame.service.cycles() - frame.left;
            self.account_service(&frame.service, done);
        }
    }

    /// Completes the part of an interrupt that served a source.
    fn complete(&mut self, frame: &Frame) {
        let service = &frame.service;
        if service.serves {
            let source = service.source;
            self.tally.sources[source].served += 1;
            let tally = &mut self.tally.sources[source];
            if let Some(asked) = service.asked {
                tally.responses.add(self.now - asked);
            }
            let deadline = self.system.sources[source].deadline;
            if deadline.is_some_and(|deadline| self.now - service.admitted > deadline) {
                tally.missed += 1;
            }
            if self.lines[source].device.is_some() {
                self.hand_over(source, service.packets);
            }
        }
        if frame.track == Track::Tick {
            self.account_tick();
        }
    }

    pub(super) fn masked(&mut self, source: usize, masked: bool) {
        if masked {
            self.tally.sources[source].masked += 1;
            self.tell(SimulationEvent::Masked(source));
        } else {
            self.tell(SimulationEvent::Unmasked(source));
        }
    }
}
