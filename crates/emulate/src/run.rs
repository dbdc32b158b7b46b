// SPDX-License-Identifier: GPL-3.0-or-later
//! One run of one firmware on one board.
pub use crate::emulation::{FrontController, HardwareLimit, RunSpec, Target};
pub use crate::error::RunError;
pub use crate::result::{BoardEvent, EventKind, LineUse, RunResult, VectorUse};
pub use crate::stimulus::{Frames, LineStimulus, Stimulus};

mod check;

/// Checks what can be checked before the programs of the target are there: the specification, and
/// the firmware of a target that is another program.
///
/// # Errors
/// The same as those of [`run`], apart from what the firmware does.
pub fn check(spec: &RunSpec) -> Result<(), RunError> {
    check::check(spec)?;
    spec.target.board().emulation().check(spec)
}

/// Runs one firmware. The result is deterministic; several runs may be in parallel.
///
/// # Errors
/// A firmware that cannot be loaded or that crashes, a missing symbol, an impossible specification.
pub fn run(spec: &RunSpec) -> Result<RunResult, RunError> {
    run_with(spec, &mut |_| {})
}

/// Runs one firmware, and now and then tells `progress` how many cycles, with those of the warm-up,
/// are done. The boards soc and mps2-an385 report no progress before its end.
///
/// # Errors
/// The same as those of [`run`].
pub fn run_with(spec: &RunSpec, progress: &mut dyn FnMut(u64)) -> Result<RunResult, RunError> {
    check::check(spec)?;
    spec.target.run(spec, progress)
}
