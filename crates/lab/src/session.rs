// SPDX-License-Identifier: GPL-3.0-or-later
//! Carries out a [`RunSpec`].
use crate::run::{RunError, RunResult, RunSpec};

pub(crate) fn run(spec: &RunSpec, _progress: &mut dyn FnMut(u64)) -> Result<RunResult, RunError> {
    Err(RunError::Spec(format!(
        "{}: this build has no board yet",
        spec.elf.display()
    )))
}
