// SPDX-License-Identifier: GPL-3.0-or-later
//! The values that were counted in a run, by name.
//!
//! An element of a list is named by its index. It is also named by its `command`, if no other
//! element has the same one: `top.account.processes.cpu.taken_ns`.
//!
//! - `PROCESS.…`: every number in the JSON that the process has printed, named by its path:
//!   `cpu.missed`, `low.ports.0.latency.p99`
//! - `weir.…`: the numbers of `weir-linux status --json`, if the variant runs it
//! - `plan.…`: the numbers of `weir-linux plan --json`, if the variant runs it
//! - `sent.FLOW`, `lost.FLOW`: packets that the guest's card took, and those for which it had no
//!   buffer
use serde_json::Value;

use super::guest::GuestResult;
use super::job::{PLAN, WEIR};
use super::spec::Linux;
use crate::experiment::series::Values;
use crate::experiment::series::formula::number;

const OF_THE_FLOOD: [&str; 2] = ["sent", "lost"];

/// Checks that a run can have a value of this name. The values of a process are known only after it
/// has run, so any name with the process's prefix is accepted.
pub(super) fn is_known(spec: &Linux, name: &str) -> Result<(), String> {
    let whose = name.split('.').next().unwrap_or_default();
    let mut all: Vec<&str> = spec
        .process
        .iter()
        .map(|process| process.id.as_str())
        .collect();
    all.extend(OF_THE_FLOOD);
    all.extend([PLAN, WEIR]);
    if all.contains(&whose) {
        Ok(())
    } else {
        Err(format!(
            "a run has no value `{name}`; its values begin with {}",
            all.join(", ")
        ))
    }
}

pub(super) fn values(answer: &GuestResult) -> Values {
    let mut values = Values::new();
    add(&mut values, "", &answer.result);
    for what in OF_THE_FLOOD {
        add(&mut values, what, &answer.sent[0][what]);
    }
    values
}

/// The largest difference of any value, in percent of the larger one. It is 100 if only one of the
/// runs has the value.
pub(super) fn difference(once: &Values, twice: &Values) -> f64 {
    let all = once.keys().chain(twice.keys());
    let number = |values: &Values, name: &str| values.get(name)?.as_number().ok();
    all.map(|name| match (number(once, name), number(twice, name)) {
        (Some(one), Some(two)) if one == two => 0.0,
        (Some(one), Some(two)) => 100.0 * (one - two).abs() / one.abs().max(two.abs()),
        _ => 100.0,
    })
    .fold(0.0, f64::max)
}

/// Adds the numbers in a JSON value under their paths.
fn add(values: &mut Values, way: &str, value: &Value) {
    let below = |name: &str| match way {
        "" => name.to_owned(),
        way => format!("{way}.{name}"),
    };
    match value {
        Value::Number(found) => {
            if let Some(found) = found.as_f64() {
                values.insert(way.to_owned(), number(found));
            }
        }
        Value::Array(all) => {
            for (index, value) in all.iter().enumerate() {
                add(values, &below(&index.to_string()), value);
                let command = value["command"].as_str();
                let alike = all
                    .iter()
                    .filter(|other| other["command"].as_str() == command);
                if let (Some(command), 1) = (command, alike.count()) {
                    add(values, &below(command), value);
                }
            }
        }
        Value::Object(all) => {
            for (name, value) in all {
                add(values, &below(name), value);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_differ_by_their_largest_difference() {
        let run = |numbers: &[(&str, f64)]| -> Values {
            numbers
                .iter()
                .map(|&(name, value)| (name.to_owned(), number(value)))
                .collect()
        };
        let once = run(&[("a", 100.0), ("b", 0.0)]);
        assert_eq!(difference(&once, &once), 0.0);
        assert_eq!(difference(&once, &run(&[("a", 99.0), ("b", 0.0)])), 1.0);
        assert_eq!(difference(&once, &run(&[("a", 100.0)])), 100.0);
        assert_eq!(difference(&run(&[("a", 100.0)]), &once), 100.0);
    }

    #[test]
    fn every_number_has_its_way_as_its_name() {
        let answer = GuestResult {
            result: serde_json::json!({"cpu": {"missed": 3, "ratio": null}, "low": {"ports": [{"packets": 7}]}}),
            sent: serde_json::json!([{"sent": [5, 6], "lost": [0, 1]}]),
        };
        let found: Vec<(String, String)> = values(&answer)
            .into_iter()
            .map(|(name, value)| (name, value.to_string()))
            .collect();
        let named = |name: &str| {
            found
                .iter()
                .find(|(found, _)| found == name)
                .map(|(_, value)| value.as_str())
        };
        assert_eq!(named("cpu.missed"), Some("3"));
        assert_eq!(named("low.ports.0.packets"), Some("7"));
        assert_eq!((named("sent.1"), named("lost.1")), (Some("6"), Some("1")));
        assert_eq!(found.len(), 6);
    }

    #[test]
    fn processes_go_by_their_commands_too_if_these_are_different() {
        let mut values = Values::new();
        let process =
            |command: &str, used: u64| serde_json::json!({"command": command, "used": used});
        let all = serde_json::json!([process("cpu", 5), process("shell", 6), process("shell", 7)]);
        add(&mut values, "processes", &all);
        let names: Vec<&str> = values.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "processes.0.used",
                "processes.1.used",
                "processes.2.used",
                "processes.cpu.used"
            ]
        );
    }
}
