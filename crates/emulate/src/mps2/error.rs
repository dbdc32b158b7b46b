// SPDX-License-Identifier: GPL-3.0-or-later
//! Why the board mps2-an385 cannot be emulated.
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The name of QEMU's program, which is searched for in the PATH.
pub(super) const PROGRAM: &str = "qemu-system-arm";
/// The plugin's file.
pub(super) const PLUGIN: &str = "libweir_peer.so";
/// The environment variable that names the plugin.
pub(super) const VARIABLE: &str = "WEIR_PEER";
/// The script that builds the plugin and prints its path, relative to the repository's root.
pub(super) const BUILD: &str = "boards/mps2-an385/build.sh";

/// Why the board cannot be emulated.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum QemuError {
    /// QEMU is not installed.
    #[error("{PROGRAM} is not installed")]
    #[diagnostic(help("run `scripts/bootstrap.sh arm`, or: apt-get install {PROGRAM}"))]
    Missing,
    /// QEMU does not start.
    #[error("cannot start {PROGRAM}: {0}")]
    #[diagnostic(help("try `{PROGRAM} --version`"))]
    Start(io::Error),
    /// QEMU is too old.
    #[error("{PROGRAM} is too old: `{0}`")]
    #[diagnostic(help(
        "the board mps2-an385 needs QEMU 7.2 or newer with plugins, as Debian has from 12 on"
    ))]
    TooOld(String),
    /// The plugin was not found.
    #[error(
        "the plugin {PLUGIN} of the board mps2-an385 is missing: it is not beside this program, and neither {} nor a folder above it has {BUILD}", from.display()
    )]
    #[diagnostic(help(
        "change into a clone of Weir's repository, which can build it, or name it: {VARIABLE}=PATH"
    ))]
    NoPlugin {
        /// The folder in which the search began.
        from: PathBuf,
    },
    /// The plugin cannot be built.
    #[error("the plugin of the board mps2-an385 cannot be built: {} {what}", script.display())]
    #[diagnostic(help("the build's own message is above"))]
    Build {
        /// The build script.
        script: PathBuf,
        /// How the script failed.
        what: String,
    },
    /// QEMU rejected the run.
    #[error("{PROGRAM} cannot run the board mps2-an385: {0}")]
    #[diagnostic(help(
        "QEMU 7.2 or newer with plugins is needed, as Debian has from 12 on; a plugin that {VARIABLE} names must be of this version of Weir"
    ))]
    Refused(String),
    /// A signal ended QEMU.
    #[error("{PROGRAM} was ended from outside, by signal {0}")]
    #[diagnostic(help("run it again"))]
    Ended(i32),
    /// QEMU did not end in time.
    #[error("{PROGRAM} has not ended after {} s, and was stopped", .0.as_secs())]
    #[diagnostic(help(
        "give a shorter --for, or a slower flood; a guest that sleeps takes longest"
    ))]
    Endless(Duration),
    /// The firmware crashed.
    #[error("the firmware locked up near {place}: {message}")]
    #[diagnostic(help(
        "look at what it does there: a fault within a fault's handler, or without one; a wild jump or pointer"
    ))]
    Lockup {
        /// The function and the address of the fault.
        place: String,
        /// QEMU's message.
        message: String,
    },
    /// The firmware ended the run before the measurement began.
    #[error("the firmware ended the run with {code} after {} us, before the measurement began", ns / 1000)]
    #[diagnostic(help("give a shorter --warmup, or a firmware that does not end or reset itself"))]
    Early {
        /// The firmware's exit code.
        code: u32,
        /// The time of the end in nanoseconds of emulated time.
        ns: u64,
    },
    /// A file of the run cannot be read or written.
    #[error("{}: {cause}", path.display())]
    #[diagnostic(help("is there room in the folder for temporary files (TMPDIR)?"))]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error.
        cause: io::Error,
    },
    /// The plugin's report cannot be parsed.
    #[error("the report of the plugin {} cannot be read: {cause}", plugin.display())]
    #[diagnostic(help("the plugin is of another version of Weir: build both from the same clone"))]
    Report {
        /// The path of the plugin.
        plugin: PathBuf,
        /// The error in the report.
        cause: serde_json::Error,
    },
}
