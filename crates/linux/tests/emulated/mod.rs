// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a guest (boards/linux) for tests that cannot run on this machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::skipped::skipped;

/// Whether tests may run a guest, which takes minutes. If not, the test is reported as skipped.
pub fn is_wanted() -> bool {
    let is_wanted = env::var_os("WEIR_GUEST").is_some();
    if !is_wanted {
        skipped("it takes a guest and minutes; make test-guest runs it, by WEIR_GUEST=1");
    }
    is_wanted
}

/// A guest with a certain kernel.
pub struct Guest {
    /// The folder that boards/linux/build.sh has printed.
    pub folder: PathBuf,
}

/// The result of a job.
pub struct Ended {
    /// What the job printed.
    pub printed: String,
    /// The packets that the card accepted and lost, by flood, as JSON.
    pub sent: Vec<u8>,
}

/// Path of a program of boards/linux.
pub fn program(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("boards/linux").join(name)
}

/// Runs a command, and returns what it prints. Panics if it fails.
pub fn output(command: &mut Command) -> String {
    let ran = command.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    String::from_utf8(ran.stdout).unwrap()
}

impl Guest {
    pub fn new(kernel: &str) -> Self {
        let folder = output(Command::new(program("build.sh")).arg(kernel));
        Self {
            folder: folder.trim().into(),
        }
    }

    /// Runs `job` with these floods and this number of CPUs.
    pub fn run(&self, job: &str, floods: &[u8], cpus: u32) -> Ended {
        let place: TempDir = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("job"), job).unwrap();
        fs::write(path("floods"), floods).unwrap();
        let mut run = Command::new(program("run.sh"));
        run.arg(&self.folder)
            .args([path("job"), path("floods"), path("out")])
            .arg(cpus.to_string());
        let printed = output(&mut run);
        println!("{printed}");
        let sent = fs::read(path("out/sent")).unwrap();
        Ended { printed, sent }
    }
}
