// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir linux stop` ends runs, and restores the settings that crashed runs have left changed.
use std::path::Path;
use std::time::{Duration, Instant};

use miette::IntoDiagnostic as _;
use serde_json::json;
use weir_report::terminal::{Outcome, print, print_json, printable};

use super::StateArgs;
use crate::instance::{self, Run};
use crate::restored;
use crate::settings::{Journal, Restoration};

/// Longest time that a run may take to end. It restores some tens of settings in that time.
const PATIENCE: Duration = Duration::from_secs(15);

/// End what runs on this machine and put everything back, also what a crash or kill -9 left
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Without a system it ends all of them. What crashed runs have left is put back in any case. The exit code is 0 if everything is as it was before or as \
                       somebody else has set it since, 1 if something could not be put back, and 2 if a run cannot be ended."
)]
pub(super) struct Args {
    /// The system's name or its file
    #[arg(value_name = "SYSTEM")]
    system: Option<String>,

    #[command(flatten)]
    state: StateArgs,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// Executes the command.
///
/// # Errors
/// Fails when a run does not end, or the journals cannot be read.
pub(super) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let folder = &arguments.state.state;
    let is_meant = |run: &Run| {
        let wanted = arguments.system.as_deref();
        wanted.is_none_or(|wanted| run.is_called(wanted))
    };
    let (mut ended, mut crashed, mut running) = (Vec::new(), Vec::new(), Vec::new());
    for run in instance::all(folder)? {
        if !run.lives() {
            crashed.push(run.system);
        } else if is_meant(&run) {
            run.end(PATIENCE)?;
            ended.push(run.system);
        } else {
            running.push(run.system);
        }
    }
    let until = Instant::now() + PATIENCE;
    let mut restorations = Vec::new();
    let kept = loop {
        // Runs that ended in order have left nothing to restore. Settings that could not be
        // restored are tried again.
        restorations.retain(Restoration::is_complete);
        restorations.extend(Journal::recover(folder).into_diagnostic()?);
        restored::forget_crashed(folder)?;
        let kept = kept(folder)?;
        // While a run begins or ends, its journal exists although it is not listed as a run. So a
        // journal in use is reported only if it is still there after some time.
        if kept.is_empty() || Instant::now() >= until {
            break kept;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let mut remarks: Vec<String> = restorations.iter().flat_map(restored::remarks).collect();
    let is_whole = restorations.iter().all(|one| one.is_complete()) && kept.is_empty();
    remarks.extend(kept);
    let count: usize = restorations.iter().map(restored::count).sum();
    if arguments.json {
        print_json(&json!({
            "schema": 1,
            "ended": ended,
            "crashed": crashed,
            "running": running,
            "put_back": count,
            "remarks": remarks,
            "complete": is_whole,
        }))?;
    } else {
        let mut lines: Vec<String> = ended
            .iter()
            .map(|system| format!("{system} is stopped"))
            .collect();
        if !restorations.is_empty() {
            lines.push(format!(
                "a crashed run had left settings: {count} are put back"
            ));
        }
        lines.extend(remarks);
        match &arguments.system {
            // Ending a run twice is no error. But if another run goes on, the name may be a
            // mistake, so it is reported.
            Some(wanted) if ended.is_empty() && !running.is_empty() => lines.push(format!(
                "no system `{}` runs; what runs is {}",
                printable(wanted),
                running.join(", ")
            )),
            _ if lines.is_empty() => {
                lines.push("nothing runs, and nothing is to be put back".to_owned());
            }
            _ => {}
        }
        print(&lines.join("\n"))?;
    }
    Ok(Outcome::good_if(is_whole))
}

/// Lists journals that a process keeps locked although no run is known. Their settings stay
/// changed.
fn kept(folder: &Path) -> miette::Result<Vec<String>> {
    let runs = instance::all(folder)?;
    let is_known = |pid: &u32| {
        let mut runs = runs.iter();
        runs.any(|run| run.lives() && u32::try_from(run.process.tid) == Ok(*pid))
    };
    let all = Journal::running(folder).into_diagnostic()?.into_iter();
    let unknown = all.filter(|pid| !is_known(pid));
    Ok(unknown
        .map(|pid| {
            format!(
                "the journal of process {pid} is in use, so its settings are not put back: end that process, or the one that has the journal open, and try again"
            )
        })
        .collect())
}
