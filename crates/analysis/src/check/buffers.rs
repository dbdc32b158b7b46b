// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many packets of a flow may wait at once, and the room for them (docs/analysis.md, "Flows"
//! and "On FreeRTOS").
use weir_model::{Flow, FrameBuffers, System};

use crate::analysis::Analysis;
use crate::units::{Part, Units};

/// The queues of a system's flows.
pub(super) struct Buffers<'a> {
    pub system: &'a System,
    pub units: &'a Units<'a>,
    pub analysis: &'a Analysis,
}

impl Buffers<'_> {
    /// The most packets that may be in the queue of the flow with this index at once, with those of
    /// others in the same queue; none without bound.
    pub fn needed(&self, index: usize) -> Option<u64> {
        let flow = self.system.flows.get(index)?;
        if self.system.frame_buffers(flow) != Some(FrameBuffers::OfReceiver) {
            return self.packets(index, self.response(Part::BottomHalf(index))?);
        }
        let mut sum: u64 = 0;
        for (other, of) in self.flows().filter(|(_, of)| self.shares(flow, of)) {
            sum = sum.saturating_add(self.packets(other, self.kept(other, of)?)?);
        }
        for (other, of) in (self.flows()).filter(|(_, of)| self.is_lane_beside(flow, of)) {
            let beyond = self.needed(other)?.saturating_sub(of.queue.unwrap_or(0));
            sum = sum.saturating_add(beyond);
        }
        Some(sum)
    }

    /// The room in the queue of `flow`; none if the file does not say.
    pub fn room(&self, flow: &Flow) -> Option<u64> {
        if self.system.frame_buffers(flow) != Some(FrameBuffers::OfReceiver) {
            return flow.queue;
        }
        let mut sum: u64 = 0;
        for (_, of) in self.flows().filter(|(_, of)| self.shares(flow, of)) {
            sum = sum.saturating_add(of.queue?);
        }
        Some(sum)
    }

    fn flows(&self) -> impl Iterator<Item = (usize, &Flow)> {
        self.system.flows.iter().enumerate()
    }

    /// Are the frames of both flows in the same receiver's buffers?
    fn shares(&self, flow: &Flow, other: &Flow) -> bool {
        other.receiver == flow.receiver
            && self.system.frame_buffers(other) == Some(FrameBuffers::OfReceiver)
    }

    /// Can frames of `other`, which are nobody's by a port, take the buffers of `flow`?
    fn is_lane_beside(&self, flow: &Flow, other: &Flow) -> bool {
        let urgency = |of: &Flow| self.system.receivers.get(of.receiver).map(|of| of.urgency);
        self.system.frame_buffers(other) == Some(FrameBuffers::OfUrgency)
            && urgency(other) == urgency(flow)
    }

    /// Cycles for which a frame is in its receiver's buffer, from the release of its bottom half
    /// on; none without bound. A receiver with a period takes all frames that wait, in each job.
    fn kept(&self, index: usize, flow: &Flow) -> Option<u64> {
        let bottom_half = self.response(Part::BottomHalf(index))?;
        let receiver = self.system.receivers.get(flow.receiver)?;
        Some(match receiver.period {
            None => bottom_half.max(self.response(Part::Delivered(index))?),
            Some(period) => bottom_half
                .saturating_add(period)
                .saturating_add(receiver.jitter)
                .saturating_add(self.response(Part::Task(flow.receiver))?),
        })
    }

    /// The most packets of a flow that come in so many cycles; none without bound.
    fn packets(&self, index: usize, cycles: u64) -> Option<u64> {
        Some(self.units.packets(index)?.events(cycles))
    }

    /// The response of a unit, 0 if there is no such unit; none without bound.
    fn response(&self, part: Part) -> Option<u64> {
        let Some(row) = self.analysis.row(part) else {
            return Some(0);
        };
        let solution = row.outcome.as_ref().ok()?;
        Some(solution.response)
    }
}
