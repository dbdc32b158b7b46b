// SPDX-License-Identifier: GPL-3.0-or-later
//! Why the board soc cannot be simulated.
use std::io;
use std::path::PathBuf;

/// The environment variable with the path of the program. If it is set, the program is not built.
pub(super) const VARIABLE: &str = "WEIR_SOC";
/// The script that builds the program and prints its path, relative to the repository's root.
pub(super) const BUILD: &str = "boards/soc/build.sh";

/// Why the board cannot be simulated.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum SimulatorError {
    /// The sources of the simulator were not found.
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
        /// How the script failed.
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
