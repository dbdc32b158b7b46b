// SPDX-License-Identifier: GPL-3.0-or-later
//! Builds a part of a board by a script of Weir's repository.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why a part is not there.
pub(crate) enum NotBuilt {
    /// Neither the folder nor one above it has the script.
    NoScript,
    /// The script fails.
    Failed { script: PathBuf, what: String },
}

/// Runs the script (its path is relative to the repository's root) of the folder `from`, or of the
/// nearest folder above it that has the script, and returns the path that it prints. What it
/// reports meanwhile goes to stderr.
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
