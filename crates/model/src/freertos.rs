// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a system file says of FreeRTOS, and the work that follows from it for the analysis.
mod work;

use crate::system::{Cost, Flow, System};

/// The FreeRTOS that receivers run on, and what becomes of frames that are for none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freertos {
    /// `configMAX_PRIORITIES`: the urgencies of all receivers and lanes are below it.
    pub priorities: u32,
    /// `configTICK_RATE_HZ`, at least 1.
    pub tick_hz: u64,
    /// Cycles of a tick, rounded down, at least 1.
    pub tick_cycles: u64,
    /// Bytes of each worker's stack, in whole words of 4 bytes.
    pub stack_bytes: u32,
    /// Frames without a port.
    pub common: FrameLane,
    /// Frames for ports that nobody has; none: they are dropped.
    pub orphans: Option<FrameLane>,
    /// Fragments; none: they are dropped.
    pub fragments: Option<FrameLane>,
    /// Receivers with a budget, in the file's order.
    pub budgets: Vec<FrameBudget>,
}

impl Freertos {
    /// The lanes of the file, by their keys.
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

/// Where frames without a receiver wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLane {
    /// How urgent the task is that hands them to the stack.
    pub urgency: u8,
    /// How many can be in the system at once, at least 1.
    pub queue: u16,
    /// What handing one of them to the stack costs. Where the file states nothing, all deadlines
    /// are more urgent than the lane.
    pub bottom_half: Cost,
}

/// The most frames that a receiver gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameBudget {
    /// Index in [`crate::System::receivers`].
    pub receiver: usize,
    /// Frames in a tick, at least 1.
    pub per_tick: u32,
}

/// Units of work of a frame of 1,514 bytes in ports/freertos (`WEIR_FREERTOS_UNIT`): what an
/// interrupt copies counts.
pub const FRAME_UNITS: u64 = 23;

/// What a budget lets through, in cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickBudget {
    /// Frames, at least 1.
    pub frames: u64,
    /// Cycles of a tick, at each of which it begins anew, at least 1.
    pub tick: u64,
}

/// Whose buffers a frame is in on FreeRTOS, until the stack or its receiver has done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameBuffers {
    /// Those of its receiver, for all its flows together.
    OfReceiver,
    /// Any of its urgency: it is for nobody by its port.
    OfUrgency,
}

impl System {
    /// Whose buffers the packets of `flow` are in; none: they are in none of FreeRTOS's.
    #[must_use]
    pub fn frame_buffers(&self, flow: &Flow) -> Option<FrameBuffers> {
        self.freertos.as_ref()?;
        let is_frame = self.card() == Some(flow.source);
        is_frame.then_some(match flow.selector.port {
            Some(_) => FrameBuffers::OfReceiver,
            None => FrameBuffers::OfUrgency,
        })
    }

    /// The budget that the frames of `flow` share with those of its receiver's other flows; none:
    /// as many as come are handed on. A frame is its receiver's by its port.
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
