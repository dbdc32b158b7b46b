// SPDX-License-Identifier: MIT OR Apache-2.0
//! Environments for other authors' Python packages (requirements.lock). `scripts/bootstrap.sh host`
//! installs what they need.
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter of the environment `name`, which contains only the packages of its section of
/// requirements.lock.
pub fn interpreter(name: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/python-env.sh");
    let made = Command::new(&script)
        .arg(name)
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let folder = String::from_utf8(made.stdout).expect("a path");
    Path::new(folder.trim_end()).join("bin/python")
}
