// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir generate`: writes the code or the hardware description that enforces a system's limits.
mod silicon;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::ValueHint;
use clap::builder::PossibleValuesParser;
use miette::{IntoDiagnostic, miette};
use serde::Serialize;
use weir_generate::{ChipPlan, MARKER, PlannedSource, RtosPlan, board, chips, header, receivers};
use weir_model::System;
use weir_report::terminal::{Outcome, is_coloured, print, print_answer, wrapped};
use weir_report::{Align, Emphasis, Grid, Outputs, rate, time, write_all};

use crate::compiler;

/// Write the code that keeps the limits of a system
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Args {
    /// The description of the system
    #[arg(value_name = "SYSTEM.toml", value_hint = ValueHint::FilePath)]
    system: PathBuf,

    /// The chip that is to keep the limits, in software
    #[arg(long, value_parser = PossibleValuesParser::new(chips()), required_unless_present = "rtl", conflicts_with = "rtl")]
    chip: Option<String>,

    /// The operating system whose tasks receive the frames of a network card: also write a C file
    /// with their ports, urgencies, buffers and budgets
    #[arg(long, value_parser = ["freertos"], requires = "chip", conflicts_with = "rtl")]
    rtos: Option<String>,

    /// Write an instance of the limiter in silicon for the limits in hardware, and its driver's
    /// header
    #[arg(long)]
    rtl: bool,

    /// Where to write the header, weir_system.h by default; `-` for the standard output. With
    /// --rtos the C file is beside it, with `.c` for `.h`. With --rtl the folder for NAME_limits.sv
    /// and NAME_limits.h, by default this one; it is made if it is missing
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Replace files that Weir did not write
    #[arg(long)]
    force: bool,

    /// Print what was generated as JSON: names, channels, ticks, effective rates
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Examples:
  weir generate examples/motor-controller/system.toml --chip atmega128
  weir generate examples/valve-controller/system.toml --chip cortex-m3
  weir generate examples/rtos-node/system.toml --chip cortex-m3 --rtos freertos
  weir generate system.toml --chip atmega128 --output include/limits.h
  weir generate system.toml --chip atmega128 --output - | less
  weir generate system.toml --rtl -o build/rtl

The header says how a firmware uses it and how it is compiled. The same file gives the same text, \
byte for byte. docs/generate.md has more.

The exit code is 0 if all was written, and 2 if it was not; then no file has changed.";

/// The digits of times and rates in the table.
const DIGITS: u8 = 4;

/// The output of `--json`.
#[derive(Serialize)]
struct Json<'a> {
    /// The path of the header.
    file: String,
    /// The path of the C file with the receivers. `None` without --rtos.
    #[serde(skip_serializing_if = "Option::is_none")]
    receivers_file: Option<String>,
    #[serde(flatten)]
    plan: &'a ChipPlan<'a>,
}

/// Executes the command.
///
/// # Errors
/// Fails if a file cannot be read or does not contain a valid system, if the chip cannot keep the
/// system's limits, or if a file cannot be written.
pub(crate) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let system = match &arguments.chip {
        Some(chip) => for_chip(arguments, chip)?,
        None => silicon::execute(arguments)?,
    };
    let name = system.name.clone();
    let whole = system.with_kernel_work();
    if !whole.is_ok_and(|whole| weir_analysis::check::keeps_deadlines(&whole)) {
        eprintln!(
            "note: these limits do not guarantee every deadline of `{name}`: weir check says why"
        );
    }
    Ok(Outcome::Good)
}

fn for_chip(arguments: &Args, name: &str) -> miette::Result<System> {
    let default = Path::new("weir_system.h");
    let path = arguments.output.as_deref().unwrap_or(default);
    let to_stdout = path == Path::new("-");
    if to_stdout && arguments.json {
        return Err(miette!(
            help = "name a file for the header with --output",
            "--json and the header cannot both go to the standard output"
        ));
    }
    if arguments.rtos.is_some() && path.extension() != Some(OsStr::new("h")) {
        return Err(miette!(
            help = "name a file that ends with `.h` by --output",
            "--rtos writes a header and a C file beside it, and `{}` is no header",
            path.display()
        ));
    }
    let name_in_c = path.file_name().unwrap_or_default().to_string_lossy();
    let is_safe = |of: char| matches!(of, ' '..='~') && !matches!(of, '"' | '\\');
    if arguments.rtos.is_some() && !name_in_c.chars().all(is_safe) {
        return Err(miette!(
            help = "name a file by letters and signs of ASCII, without quotation marks and backslashes",
            "C cannot include `{}`",
            path.display()
        ));
    }
    let file = arguments.system.to_string_lossy();
    let text = weir_model::read_text(&arguments.system)?;
    let system = weir_model::parse(&file, &text)?;
    compiler::warn_of_another(&system);
    let board = board(name, &system)?;
    let plan = match arguments.rtos {
        Some(_) => ChipPlan::with_freertos(&system, board),
        None => ChipPlan::new(&system, board),
    };
    let plan = plan.map_err(|refusal| refusal.in_file(&file, &text))?;
    let lanes = plan.freertos.iter().flat_map(RtosPlan::lanes_without_quota);
    for (key, receivers) in lanes {
        eprintln!(
            "note: a flood of frames of `{key}` can use up the buffers of {}, which has the same urgency: give `{key}` \
             one that no receiver has",
            receivers.join(", ")
        );
    }
    // Only the file name is used, because the folder differs between machines.
    let file = arguments.system.file_name().unwrap_or_default();
    let file = file.to_string_lossy();
    let text = header(&plan, &file);
    if to_stdout {
        print(text.trim_end())?;
    } else {
        let beside = path.with_extension("c");
        let receivers = receivers(&plan, &name_in_c, &file);
        let mut outputs = outputs(arguments);
        let mut written = vec![(path, &text)];
        written.extend(receivers.iter().map(|text| (beside.as_path(), text)));
        let mut places = Vec::new();
        for (path, text) in written {
            let place = outputs.file(path, Some(MARKER))?;
            places.push((place, text.as_bytes()));
        }
        write_all(places).into_diagnostic()?;
        let json = Json {
            file: path.display().to_string(),
            receivers_file: receivers.map(|_| beside.display().to_string()),
            plan: &plan,
        };
        print_answer(&json, arguments.json, || summary(&plan, path))?;
    }
    Ok(system)
}

/// Registers the files that the command reads. The output files are added later.
fn outputs(arguments: &Args) -> Outputs {
    let mut outputs = Outputs::new(arguments.force);
    outputs.reads(&arguments.system);
    outputs
}

fn summary(plan: &ChipPlan<'_>, file: &Path) -> String {
    let coloured = is_coloured();
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
    let title = format!(
        "{} keeps the limits of `{}` on the {} at {}, in the flavour {} of {}.",
        file.display(),
        plan.system,
        plan.chip,
        rate(as_f64(plan.clock_hz), DIGITS),
        plan.flavour.name(),
        plan.port.folder(),
    );
    let text = format!("{}\n\n{}", wrapped(&title, "", "  "), grid.text());
    match &plan.freertos {
        Some(freertos) => format!("{text}\n\n{}", summary_of_receivers(freertos, file)),
        None => text,
    }
}

fn summary_of_receivers(plan: &RtosPlan<'_>, header: &Path) -> String {
    let columns = [
        ("receiver", Align::Left),
        ("urgency", Align::Right),
        ("ports", Align::Left),
        ("frames in a tick", Align::Right),
    ];
    let mut grid = Grid::new(&columns, is_coloured());
    for (number, receiver) in plan.receivers.iter().enumerate() {
        let of = plan.bindings.iter().filter(|of| of.receiver == number);
        let row = [
            receiver.name.to_owned(),
            receiver.urgency.to_string(),
            of.map(ToString::to_string).collect::<Vec<_>>().join(", "),
            receiver
                .budget
                .map_or_else(|| "all".to_owned(), |frames| frames.to_string()),
        ];
        grid.row(row.map(|cell| (cell, Emphasis::Plain)));
    }
    let title = format!(
        "{} has the receivers of `{}` on FreeRTOS, whose workers have {} buffers.",
        header.with_extension("c").display(),
        plan.card,
        plan.classes
            .iter()
            .map(|class| u64::from(class.frames))
            .sum::<u64>()
    );
    format!("{}\n\n{}", wrapped(&title, "", "  "), grid.text())
}

fn row(plan: &ChipPlan<'_>, source: &PlannedSource<'_>) -> [String; 7] {
    let name = source.name.to_owned();
    let vector = source.vector.to_owned();
    let Some(limit) = &source.limit else {
        let none = String::new;
        let (limit, passes) = if source.is_in_silicon() {
            ("in silicon: --rtl", "")
        } else {
            ("none", "everything")
        };
        return [
            name,
            vector,
            limit.to_owned(),
            none(),
            none(),
            none(),
            passes.to_owned(),
        ];
    };
    let cycles = limit.interval_ticks.saturating_mul(limit.tick_cycles);
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
