// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a system file says to `weir generate --rtos freertos`.

/// The FreeRTOS that receivers run on, and what becomes of frames that are for none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freertos {
    /// `configMAX_PRIORITIES`: the urgencies of all receivers and lanes are below it.
    pub priorities: u32,
    /// `configTICK_RATE_HZ`, at least 1.
    pub tick_hz: u64,
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

/// Where frames without a receiver wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLane {
    /// How urgent the task is that hands them to the stack.
    pub urgency: u8,
    /// How many can be in the system at once, at least 1.
    pub queue: u16,
}

/// The most frames that a receiver gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameBudget {
    /// Index in [`crate::System::receivers`].
    pub receiver: usize,
    /// Frames in a tick, at least 1.
    pub per_tick: u32,
}
