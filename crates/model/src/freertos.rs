// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings of a system file for FreeRTOS, and the work that follows from them for the
//! analysis.
mod work;

use crate::system::{Cost, Flow, System};

/// The FreeRTOS on which receivers run, and its treatment of frames that are for none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freertos {
    /// `configMAX_PRIORITIES`: the urgencies of all receivers and lanes are below it.
    pub priorities: u32,
    /// `configTICK_RATE_HZ`, at least 1.
    pub tick_hz: u64,
    /// The cycles of a tick, rounded down, at least 1.
    pub tick_cycles: u64,
    /// The bytes of each worker's stack, in whole words of 4 bytes.
    pub stack_bytes: u32,
    /// The lane of frames that have no port.
    pub common: FrameLane,
    /// The lane of frames for ports that no receiver has; `None` if such frames are dropped.
    pub orphans: Option<FrameLane>,
    /// The lane of fragments; `None` if they are dropped.
    pub fragments: Option<FrameLane>,
    /// The budgets of receivers, in the file's order.
    pub budgets: Vec<FrameBudget>,
}

impl Freertos {
    /// The lanes of the file, each with its key.
    pub fn lanes(&self) -> impl Iterator<Item = (&'static str, FrameLane)> {
        let lanes = [
            ("common", Some(self.common)),
            ("orphans", self.orphans),
            ("fragments", self.fragments),
        ];
        lanes
            .into_iter()
            .filter_map(|(key, lane)| Some((key, lane?)))
    }
}

/// The lane in which frames without a receiver wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLane {
    /// The urgency of the task that hands the lane's frames to the stack.
    pub urgency: u8,
    /// The number of the lane's frames that can be in the system at once, at least 1.
    pub queue: u16,
    /// The cost of handing one frame to the stack. If the file states none, all deadlines are more
    /// urgent than the lane.
    pub bottom_half: Cost,
}

/// The bound on the frames that a receiver gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameBudget {
    /// Index in [`crate::System::receivers`].
    pub receiver: usize,
    /// The frames that the receiver gets per tick, at least 1.
    pub per_tick: u32,
}

/// The units of work that a frame of 1,514 bytes takes in ports/freertos (`WEIR_FREERTOS_UNIT`).
/// The bytes that an interrupt copies count as work.
pub const FRAME_UNITS: u64 = 23;

/// The frames that a budget lets through per tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickBudget {
    /// The number of frames, at least 1.
    pub frames: u64,
    /// The cycles of a tick, at least 1. The budget is refilled at each tick.
    pub tick: u64,
}

/// The buffers that hold a frame on FreeRTOS until the stack or the receiver has finished with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameBuffers {
    /// The buffers of the frame's receiver, which serve all its flows together.
    OfReceiver,
    /// Any buffer of the frame's urgency, because no port assigns the frame to a receiver.
    OfUrgency,
}

impl System {
    /// The buffers that hold the packets of `flow`; `None` if no buffer of FreeRTOS does.
    #[must_use]
    pub fn frame_buffers(&self, flow: &Flow) -> Option<FrameBuffers> {
        self.freertos.as_ref()?;
        let is_frame = self.card() == Some(flow.source);
        is_frame.then_some(match flow.selector.port {
            Some(_) => FrameBuffers::OfReceiver,
            None => FrameBuffers::OfUrgency,
        })
    }

    /// The budget that the frames of `flow` share with those of its receiver's other flows; `None`
    /// if all frames are delivered. The port of a frame decides its receiver.
    #[must_use]
    pub fn tick_budget(&self, flow: &Flow) -> Option<TickBudget> {
        let freertos = self.freertos.as_ref()?;
        flow.selector.port?;
        let mut budgets = freertos.budgets.iter();
        let of = budgets.find(|budget| budget.receiver == flow.receiver)?;
        Some(TickBudget {
            frames: u64::from(of.per_tick),
            tick: freertos.tick_cycles,
        })
    }
}
