// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir check`: what a system guarantees, and on which assumptions.
mod assumptions;
mod json;
mod tables;
mod text;
mod verdict;

use std::path::PathBuf;

use clap::ValueHint;
use miette::IntoDiagnostic;
use weir_analysis::check::{STEPS, Step, Verdict, report};

use crate::Outcome;
use crate::output::{self, Patience};
use crate::tables::Format;

/// Find out whether any interrupt source can break a deadline, and what that rests on
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Args {
    /// The description of the system
    #[arg(value_name = "SYSTEM.toml", value_hint = ValueHint::FilePath)]
    system: PathBuf,

    /// Show every row, source and flow of a large system
    #[arg(long)]
    all: bool,

    /// Print everything as JSON, with a certificate that `weir verify` checks
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Examples:
  weir check examples/motor-controller/system.toml
  weir check system.toml --json > proof.json

The exit code is 0 if every deadline is guaranteed, 1 if one is not, or if nothing is proven, and 2 if
the file cannot be used. docs/analysis.md derives the numbers, docs/check.md explains the output.";

/// Carries the command out.
///
/// # Errors
/// A file that cannot be read or is no system.
pub(crate) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let system = weir_model::load(&arguments.system)?;
    let patience = Patience::new(STEPS + 1);
    patience.begins("response times");
    let analysis = weir_analysis::analyse(&system);
    let report = report(&system, &analysis, &mut |step| {
        patience.begins(match step {
            Step::WithoutLimits => "the same without limits",
            Step::Headroom => "how far each rate could rise",
            Step::Rates => "which rates the guarantee needs",
        });
    });
    drop(patience);
    if arguments.json {
        output::print(&json::text(&system, &analysis, &report).into_diagnostic()?)?;
    } else {
        let format = Format {
            all: arguments.all,
            coloured: output::is_coloured(),
        };
        output::print(&text::text(&system, &report, format))?;
    }
    Ok(match report.verdict {
        Verdict::Guaranteed => Outcome::Good,
        Verdict::NotGuaranteed | Verdict::NotProven => Outcome::Bad,
    })
}
