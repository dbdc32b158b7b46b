// SPDX-License-Identifier: MIT OR Apache-2.0
//! SimSo in an environment of its own.
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simso");

/// A task that is released at 0 and every period from there; a higher priority is more urgent.
#[derive(Debug, Clone, Copy)]
pub struct SimSoTask {
    pub period: u64,
    pub wcet: u64,
    pub priority: u64,
}

/// What SimSo says.
pub struct SimSo {
    /// Of each task the responses of its jobs, in cycles.
    pub responses: Vec<Vec<u64>>,
    /// Seconds of processor time for the simulation alone.
    #[allow(dead_code, reason = "the benchmark reads it, the test does not")]
    pub seconds: f64,
}

fn run(command: &mut Command, advice: &str) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; {advice}"));
    assert!(
        output.status.success(),
        "{command:?} failed; {advice}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The interpreter of an environment that holds what requirements.txt says.
fn python() -> PathBuf {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("simso");
    let interpreter = environment.join("bin/python");
    let requirements = Path::new(HERE).join("requirements.txt");
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
    // Its numpy serves only generators of task sets, which nobody asks for here.
    run(
        Command::new(&interpreter)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ])
            .args(["--no-deps", "--require-hashes", "--requirement"])
            .arg(&requirements),
        "the first run needs the Python package index",
    );
    std::fs::write(&installed, wanted).expect("the environment can be written to");
    interpreter
}

/// SimSo's run of a task set; times in cycles.
pub fn simso(tasks: &[SimSoTask], duration: u64) -> SimSo {
    let tasks: Vec<Value> = tasks
        .iter()
        .map(|task| {
            json!({
                "period": task.period,
                "wcet": task.wcet,
                "deadline": task.period,
                "priority": task.priority,
            })
        })
        .collect();
    let asked = json!({ "tasks": tasks, "duration": duration });
    let mut child = Command::new(python())
        .arg(Path::new(HERE).join("run.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the environment's interpreter runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin
        .write_all(asked.to_string().as_bytes())
        .expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "run.py failed");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("run.py writes an object");
    SimSo {
        responses: serde_json::from_value(answer["responses"].clone())
            .expect("responses in cycles"),
        seconds: answer["seconds"].as_f64().expect("seconds"),
    }
}
