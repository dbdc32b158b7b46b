// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other authors' Python packages, in an environment of their own below target/. The first run installs them; `scripts/bootstrap host` brings what that needs.
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &mut Command, advice: &str) {
    let ran = command.output();
    let output = ran.unwrap_or_else(|error| panic!("{command:?}: {error}; {advice}"));
    assert!(
        output.status.success(),
        "{command:?} failed; {advice}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The interpreter of the environment `name`, which holds what requirements.txt in `folder` says and nothing else: it names every package that is needed.
pub fn interpreter(name: &str, folder: &Path) -> PathBuf {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let interpreter = environment.join("bin/python");
    let requirements = folder.join("requirements.txt");
    let installed = environment.join("requirements.txt");
    let wanted = std::fs::read(&requirements).expect("the requirements are beside this file");
    if std::fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return interpreter;
    }
    run(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
        "scripts/bootstrap host installs what it needs (Debian: python3-venv)",
    );
    run(
        Command::new(&interpreter)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
            ])
            .args(["--require-hashes", "--requirement"])
            .arg(&requirements),
        "the first run needs the Python package index",
    );
    std::fs::write(&installed, wanted).expect("the environment can be written to");
    interpreter
}
