// SPDX-License-Identifier: GPL-3.0-or-later
//! Runs a piece of work in a process of its own, and reads which claims it met.
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use weir_report::{Temporary, uninterrupted};

use super::work::{Form, LONG, Work};
use crate::experiment::Checkout;

/// The interval at which the process is checked for its end.
const LOOK: Duration = Duration::from_millis(100);

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The duration of the run, in seconds.
    pub seconds: u64,
    /// The number of claims that were met.
    pub met: usize,
    /// The ids of the claims that were missed.
    pub missed: BTreeSet<String>,
    /// The ids of the claims that miss their goal by more than the experiment's file allows.
    pub fallen: BTreeSet<String>,
}

/// The reason why a run has no outcome.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum RunError {
    /// The process cannot be started, or its output cannot be read.
    #[error("cannot run {name}: {cause}")]
    Start {
        /// The name of the work.
        name: String,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The process exceeded the time limit and was ended.
    #[error("{name} was stopped after {seconds} s")]
    Late {
        /// The name of the work.
        name: String,
        /// The time in seconds after which the process was ended.
        seconds: u64,
    },
    /// The process failed.
    #[error("{name} could not be carried out; its message is above")]
    Failed {
        /// The name of the work.
        name: String,
    },
}

/// The results of an experiment, in the format of `weir-lab reproduce`.
#[derive(Deserialize)]
struct Results {
    claims: Vec<ClaimResult>,
}

#[derive(Deserialize)]
struct ClaimResult {
    id: String,
    met: bool,
    measured: Option<f64>,
    today: Option<Today>,
}

/// The limit for a goal that is known to be missed: the value must not be worse than this one.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Today {
    AtMost(f64),
    AtLeast(f64),
}

impl ClaimResult {
    /// Whether the goal is missed by more than the file allows.
    fn has_fallen(&self) -> bool {
        let is_kept = match (&self.today, self.measured) {
            (Some(Today::AtMost(most)), Some(measured)) => measured <= *most,
            (Some(Today::AtLeast(least)), Some(measured)) => measured >= *least,
            _ => false,
        };
        !self.met && !is_kept
    }
}

/// Runs some work with the time limit `most`. The output of an experiment goes to standard error.
///
/// # Errors
/// Returns an error if the process cannot be started, fails, or exceeds the time limit.
pub fn run(place: &Checkout, work: &Work, most: Duration) -> Result<Outcome, RunError> {
    let start = |cause| RunError::Start {
        name: work.name.clone(),
        cause,
    };
    let folder = Temporary::folder("weir-").map_err(start)?;
    let mut command = match work.long_test() {
        Some(name) => {
            let mut command = Command::new(place.path(LONG));
            command.arg(name);
            command
        }
        None => {
            let mut command = Command::new(std::env::current_exe().map_err(start)?);
            command
                .args(["reproduce", &work.name, "--out"])
                .arg(folder.path());
            if work.form == Form::Short {
                command.arg("--quick");
            }
            command
        }
    };
    command
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .stdout(io::stderr());
    let begun = Instant::now();
    let mut child = uninterrupted(|| command.spawn()).map_err(start)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(start)? {
            break status;
        }
        if begun.elapsed() > most {
            // End the process's children as well, which would otherwise go on running.
            for process in descendants(child.id()) {
                // Ignore an error: the process may have ended by itself in the meantime.
                let _ = kill(process, Signal::SIGTERM);
            }
            let _ = child.wait();
            return Err(RunError::Late {
                name: work.name.clone(),
                seconds: begun.elapsed().as_secs(),
            });
        }
        std::thread::sleep(LOOK);
    };
    let seconds = begun.elapsed().as_secs();
    match (work.long_test(), status.code()) {
        (Some(name), Some(0 | 1)) => {
            let is_met = status.success();
            let missed: BTreeSet<String> = (!is_met).then(|| name.to_owned()).into_iter().collect();
            Ok(Outcome {
                seconds,
                met: usize::from(is_met),
                fallen: missed.clone(),
                missed,
            })
        }
        (None, Some(0 | 1)) => {
            let file = folder.path().join(format!("{}.json", work.name));
            judge(&file, seconds).map_err(start)
        }
        _ => Err(RunError::Failed {
            name: work.name.clone(),
        }),
    }
}

/// A process and all of its descendants, the oldest first.
fn descendants(of: u32) -> Vec<Pid> {
    // The parent's id is the second field after the program's name, which is in parentheses.
    let parent = |process: u32| -> Option<u32> {
        let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (_, fields) = text.rsplit_once(')')?;
        fields.split_whitespace().nth(1)?.parse().ok()
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all: Vec<(u32, u32)> = processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|process| Some((process, parent(process)?)))
        .collect();
    let mut found = vec![of];
    let mut next = 0;
    while let Some(&one) = found.get(next) {
        found.extend(
            all.iter()
                .filter(|(_, parent)| *parent == one)
                .map(|of| of.0),
        );
        next += 1;
    }
    found
        .into_iter()
        .filter_map(|process| i32::try_from(process).ok().map(Pid::from_raw))
        .collect()
}

fn judge(file: &Path, seconds: u64) -> io::Result<Outcome> {
    let text = std::fs::read_to_string(file)?;
    let results: Results = serde_json::from_str(&text)?;
    let ids = |is: fn(&ClaimResult) -> bool| -> BTreeSet<String> {
        let claims = results.claims.iter().filter(|claim| is(claim));
        claims.map(|claim| claim.id.clone()).collect()
    };
    let missed = ids(|claim| !claim.met);
    Ok(Outcome {
        seconds,
        met: results.claims.len() - missed.len(),
        missed,
        fallen: ids(ClaimResult::has_fallen),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_has_started_is_found() {
        let mut shell = Command::new("sh");
        let mut shell = shell
            .args(["-c", "sleep 30 & sleep 30 & wait"])
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while descendants(shell.id()).len() < 3 && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(LOOK);
        }
        let found = descendants(shell.id());
        assert_eq!(found.len(), 3, "{found:?}");
        for process in found {
            kill(process, Signal::SIGTERM).unwrap();
        }
        shell.wait().unwrap();
    }

    #[test]
    fn a_claim_falls_if_it_misses_its_goal_by_more_than_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.json");
        let text = r#"{"claims": [
            {"id": "good", "met": true, "measured": 1},
            {"id": "known", "met": false, "measured": 2, "today": {"at_most": 2}},
            {"id": "worse", "met": false, "measured": 3, "today": {"at_most": 2}},
            {"id": "less", "met": false, "measured": 3, "today": {"at_least": 4}},
            {"id": "none", "met": false, "measured": null, "today": {"at_least": 4}},
            {"id": "new", "met": false, "measured": 2}]}"#;
        std::fs::write(&file, text).unwrap();
        let outcome = judge(&file, 5).unwrap();
        assert_eq!((outcome.met, outcome.missed.len()), (1, 5));
        let fallen: Vec<&str> = outcome.fallen.iter().map(String::as_str).collect();
        assert_eq!(fallen, ["less", "new", "none", "worse"]);
    }
}
