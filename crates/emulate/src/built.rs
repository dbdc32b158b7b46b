// SPDX-License-Identifier: GPL-3.0-or-later
//! Builds a part of a board with a script of Weir's repository.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why a part is missing.
pub(crate) enum NotBuilt {
    /// Neither the folder nor any folder above it contains the script.
    NoScript,
    /// The script failed.
    Failed { script: PathBuf, what: String },
}

/// Runs a build script and returns the path that it prints. The script's path is relative to the
/// root of the repository. It is searched for in the folder `from` and in the folders above. The
/// script's messages go to stderr.
pub(crate) fn build(from: &Path, script: &str) -> Result<PathBuf, NotBuilt> {
    let script = from
        .ancestors()
        .map(|folder| folder.join(script))
        .find(|script| script.is_file())
        .ok_or(NotBuilt::NoScript)?;
    let failed = |what: String| NotBuilt::Failed {
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
        Some(path) if !path.is_empty() => Ok(path.into()),
        _ => Err(failed("says no path".to_owned())),
    }
}
