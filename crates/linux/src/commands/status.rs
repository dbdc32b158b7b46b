// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir linux status` shows the runs on this machine, and what crashed runs have left.
mod metrics;
mod text;

use miette::IntoDiagnostic as _;
use serde::Serialize;
use weir_report::terminal::{Outcome, is_coloured, print, print_json, printable};

use super::StateArgs;
use crate::instance::{self, Run};

/// Show what runs on this machine, and what a crash left to be put back
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "The exit code is 0 if a system runs, 1 if none does or a crash left something, and 2 if that cannot be found out."
)]
pub(super) struct Args {
    #[command(flatten)]
    state: StateArgs,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,

    /// Print metrics in the text format of Prometheus
    #[arg(long, conflicts_with = "json")]
    metrics: bool,
}

/// A run, and whether it is alive.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    run: Run,
    /// Whether its process lives. Otherwise the run crashed, and its changes are still in force.
    running: bool,
}

/// Executes the command.
///
/// # Errors
/// Fails when the folder of the runs cannot be read.
pub(super) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let systems: Vec<Shown> = instance::all(&arguments.state.state)?
        .into_iter()
        .map(|run| Shown {
            running: run.lives(),
            run,
        })
        .collect();
    let is_well = !systems.is_empty() && systems.iter().all(|system| system.running);
    if arguments.json {
        print_json(&serde_json::json!({ "schema": 1, "systems": systems }))?;
    } else if systems.is_empty() {
        // In the format of metrics, a line that begins with `# ` is a comment.
        let mark = if arguments.metrics { "# " } else { "" };
        print(&format!(
            "{mark}nothing runs, and nothing is to be put back"
        ))?;
    } else if arguments.metrics {
        print(metrics::text(&systems).into_diagnostic()?.trim_end())?;
    } else {
        let texts = systems.iter().map(|system| text(system, is_coloured()));
        print(&texts.collect::<Vec<_>>().join("\n\n"))?;
    }
    Ok(Outcome::good_if(is_well))
}

fn text(shown: &Shown, coloured: bool) -> String {
    let Run {
        system,
        file,
        process,
        status,
        ..
    } = &shown.run;
    let about = format!("{system} ({}): {}", printable(file), shown.run.about());
    let pid = process.tid;
    if !shown.running {
        return format!(
            "{about}, crashed as process {pid}: `weir linux stop` puts back what it changed"
        );
    }
    let blocks = text::blocks(status, coloured);
    let all = std::iter::once(format!("{about}, process {pid}")).chain(blocks);
    all.collect::<Vec<_>>().join("\n\n")
}
