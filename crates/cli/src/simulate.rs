// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir simulate`: simulates every task in virtual time, with Weir and without.
pub(crate) mod answer;
mod bounds;
pub(crate) mod how;
mod plot;
pub(crate) mod runs;
mod tables;
mod text;
pub(crate) mod verdict;

use std::io::Write;
use std::path::PathBuf;

use clap::ValueHint;
use miette::IntoDiagnostic;
use weir_report::terminal::{Outcome, print_answer};
use weir_report::{Outputs, PICTURE_MARK, Place, WriteError};
use weir_sim::trace;

use self::answer::{Answer, RunAnswer, Runs};
use self::how::How;
use crate::tables::Format;

/// Run a system in virtual time, flood it, and see what happens to every task
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Args {
    /// The description of the system
    #[arg(value_name = "SYSTEM.toml", value_hint = ValueHint::FilePath)]
    system: PathBuf,

    #[command(flatten)]
    how: How,

    /// Run it only without limits, moderation and deferral: for a timeline of that
    #[arg(long)]
    without: bool,

    /// Show every task, source and flow of a large system
    #[arg(long)]
    all: bool,

    /// Draw the tasks' responses beside the bounds of `weir check`
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    plot: Option<PathBuf>,

    /// Write a timeline of the run for <https://ui.perfetto.dev>
    #[arg(long, value_name = "FILE.perfetto", value_hint = ValueHint::FilePath)]
    trace: Option<PathBuf>,

    /// Replace files that Weir did not write
    #[arg(long)]
    force: bool,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
The system runs as it is described and, beside it, without its limits and moderation and with \
bottom halves right after their interrupts. Sources ask at their expected rates, flows bring packets \
at their own; what states none is silent.

A flood is TARGET or TARGET=PATTERN. The target is a source or a flow; of a source with several \
flows it is one of them, or nobody.SOURCE for packets of none, or a recording, which has ports. Patterns:
  20kHz                          every 50 us; 20kHz:phase=10us later
  poisson:20kHz                  memoryless
  pairs:2ms:gap=10us             two close together every 2 ms
  bursts:16:gap=20us:period=25ms 16 close together every 25 ms
  uniform:10us..90us             gaps that are equally likely
  mmpp:20kHz:burst=5000:gap=100ms  bursts with pauses (zhang2006)
  level:low=100us:high=1ms       a level-triggered line
  trace:FILE                     a recording: CSV, pcap or pcapng; :speed=2 and :repeat may follow

Examples:
  weir simulate examples/flight-controller/system.toml --flood ignition
  weir simulate system.toml --flood eth=poisson:20kHz --costs uniform:50% --plot responses.svg
  weir simulate system.toml --flood eth=trace:eth0.pcap --duration 1s --trace out.perfetto

The exit code is 0 if no deadline is missed as described, 1 if one is, and 2 if something given \
cannot be used; then no file has changed. docs/simulate.md says what is simulated, and what is not.";

/// Executes the command.
///
/// # Errors
/// Fails if a file cannot be read or does not contain a valid system, if a flood is not valid, or
/// if a file cannot be written.
pub(crate) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let system = weir_model::load(&arguments.system)?;
    let (options, feeds) = arguments.how.options(&system)?;
    // The output files are opened first, so that errors are reported before the simulation.
    let mut outputs = Outputs::new(arguments.force);
    outputs.reads(&arguments.system);
    feeds.files().for_each(|file| outputs.reads(file));
    let mut create = |path: &Option<PathBuf>, mark| {
        let place = path.as_deref().map(|path| outputs.file(path, mark));
        let file = place.transpose()?.map(Place::create);
        file.transpose().into_diagnostic()
    };
    let timeline = create(&arguments.trace, Some(trace::WRITTEN_BY))?;
    let picture = create(&arguments.plot, Some(PICTURE_MARK))?;

    let parts = runs::parts(&system, &options);
    let made = runs::FinishedRuns::new(&system, &options, arguments.without, &parts, timeline)?;
    let bounds = bounds::bounds(&system, &options, made.as_described.as_ref());
    let run = |tally| RunAnswer::new(&system, &feeds, tally);
    let runs = Runs {
        as_described: made.as_described.as_ref().map(run),
        without: made.without.as_ref().map(run),
    };
    let how = &arguments.how;
    let answer = Answer::new(&system, how, &options, &feeds, parts, bounds, runs);

    if let Some(mut file) = picture {
        let svg = plot::plot(&system, &answer).to_svg().into_diagnostic()?;
        let path = file.target().to_owned();
        file.write_all(svg.as_bytes())
            .map_err(|cause| WriteError { path, cause })
            .into_diagnostic()?;
        file.finish().into_diagnostic()?;
    }
    if let Some(file) = made.timeline {
        file.finish().into_diagnostic()?;
    }
    print_answer(&answer, arguments.json, || {
        let format = Format::new(arguments.all);
        text::text(&system, options.duration, &answer, format)
    })?;
    let missed = answer.runs.made().next().is_some_and(verdict::misses);
    let broken = answer.bounds.broken().next().is_some();
    Ok(Outcome::good_if(!missed && !broken))
}
