// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir check`: what a system guarantees, and on which assumptions.
mod advice;
mod assumptions;
mod json;
mod observed;
mod tables;
mod text;
mod verdict;

use std::path::PathBuf;

use clap::ValueHint;
use miette::IntoDiagnostic;
use serde_json::Value;
use weir_analysis::check::{STEPS, Step, Verdict, report};
use weir_model::System;
use weir_report::terminal::{Outcome, print_answer};

use crate::compiler;
use crate::output::Patience;
use crate::tables::Format;

/// Find out whether any interrupt source can break a deadline, and what that rests on
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Args {
    /// The description of the system
    #[arg(value_name = "SYSTEM.toml", value_hint = ValueHint::FilePath)]
    system: PathBuf,

    /// Hold what was seen against the file: the interrupts of `weir run --json`, or units of work
    #[arg(long, value_name = "RUN.json", value_hint = ValueHint::FilePath)]
    observed: Option<PathBuf>,

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
  weir run firmware.elf --flood INT0=20kHz --json > run.json
  weir check system.toml --observed run.json

The exit code is 0 if every deadline is guaranteed, 1 if one is not, if nothing is proven, or if \
more was observed than the file states, and 2 if a file cannot be used. docs/analysis.md derives \
the numbers, docs/check.md explains the output.";

/// Returns the JSON answer about `system`, without observations.
///
/// # Errors
/// Fails if the answer has no JSON form.
pub(crate) fn answer(system: &System) -> miette::Result<Value> {
    let analysis = weir_analysis::analyse(system);
    let report = report(system, &analysis, &mut |_| {});
    let text = serde_json::to_vec(&json::answer(system, &analysis, &report, None));
    // The text is parsed again, so that its numbers have been rounded as those of a file.
    let text = text.into_diagnostic()?;
    serde_json::from_slice(&text).into_diagnostic()
}

/// Executes the command.
///
/// # Errors
/// Fails if a file cannot be read or does not contain a valid system, or if the observations are
/// not valid.
pub(crate) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let name = arguments.system.to_string_lossy();
    let text = weir_model::read_text(&arguments.system)?;
    let system = weir_model::parse(&name, &text)?;
    weir_generate::check(&system).map_err(|refusal| refusal.in_file(&name, &text))?;
    let system = system.with_kernel_work()?;
    compiler::warn_of_another(&system);
    let seen = arguments.observed.as_deref().map(observed::read);
    let seen = seen.transpose()?;
    let patience = Patience::new(STEPS + 1);
    patience.begins("response times");
    let analysis = weir_analysis::analyse(&system);
    let report = report(&system, &analysis, &mut |step| {
        patience.advances(1);
        patience.begins(match step {
            Step::WithoutLimits => "the same without limits",
            Step::Headroom => "how far each rate could rise",
            Step::Rates => "which rates the guarantee needs",
        });
    });
    drop(patience);
    let seen = seen.map(|seen| observed::judge(&system, &analysis, seen));
    let answer = json::answer(&system, &analysis, &report, seen.as_ref());
    print_answer(&answer, arguments.json, || {
        let format = Format::new(arguments.all);
        text::text(&system, &report, seen.as_ref(), &arguments.system, format)
    })?;
    let is_kept = seen.is_none_or(|seen| seen.exceeded.is_empty());
    Ok(match report.verdict {
        Verdict::Guaranteed if is_kept => Outcome::Good,
        Verdict::Guaranteed | Verdict::NotGuaranteed | Verdict::NotProven => Outcome::Bad,
    })
}
