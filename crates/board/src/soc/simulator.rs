// SPDX-License-Identifier: GPL-3.0-or-later
//! The program that simulates the board: where it is, how it is made, how it is asked.
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::answer::SimulatorResult;

/// Names the program, where it is not to be built.
const VARIABLE: &str = "WEIR_SOC";
/// The script that builds it and prints its path, from the repository's root.
const BUILD: &str = "boards/soc/build";

/// The program that simulates the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulator {
    program: PathBuf,
}

/// Why the board cannot be simulated.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum SimulatorError {
    /// There is nothing to build it from.
    #[error("the simulator of the board soc is not here: neither {} nor a folder above it has {BUILD}", from.display())]
    #[diagnostic(help(
        "change into a clone of Weir's repository, which builds it, or name the program: {VARIABLE}=PATH"
    ))]
    NoSource {
        /// Where the search began.
        from: PathBuf,
    },
    /// It could not be built.
    #[error("the simulator of the board soc cannot be built: {} {what}", script.display())]
    #[diagnostic(help(
        "its own message is above; `scripts/bootstrap` installs the system's packages that it needs"
    ))]
    Build {
        /// What was started.
        script: PathBuf,
        /// What became of it.
        what: String,
    },
    /// It cannot be started.
    #[error("cannot start the simulator {}: {cause}", program.display())]
    #[diagnostic(help("remove build/soc, so that it is built anew, or correct {VARIABLE}"))]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// It gave up.
    #[error("the board soc stopped: {message}")]
    #[diagnostic(help(
        "look at what the firmware does there: a trap without a handler, a wild jump or pointer"
    ))]
    Stopped {
        /// What it says.
        message: String,
    },
    /// Its answer is not to be understood.
    #[error("the answer of the simulator {} cannot be read: {cause}", program.display())]
    #[diagnostic(help("it is of another version: remove build/soc, so that it is built anew"))]
    Answer {
        /// The program.
        program: PathBuf,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// What it is to read cannot be written.
    #[error("cannot write what the simulator reads: {0}")]
    Workspace(io::Error),
}

impl Simulator {
    /// This program.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
        }
    }

    /// The program that the variable `WEIR_SOC` names, or else what `boards/soc/build` makes, in
    /// the folder `from` or the nearest above it that has that script. A first build takes minutes,
    /// and tells its progress on stderr.
    ///
    /// # Errors
    /// There is no such script; it fails, for example because a tool is missing.
    pub fn find(from: &Path) -> Result<Self, SimulatorError> {
        if let Some(program) = std::env::var_os(VARIABLE).filter(|program| !program.is_empty()) {
            return Ok(Self::at(program));
        }
        let script = from
            .ancestors()
            .map(|folder| folder.join(BUILD))
            .find(|script| script.is_file())
            .ok_or_else(|| SimulatorError::NoSource {
                from: from.to_owned(),
            })?;
        let failed = |what: String| SimulatorError::Build {
            script: script.clone(),
            what,
        };
        let built = Command::new(&script)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| failed(format!("does not start: {error}")))?;
        if !built.status.success() {
            return Err(failed(format!("ended with {}", built.status)));
        }
        let said = String::from_utf8_lossy(&built.stdout);
        match said.trim_end().rsplit('\n').next() {
            Some(path) if !path.is_empty() => Ok(Self::at(path)),
            _ => Err(failed("says no path".to_owned())),
        }
    }

    /// Lets it run with these arguments.
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
