// SPDX-License-Identifier: GPL-3.0-or-later
//! Runs firmware on a board.
pub use crate::emulation::{FrontController, HardwareLimit, RunSpec, Target};
pub use crate::error::RunError;
pub use crate::result::{BoardEvent, EventKind, LineUse, RunResult, VectorUse};
pub use crate::stimulus::{Frames, LineStimulus, Stimulus};

mod check;

/// Checks what can be checked before the target's programs exist: the specification, and the
/// firmware if another program runs it.
///
/// # Errors
/// Fails as [`run`] does, except for faults that occur during the run.
pub fn check(spec: &RunSpec) -> Result<(), RunError> {
    check::check(spec)?;
    spec.target.board().emulation().check(spec)
}

/// Runs the firmware. The result is deterministic. Several runs may be done in parallel.
///
/// # Errors
/// Fails if the firmware cannot be loaded, crashes or lacks a symbol, or if the specification is
/// impossible.
pub fn run(spec: &RunSpec) -> Result<RunResult, RunError> {
    run_with(spec, &mut |_| {})
}

/// Runs the firmware, and periodically calls `progress` with the number of cycles done, including
/// the warm-up. The boards soc and mps2-an385 report no progress before the end.
///
/// # Errors
/// Fails as [`run`] does.
pub fn run_with(spec: &RunSpec, progress: &mut dyn FnMut(u64)) -> Result<RunResult, RunError> {
    check::check(spec)?;
    spec.target.run(spec, progress)
}
