// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares `rta::solve` with pyRTA. It shares no code with Weir or with the crate that Weir builds
//! on, and has another author and language; only the theorems (PROSA) are the same. The test uses
//! random sets in which each task is preemptive, is non-preemptive or has non-preemptive sections.
//!
//! Python's packages live in an environment below target/, which the first run installs.
//! `scripts/bootstrap.sh host` installs what that needs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use weir_analysis::curve::{Curve, Staircase};
use weir_analysis::rta::{Demand, NoBound, Problem, solve};

use crate::is_long;
use crate::python::interpreter;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pyrta");

#[derive(Clone, Copy, PartialEq, Eq)]
enum Preemption {
    Full,
    None,
    Floating,
}

/// A task. Lists of tasks begin with the most urgent one.
struct Task {
    cost: u64,
    period: u64,
    jitter: u64,
    preemption: Preemption,
    /// The longest part of the task that cannot be preempted.
    segment: u64,
}

fn task(rng: &mut ChaCha8Rng, tasks: u64) -> Task {
    let period = rng.random_range(5..400);
    let cost = rng.random_range(1..=(3 * period / (2 * tasks)).max(1));
    let preemption = match rng.random_range(0..3) {
        0 => Preemption::Full,
        1 => Preemption::None,
        _ => Preemption::Floating,
    };
    Task {
        cost,
        period,
        jitter: if rng.random_bool(0.5) {
            0
        } else {
            rng.random_range(0..3 * period)
        },
        preemption,
        segment: match preemption {
            Preemption::Full => 1,
            Preemption::None => cost,
            Preemption::Floating => rng.random_range(1..=cost),
        },
    }
}

fn as_json(tasks: &[Task]) -> Value {
    let of = |(index, task): (usize, &Task)| {
        json!({
            "cost": task.cost,
            "period": task.period,
            "jitter": task.jitter,
            "priority": tasks.len() - index,
            "preemption": match task.preemption {
                Preemption::Full => "full",
                Preemption::None => "none",
                Preemption::Floating => "floating",
            },
            "segment": task.segment,
        })
    };
    tasks.iter().enumerate().map(of).collect()
}

fn ours(tasks: &[Task], of: usize) -> Option<u64> {
    let demand = |task: &Task| Demand {
        cost: task.cost,
        curve: Curve::new(Staircase::sporadic(task.period, task.jitter)),
    };
    let urgent: Vec<Demand> = tasks[..of].iter().map(demand).collect();
    let urgent: Vec<&Demand> = urgent.iter().collect();
    let is_atomic = tasks[of].preemption == Preemption::None;
    let problem = Problem {
        own: &demand(&tasks[of]),
        // The blocking part has begun one cycle before.
        blocking: tasks[of + 1..]
            .iter()
            .map(|task| task.segment - 1)
            .max()
            .unwrap_or(0),
        until_start: if is_atomic { &urgent } else { &[] },
        throughout: if is_atomic { &[] } else { &urgent },
    };
    match solve(&problem) {
        Ok(solution) => Some(solution.response),
        Err(NoBound::Overload) => None,
        Err(other) => panic!("{other:?}"),
    }
}

/// Whether these tasks need exactly the whole processor. Weir then gives no bound, even if there is
/// one.
fn is_full(tasks: &[Task]) -> bool {
    let all: u128 = tasks.iter().map(|task| u128::from(task.period)).product();
    let asked = tasks
        .iter()
        .map(|task| all / u128::from(task.period) * u128::from(task.cost));
    asked.sum::<u128>() == all
}

fn theirs(sets: &[Vec<Task>]) -> Vec<Vec<Option<u64>>> {
    let mut child = Command::new(interpreter("pyrta"))
        .arg(Path::new(HERE).join("bounds.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the environment's interpreter runs");
    let all: Vec<Value> = sets.iter().map(|tasks| as_json(tasks)).collect();
    let mut stdin = child.stdin.take().expect("piped");
    stdin
        .write_all(Value::from(all).to_string().as_bytes())
        .expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "bounds.py failed");
    serde_json::from_slice(&output.stdout).expect("bounds.py writes arrays of bounds")
}

#[test]
fn bounds_are_those_of_pyrta() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let count = if is_long() { 400 } else { 100 };
    let sets: Vec<Vec<Task>> = (0..count)
        .map(|_| {
            let tasks = rng.random_range(1..=6);
            (0..tasks).map(|_| task(&mut rng, tasks)).collect()
        })
        .collect();
    let theirs = theirs(&sets);
    assert_eq!(theirs.len(), sets.len());
    let (mut bounded, mut unbounded) = (0, 0);
    for (tasks, bounds) in sets.iter().zip(&theirs) {
        assert_eq!(bounds.len(), tasks.len());
        for (of, &bound) in bounds.iter().enumerate() {
            let bound = bound.filter(|_| !is_full(&tasks[..=of]));
            assert_eq!(ours(tasks, of), bound, "task {of} of {}", as_json(tasks));
            bounded += u32::from(bound.is_some());
            unbounded += u32::from(bound.is_none());
        }
    }
    println!("{bounded} bounds are the same, {unbounded} tasks have none by either");
    assert!(
        bounded > count * 5 / 4 && unbounded > count / 8,
        "{bounded}, {unbounded}: not the mix that is meant"
    );
}
