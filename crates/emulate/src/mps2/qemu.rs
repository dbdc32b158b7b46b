// SPDX-License-Identifier: GPL-3.0-or-later
//! Finds and runs QEMU and its plugin.
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::error::{BUILD, PLUGIN, PROGRAM, QemuError, VARIABLE};
use crate::built::{NotBuilt, build};

/// The oldest supported version of QEMU.
const LEAST_VERSION: (u32, u32) = (7, 2);
/// The interval at which the program checks whether QEMU has ended.
const LOOK: Duration = Duration::from_millis(2);

/// QEMU with its plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Qemu {
    pub plugin: PathBuf,
}

/// How a process of QEMU ended.
pub(super) struct QemuEnd {
    pub status: ExitStatus,
    /// The text that QEMU wrote to stderr.
    pub said: String,
}

impl Qemu {
    /// Makes a QEMU with the usual path of the plugin, which may not exist.
    pub fn unfound() -> Self {
        Self::with(PLUGIN)
    }

    /// Makes a QEMU with this plugin.
    pub fn with(plugin: impl Into<PathBuf>) -> Self {
        Self {
            plugin: plugin.into(),
        }
    }

    /// Finds QEMU and its plugin. The plugin is searched for in this order: the path in the
    /// variable `WEIR_PEER`; the folder of this program; the build folder around it; the output of
    /// `boards/mps2-an385/build.sh` in the folder `from` or the nearest folder above it.
    ///
    /// # Errors
    /// Fails if QEMU or the plugin is missing, too old or cannot be built.
    pub fn find(from: &Path) -> Result<Self, QemuError> {
        check_version()?;
        if let Some(plugin) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            return Ok(Self {
                plugin: plugin.into(),
            });
        }
        let own = std::env::current_exe().ok();
        let folder = own.as_deref().and_then(Path::parent);
        // Cargo keeps what it has built for this program in the folder deps. A file beside this
        // program may be older.
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

    /// Returns the path of the plugin.
    pub(super) fn plugin(&self) -> &Path {
        &self.plugin
    }

    /// Runs QEMU with these arguments, for at most `limit` of the host's time. QEMU's messages go
    /// to the file `said`.
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
                    // QEMU may end by itself at this moment. Then there is nothing to kill.
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
    /// Returns the signal that ended the process, or upon which QEMU ended by itself. `None` if
    /// there was none.
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

/// Checks a version line such as `QEMU emulator version 7.2.22 (Debian …)`.
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
