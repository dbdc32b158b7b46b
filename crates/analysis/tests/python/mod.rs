// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other authors' Python packages, each in an environment of its own (requirements.lock).
//! `scripts/bootstrap.sh host` brings what that needs.
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter of the environment `name`, which holds what its section of requirements.lock
/// says and nothing else.
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
