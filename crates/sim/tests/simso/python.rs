// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs SimSo in a Python environment of its own.
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[path = "../../../analysis/tests/python/mod.rs"]
mod environment;

use environment::interpreter;

// The benchmarks of papers/bench also compile this file.
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/tests/simso");

/// A task that is released at 0 and then once per period. A higher priority is more urgent.
#[derive(Debug, Clone, Copy)]
pub struct SimSoTask {
    pub period: u64,
    pub wcet: u64,
    pub priority: u64,
}

/// The result of a SimSo run.
pub struct SimSo {
    /// The response times of each task's jobs, in cycles.
    pub responses: Vec<Vec<u64>>,
    /// The seconds of processor time that the simulation took, without setup.
    #[allow(dead_code, reason = "the benchmark reads it, the test does not")]
    pub seconds: f64,
}

/// Runs a task set in SimSo. Times are in cycles.
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
    let mut child = Command::new(interpreter("simso"))
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
