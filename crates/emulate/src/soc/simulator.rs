// SPDX-License-Identifier: GPL-3.0-or-later
//! The program that simulates the board: its path, its build and its interface.
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::answer::SimulatorResult;
use crate::built::{NotBuilt, build};

/// The environment variable that names the program, in place of building it.
const VARIABLE: &str = "WEIR_SOC";
/// The script that builds the program and prints its path, relative to the repository's root.
const BUILD: &str = "boards/soc/build.sh";

/// The program that simulates the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Simulator {
    pub program: PathBuf,
}

/// Why the board cannot be simulated.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum SimulatorError {
    /// The sources of the simulator are missing.
    #[error("cannot find the simulator of the board soc: neither {} nor a folder above it has {BUILD}", from.display())]
    #[diagnostic(help(
        "change into a clone of Weir's repository, which can build it, or name the program: {VARIABLE}=PATH"
    ))]
    NoSource {
        /// The folder in which the search began.
        from: PathBuf,
    },
    /// The simulator cannot be built.
    #[error("the simulator of the board soc cannot be built: {} {what}", script.display())]
    #[diagnostic(help(
        "the build's own message is above; `scripts/bootstrap.sh` installs the system packages that the build needs"
    ))]
    Build {
        /// The build script.
        script: PathBuf,
        /// The way in which the script failed.
        what: String,
    },
    /// The simulator cannot be started.
    #[error("cannot start the simulator {}: {cause}", program.display())]
    #[diagnostic(help("remove build/soc to build the simulator anew, or correct {VARIABLE}"))]
    Start {
        /// The path of the program.
        program: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The simulator stopped the run.
    #[error("the board soc stopped: {message}")]
    #[diagnostic(help(
        "look at what the firmware does there: a trap without a handler, a wild jump or pointer"
    ))]
    Stopped {
        /// The simulator's message.
        message: String,
    },
    /// The simulator's answer cannot be parsed.
    #[error("the answer of the simulator {} cannot be read: {cause}", program.display())]
    #[diagnostic(help("the simulator is of another version: remove build/soc to build a new one"))]
    Answer {
        /// The path of the program.
        program: PathBuf,
        /// The error in the answer.
        cause: serde_json::Error,
    },
    /// The simulator's input cannot be written.
    #[error("cannot write the simulator's input: {0}")]
    Workspace(io::Error),
}

impl Simulator {
    /// The simulator at this path.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
        }
    }

    /// The program that the variable `WEIR_SOC` names, or else the one that `boards/soc/build.sh`
    /// makes, in the folder `from` or the nearest folder above it that has this script. The first
    /// build takes minutes, and reports its progress on stderr.
    ///
    /// # Errors
    /// The script is missing, or fails, for example because a tool is missing.
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
