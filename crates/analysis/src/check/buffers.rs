// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes how many packets of a flow may wait at once, and the room for them (docs/analysis.md,
//! "Flows" and "On FreeRTOS").
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
    /// The most packets that may be at once in the queue of the flow with this index, including
    /// packets of other flows in the same queue. `None` if there is no bound.
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

    /// The room in the queue of `flow`, in packets; `None` if the file does not state it.
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

    /// Whether the frames of both flows wait in the buffers of the same receiver.
    fn shares(&self, flow: &Flow, other: &Flow) -> bool {
        other.receiver == flow.receiver
            && self.system.frame_buffers(other) == Some(FrameBuffers::OfReceiver)
    }

    /// Whether frames of `other` can take buffers from `flow`. They can if no port assigns them to
    /// a receiver and both flows have receivers of the same urgency.
    fn is_lane_beside(&self, flow: &Flow, other: &Flow) -> bool {
        let urgency = |of: &Flow| self.system.receivers.get(of.receiver).map(|of| of.urgency);
        self.system.frame_buffers(other) == Some(FrameBuffers::OfUrgency)
            && urgency(other) == urgency(flow)
    }

    /// The cycles for which a frame stays in its receiver's buffer, counted from the release of its
    /// bottom half; `None` if there is no bound. A receiver with a period takes all waiting frames
    /// in each job.
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

    /// The most packets of a flow that come in `cycles` cycles; `None` if there is no bound.
    fn packets(&self, index: usize, cycles: u64) -> Option<u64> {
        Some(self.units.packets(index)?.events(cycles))
    }

    /// The response time of a unit in cycles, 0 if there is no such unit; `None` if there is no
    /// bound.
    fn response(&self, part: Part) -> Option<u64> {
        let Some(row) = self.analysis.row(part) else {
            return Some(0);
        };
        let solution = row.outcome.as_ref().ok()?;
        Some(solution.response)
    }
}
