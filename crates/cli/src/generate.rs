// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir generate`: the code that keeps a system's limits.
use std::path::{Path, PathBuf};

use clap::ValueHint;
use clap::builder::PossibleValuesParser;
use miette::{IntoDiagnostic, miette};
use serde::Serialize;
use weir_generate::{CHIPS, Plan, PlannedSource, chip, header, write};
use weir_report::{Align, Emphasis, Grid, rate, time};

use crate::Outcome;
use crate::output;

/// Write the code that keeps the limits of a system
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Args {
    /// The description of the system
    #[arg(value_name = "SYSTEM.toml", value_hint = ValueHint::FilePath)]
    system: PathBuf,

    /// The chip that is to keep the limits
    #[arg(long, value_parser = PossibleValuesParser::new(CHIPS))]
    chip: String,

    /// Where to write the header; `-` for the standard output
    #[arg(long, value_name = "FILE", default_value = "weir_system.h", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    /// Replace a file that was not generated
    #[arg(long)]
    force: bool,

    /// Print what was generated as JSON: names, channels, ticks, effective rates
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Examples:
  weir generate examples/motor-controller/system.toml --chip atmega128
  weir generate system.toml --chip atmega128 --output include/limits.h
  weir generate system.toml --chip atmega128 --output - | less

The header says how a firmware uses it and how it is compiled. The same file gives the same header,
byte for byte. A file that was not generated is only replaced with --force.

The exit code is 0 if the header was written, and 2 if it was not; then no file has changed.";

/// Digits of rates and times in the table.
const DIGITS: u8 = 4;

/// What `--json` prints.
#[derive(Serialize)]
struct Json<'a> {
    /// The header.
    file: String,
    #[serde(flatten)]
    plan: &'a Plan<'a>,
}

/// Carries the command out.
///
/// # Errors
/// A file that cannot be read or is no system, a system that the chip cannot keep, a header that cannot be written.
pub(crate) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let to_stdout = arguments.output == Path::new("-");
    if to_stdout && arguments.json {
        return Err(miette!(
            help = "name a file for the header with --output",
            "--json and the header cannot both go to the standard output"
        ));
    }
    let system = weir_model::load(&arguments.system)?;
    let plan = Plan::new(&system, chip(&arguments.chip)?)?;
    // The name alone: where the file lies is the machine's matter, not the system's.
    let name = arguments.system.file_name().unwrap_or_default();
    let text = header(&plan, &name.to_string_lossy());
    if to_stdout {
        output::print(text.trim_end())?;
    } else {
        write(&arguments.output, &text, arguments.force)?;
        if arguments.json {
            let json = Json {
                file: arguments.output.display().to_string(),
                plan: &plan,
            };
            output::print(&serde_json::to_string_pretty(&json).into_diagnostic()?)?;
        } else {
            output::print(&summary(&plan, &arguments.output))?;
        }
    }
    if !weir_analysis::holds(&system) {
        eprintln!(
            "note: these limits do not guarantee every deadline of `{}`: weir check says why",
            system.name
        );
    }
    Ok(Outcome::Good)
}

fn summary(plan: &Plan<'_>, file: &Path) -> String {
    let coloured = output::is_coloured();
    let columns = [
        ("source", Align::Left),
        ("interrupt", Align::Left),
        ("limit", Align::Left),
        ("timer", Align::Left),
        ("ticks", Align::Right),
        ("interval", Align::Right),
        ("lets through", Align::Right),
    ];
    let mut grid = Grid::new(&columns, coloured);
    for source in &plan.sources {
        let plain = |cell: String| (cell, Emphasis::Plain);
        grid.row(row(plan, source).map(plain));
    }
    format!(
        "{} keeps the limits of `{}` on the {} at {}, in the flavour {} of ports/avr.\n\n{}",
        file.display(),
        plan.system,
        plan.chip,
        rate(as_f64(plan.clock_hz), DIGITS),
        plan.flavour.name(),
        grid.text()
    )
}

fn row(plan: &Plan<'_>, source: &PlannedSource<'_>) -> [String; 7] {
    let name = source.name.to_owned();
    let vector = source.vector.to_owned();
    let Some(limit) = &source.limit else {
        let none = String::new;
        return [
            name,
            vector,
            "none".to_owned(),
            none(),
            none(),
            none(),
            "everything".to_owned(),
        ];
    };
    let cycles = limit.interval_ticks.saturating_mul(limit.prescaler);
    [
        name,
        vector,
        limit.to_string(),
        format!("{} / {}", limit.channel, limit.prescaler),
        limit.interval_ticks.to_string(),
        time(as_f64(cycles) / as_f64(plan.clock_hz.max(1)), DIGITS),
        rate(limit.limit_hz, DIGITS),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn as_f64(count: u64) -> f64 {
    count as f64
}
