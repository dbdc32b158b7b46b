// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir generate --rtl`: writes the limiter in hardware and the header of its driver.
use std::path::{Path, PathBuf};

use miette::{IntoDiagnostic, miette};
use serde::Serialize;
use weir_generate::{MARKER, SiliconPlan, silicon_header, silicon_module};
use weir_model::System;
use weir_report::terminal::{is_coloured, print_answer, wrapped};
use weir_report::{Align, Emphasis, Grid, rate, write_all};

use super::{Args, DIGITS, as_f64, outputs};

/// The output of `--json`.
#[derive(Serialize)]
struct Json<'a> {
    /// The paths of the module and the header.
    files: [String; 2],
    #[serde(flatten)]
    plan: &'a SiliconPlan<'a>,
}

/// Executes the command. Returns the system.
///
/// # Errors
/// Fails if a file cannot be read or does not contain a valid system, if the system has no limits
/// in hardware, or if files cannot be written.
pub(super) fn execute(arguments: &Args) -> miette::Result<System> {
    let here = Path::new(".");
    let folder = arguments.output.as_deref().unwrap_or(here);
    if folder == Path::new("-") || folder.is_file() {
        return Err(miette!(
            help = "name a folder with --output",
            "--rtl writes two files, and `{}` is no folder",
            folder.display()
        ));
    }
    let file = arguments.system.to_string_lossy();
    let text = weir_model::read_text(&arguments.system)?;
    let system = weir_model::parse(&file, &text)?;
    let plan = SiliconPlan::new(&system).map_err(|refusal| refusal.in_file(&file, &text))?;
    let name = arguments.system.file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    let files = ["sv", "h"].map(|ending| folder.join(format!("{}.{ending}", plan.module)));
    let mut outputs = outputs(arguments);
    outputs.folder(folder)?;
    let texts = [silicon_module(&plan, &name), silicon_header(&plan, &name)];
    let mut written = Vec::new();
    for (path, text) in files.iter().zip(&texts) {
        written.push((outputs.file(path, Some(MARKER))?, text.as_bytes()));
    }
    write_all(written).into_diagnostic()?;
    let json = Json {
        files: files.each_ref().map(|path| path.display().to_string()),
        plan: &plan,
    };
    print_answer(&json, arguments.json, || summary(&plan, &files))?;
    Ok(system)
}

fn summary(plan: &SiliconPlan<'_>, [module, header]: &[PathBuf; 2]) -> String {
    let columns = [
        ("line", Align::Right),
        ("source", Align::Left),
        ("limit", Align::Left),
        ("asked for", Align::Right),
        ("clocks", Align::Right),
        ("lets through", Align::Right),
        ("rate", Align::Right),
        ("max_work", Align::Right),
    ];
    let mut grid = Grid::new(&columns, is_coloured());
    for (number, source) in plan.sources.iter().enumerate() {
        let limit = match source.policy {
            "strict" => "strict".to_owned(),
            policy => format!("{policy} {}", source.burst),
        };
        let row = [
            number.to_string(),
            source.name.to_owned(),
            limit,
            source.asked_clocks.to_string(),
            source.interval_clocks.to_string(),
            rate(source.limit_hz, DIGITS),
            source.rate.to_string(),
            source
                .max_work
                .map_or("not stated".to_owned(), |most| most.to_string()),
        ];
        grid.row(row.map(|cell| (cell, Emphasis::Plain)));
    }
    let title = format!(
        "{} and {} keep the limits of `{}` at {}; a request is delivered within {} clocks if its limit is open.",
        module.display(),
        header.display(),
        plan.system,
        rate(as_f64(plan.clock_hz), DIGITS),
        plan.delay_clocks
    );
    let (phase, of_rate) = plan.fewest_bits;
    let hint = if (phase, of_rate) == (plan.phase_bits, plan.rate_bits) {
        String::new()
    } else {
        let hint = format!(
            "phase_bits = {phase} and rate_bits = {of_rate} would do, in place of {} and {}: each limit stays above what is expected, or within a hundredth of what is asked for.",
            plan.phase_bits, plan.rate_bits
        );
        format!("\n{}", wrapped(&hint, "", "  "))
    };
    format!("{}\n\n{}{hint}", wrapped(&title, "", "  "), grid.text())
}
