// SPDX-License-Identifier: GPL-3.0-or-later
//! The program that simulates the board: its path, its build and its interface.
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::answer::SimulatorResult;
use super::error::{BUILD, SimulatorError, VARIABLE};
use crate::built::{NotBuilt, build};

/// The program that simulates the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Simulator {
    pub program: PathBuf,
}

impl Simulator {
    /// Makes a simulator with the program at this path.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
        }
    }

    /// Finds the program. The variable `WEIR_SOC` may contain its path. Otherwise
    /// `boards/soc/build.sh` builds it, in the folder `from` or the nearest folder above it that
    /// has this script. The first build takes minutes, and reports its progress on stderr.
    ///
    /// # Errors
    /// Fails if the script is missing or fails, for example because a tool is missing.
    pub fn find(from: &Path) -> Result<Self, SimulatorError> {
        if let Some(program) = std::env::var_os(VARIABLE).filter(|program| !program.is_empty()) {
            return Ok(Self::at(program));
        }
        let program = build(from, BUILD).map_err(|error| match error {
            NotBuilt::NoScript => SimulatorError::NoSource {
                from: from.to_owned(),
            },
            NotBuilt::Failed { script, what } => SimulatorError::Build { script, what },
        })?;
        Ok(Self::at(program))
    }

    /// Runs the program with these arguments and parses its answer.
    pub(super) fn ask(&self, arguments: &[OsString]) -> Result<SimulatorResult, SimulatorError> {
        let output = Command::new(&self.program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|cause| SimulatorError::Start {
                program: self.program.clone(),
                cause,
            })?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            let message = match message.trim() {
                "" => format!("{} ended with {}", self.program.display(), output.status),
                message => message.trim_start_matches("weir-soc: ").to_owned(),
            };
            return Err(SimulatorError::Stopped { message });
        }
        serde_json::from_slice(&output.stdout).map_err(|cause| SimulatorError::Answer {
            program: self.program.clone(),
            cause,
        })
    }
}
