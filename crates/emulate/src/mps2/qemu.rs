// SPDX-License-Identifier: GPL-3.0-or-later
//! QEMU and its plugin: where they are, and how they are run.
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::built::{NotBuilt, build};

/// QEMU's program, which the PATH resolves.
const PROGRAM: &str = "qemu-system-arm";
/// The oldest version that is known to work.
const LEAST_VERSION: (u32, u32) = (7, 2);
/// The plugin's file.
const PLUGIN: &str = "libweir_peer.so";
/// The environment variable that names the plugin.
const VARIABLE: &str = "WEIR_PEER";
/// The script that builds the plugin and prints its path, relative to the repository's root.
const BUILD: &str = "boards/mps2-an385/build.sh";
/// The time between two looks at whether QEMU has ended.
const LOOK: Duration = Duration::from_millis(2);

/// QEMU with its plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Qemu {
    pub plugin: PathBuf,
}

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
    /// There is no plugin.
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
        /// The way in which the script failed.
        what: String,
    },
    /// QEMU refused the run.
    #[error("{PROGRAM} cannot run the board mps2-an385: {0}")]
    #[diagnostic(help(
        "QEMU 7.2 or newer with plugins is needed, as Debian has from 12 on; a plugin that {VARIABLE} names must be of this version of Weir"
    ))]
    Refused(String),
    /// QEMU was ended.
    #[error("{PROGRAM} was ended from outside, by signal {0}")]
    #[diagnostic(help("run it again"))]
    Ended(i32),
    /// QEMU does not end.
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
        /// The function and the address.
        place: String,
        /// QEMU's message.
        message: String,
    },
    /// The firmware ended before there was something to measure.
    #[error("the firmware ended the run with {code} after {} us, before the measurement began", ns / 1000)]
    #[diagnostic(help("give a shorter --warmup, or a firmware that does not end or reset itself"))]
    Early {
        /// The firmware's exit code.
        code: u32,
        /// When it did.
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

/// How a process of QEMU ended.
pub(super) struct QemuEnd {
    pub status: ExitStatus,
    /// What it said to stderr.
    pub said: String,
}

impl Qemu {
    /// QEMU with the plugin of the usual name, which may not be there.
    pub fn unfound() -> Self {
        Self::with(PLUGIN)
    }

    /// QEMU with this plugin.
    pub fn with(plugin: impl Into<PathBuf>) -> Self {
        Self {
            plugin: plugin.into(),
        }
    }

    /// Finds QEMU, and the plugin: the file that the variable `WEIR_PEER` names, or else the one
    /// beside this program, or in the build folder around it, or else the one that
    /// `boards/mps2-an385/build.sh` makes in the folder `from` or the nearest folder above it.
    ///
    /// # Errors
    /// One of them is missing, too old or cannot be built.
    pub fn find(from: &Path) -> Result<Self, QemuError> {
        check_version()?;
        if let Some(plugin) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            return Ok(Self {
                plugin: plugin.into(),
            });
        }
        let own = std::env::current_exe().ok();
        let folder = own.as_deref().and_then(Path::parent);
        // Cargo keeps in deps what it has built for this program; what is beside it may be older.
        let beside = folder.map(|folder| [folder.join("deps").join(PLUGIN), folder.join(PLUGIN)]);
        if let Some(plugin) = beside.into_iter().flatten().find(|path| path.is_file()) {
            return Ok(Self { plugin });
        }
        let plugin = build(from, BUILD).map_err(|error| match error {
            NotBuilt::NoScript => QemuError::NoPlugin {
                from: from.to_owned(),
            },
            NotBuilt::Failed { script, what } => QemuError::Build { script, what },
        })?;
        Ok(Self { plugin })
    }

    /// The plugin's path.
    pub(super) fn plugin(&self) -> &Path {
        &self.plugin
    }

    /// Runs QEMU with these arguments, for at most `limit` of the host's time. What it says goes to
    /// the file `said`.
    pub(super) fn run(
        &self,
        arguments: &[OsString],
        said: &Path,
        limit: Duration,
    ) -> Result<QemuEnd, QemuError> {
        let of_file = |cause| QemuError::File {
            path: said.to_owned(),
            cause,
        };
        let mut process = Command::new(PROGRAM)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(said).map_err(of_file)?)
            .spawn()
            .map_err(not_started)?;
        let started = Instant::now();
        let status = loop {
            match process.try_wait().map_err(QemuError::Start)? {
                Some(status) => break status,
                None if started.elapsed() > limit => {
                    // It may end by itself in this moment; then there is nothing to kill.
                    let _ = process.kill();
                    let _ = process.wait();
                    return Err(QemuError::Endless(limit));
                }
                None => std::thread::sleep(LOOK),
            }
        };
        let said = std::fs::read(said).map_err(of_file)?;
        Ok(QemuEnd {
            status,
            said: String::from_utf8_lossy(&said).into_owned(),
        })
    }
}

impl QemuEnd {
    /// The signal that ended the process, if one did: also one upon which QEMU ended by itself.
    pub fn signal(&self) -> Option<i32> {
        const TOLD: &str = "terminating on signal ";
        let told = self.said.split(TOLD).nth(1).and_then(|rest| {
            let number = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            number.parse().ok()
        });
        self.status.signal().or(told)
    }
}

fn not_started(error: io::Error) -> QemuError {
    match error.kind() {
        io::ErrorKind::NotFound => QemuError::Missing,
        _ => QemuError::Start(error),
    }
}

/// `QEMU emulator version 7.2.22 (Debian …)` is new enough.
fn check_version() -> Result<(), QemuError> {
    let output = Command::new(PROGRAM)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(not_started)?;
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().next().unwrap_or_default();
    match version(line) {
        Some(version) if version >= LEAST_VERSION => Ok(()),
        _ => Err(QemuError::TooOld(line.to_owned())),
    }
}

fn version(line: &str) -> Option<(u32, u32)> {
    let mut numbers = line.split("version ").nth(1)?.split('.');
    let minor = numbers.nth(1)?;
    let minor = minor
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()?;
    let major = line.split("version ").nth(1)?.split('.').next()?;
    Some((major.parse().ok()?, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        for (line, wanted) in [
            (
                "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)",
                Some((7, 2)),
            ),
            ("QEMU emulator version 10.0", Some((10, 0))),
            ("QEMU emulator version 6.1rc1", Some((6, 1))),
            ("QEMU emulator", None),
            ("QEMU emulator version", None),
            ("", None),
        ] {
            assert_eq!(version(line), wanted, "{line}");
        }
    }
}
