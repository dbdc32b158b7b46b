// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir tune`: chooses limits, bursts and shared timers, explains the cost of each choice, and
//! writes them to the file.
mod conflict;
mod front;
mod json;
mod summary;
mod text;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::ValueHint;
use miette::{IntoDiagnostic, WrapErr, bail, miette};
use weir_analysis::tune::{Aim, Options, Session, TunedSource};
use weir_model::{Duration, Rate, parse_to_be_limited, read_text};
use weir_report::terminal::{Outcome, is_coloured, print_answer};
use weir_report::{Outputs, PICTURE_MARK, Place, write_all};

use crate::output::Patience;

/// Choose limits, bursts and shared timers such that every deadline holds
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Args {
    /// The description of the system
    #[arg(value_name = "SYSTEM.toml", value_hint = ValueHint::FilePath)]
    system: PathBuf,

    /// Write the limits into the file; comments and order stay
    #[arg(long, conflicts_with = "output")]
    write: bool,

    /// Write the file with the limits to FILE
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// How much more than it is asked for a limit may let through
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = share)]
    over_admission: f64,

    /// The rate of the shared timer, in place of one that is chosen
    #[arg(long, value_name = "RATE")]
    timer_rate: Option<Rate>,

    /// The longest time for which interrupts together may hold the processor, for example 2ms
    #[arg(long, value_name = "TIME")]
    longest_delay: Option<Duration>,

    /// Which of the limits at the largest share of the tolerated rates are chosen
    #[arg(long, value_name = "AIM", default_value = "knee")]
    aim: Goal,

    /// Draw overhead against the longest delay of a task
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    plot: Option<PathBuf>,

    /// Replace files that Weir did not write
    #[arg(long)]
    force: bool,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// Decides between the remaining choices of limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Goal {
    /// The least product of overhead and longest delay
    Knee,
    /// The fewest timer interrupts: bursts as large as deadlines allow
    FewestInterrupts,
}

const AFTER: &str = "\
Every source that states a rate { expected, tolerated } gets a limit, except where it says \
policy = \"off\". Policies and timers that the file states stay. The burst of a bucket, and of a limit in \
hardware, is lowered only if no limits do with it, and only as far as it has to be. Other bursts are \
chosen. Among all limits with which every deadline holds, those are chosen that:
  1. let through the largest common share of the tolerated rates, in whole percent; of a source \
that states only what is expected, that;
  2. then have the least product of overhead and longest delay: there, one percent less delay begins \
to cost more than one percent more overhead;
  3. then need the fewest timer interrupts per second at worst, and let through the least more than \
they are asked for. With --aim fewest-interrupts this comes before 2.

Examples:
  weir tune examples/shared-timer/system.toml
  weir tune system.toml --timer-rate 110Hz --plot front.svg
  weir tune system.toml --write && weir check system.toml

The exit code is 0 if there are such limits, 1 if there are none (and it is said which demands \
cannot hold together), and 2 if the file cannot be used.";

/// Parses a percentage: `10%` and `10` are 0.1.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=MOST_PERCENT).contains(&percent) => Ok(percent / 100.0),
        _ => Err(format!(
            "write a percentage from 0% to {MOST_PERCENT}%, for example 10%"
        )),
    }
}

/// The largest over-admission. With a larger one, the limit would have little to do with the rate.
const MOST_PERCENT: f64 = 1000.0;

/// Executes the command.
///
/// # Errors
/// Fails if a file cannot be read or written, if it does not contain a valid system, or if the
/// system has no source to tune.
pub(crate) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let name = arguments.system.to_string_lossy();
    let text = read_text(&arguments.system)?;
    let read = parse_to_be_limited(&name, &text)?;
    weir_generate::check(&read).map_err(|refusal| refusal.in_file(&name, &text))?;
    let longest_delay = arguments
        .longest_delay
        .map(|delay| delay.cycles(read.cpu.clock_hz))
        .transpose()
        .into_diagnostic()
        .wrap_err("--longest-delay")?;
    let options = Options {
        over_admission: arguments.over_admission,
        timer_rate: arguments.timer_rate,
        longest_delay,
        aim: match arguments.aim {
            Goal::Knee => Aim::Knee,
            Goal::FewestInterrupts => Aim::FewestInterrupts,
        },
    };
    let session = Session::new(&name, &text, options)?;
    if let Some(idleness) = session.idleness() {
        return Err(conflict::nothing_to_tune(&session, idleness));
    }
    if arguments.timer_rate.is_some() && !session.task().tuned.iter().any(TunedSource::may_share) {
        return Err(miette!(
            help = "only bursty limits share a timer: state policy = \"bursty\", or no limit, for a source that is to share it",
            "--timer-rate has no timer to set: no source may share one"
        ));
    }
    // The output files are opened before the search, so that errors are reported early.
    let mut outputs = Outputs::new(arguments.force);
    outputs.reads(&arguments.system);
    let mut place = |path: &Option<PathBuf>, mark| -> miette::Result<Option<Place>> {
        let place = path.as_deref().map(|path| outputs.file(path, mark));
        Ok(place.transpose()?)
    };
    let copy = place(&arguments.output, None)?;
    let picture = place(&arguments.plot, Some(PICTURE_MARK))?;
    let patience = Patience::with_lines(PARTS, !arguments.json);
    patience.begins("limits and shared timers");
    let so_far = AtomicUsize::new(0);
    let tuned = session.tune(&|done, all| {
        let part = done * STEPS / all.max(1);
        while so_far.fetch_max(part, Ordering::Relaxed) < part {
            patience.advances(1);
        }
    });
    let Some(tuned) = tuned else {
        patience.begins("which demands cannot hold together");
        let conflict = session.explain();
        drop(patience);
        let told = conflict::tell(&session, &conflict);
        let answer = json::conflict(&session, &conflict, &told);
        print_answer(&answer, arguments.json, || {
            let lines: Vec<String> = told.iter().map(|line| text::wrapped(line)).collect();
            lines.join("\n")
        })?;
        return Ok(Outcome::Bad);
    };
    drop(patience);
    let summary = summary::Summary::new(&session, &tuned, tuned.text != text);
    if let Some(place) = picture {
        let svg = front::plot(&summary).to_svg().into_diagnostic()?;
        write_all([(place, svg.as_bytes())]).into_diagnostic()?;
    }
    let written = if arguments.write {
        replace(&arguments.system, &text, &tuned.text)?;
        Some(arguments.system.as_path())
    } else if let Some(place) = copy {
        write_all([(place, tuned.text.as_bytes())]).into_diagnostic()?;
        arguments.output.as_deref()
    } else {
        None
    };
    let answer = json::TuneAnswer {
        feasible: true,
        summary: &summary,
    };
    print_answer(&answer, arguments.json, || {
        let of_file = text::File {
            name: &arguments.system,
            written,
        };
        text::text(&summary, &of_file, is_coloured())
    })?;
    Ok(Outcome::Good)
}

/// The number of steps of the progress bar.
const PARTS: u64 = 50;
const STEPS: usize = 50;

/// Replaces the text `before` of the file by `text`. Fails if the file has changed meanwhile.
fn replace(path: &Path, before: &str, text: &str) -> miette::Result<()> {
    if read_text(path)? != before {
        bail!(
            help = "nothing was written: run weir tune again",
            "{} has changed since it was read",
            path.display()
        );
    }
    if text == before {
        return Ok(());
    }
    write_all([(Outputs::update(path), text.as_bytes())]).into_diagnostic()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{replace, share};

    #[test]
    fn a_file_that_has_changed_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("system.toml");
        std::fs::write(&path, "theirs").unwrap();
        let error = replace(&path, "before", "ours").unwrap_err();
        assert!(error.to_string().contains("has changed"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
        replace(&path, "theirs", "ours").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "ours");
    }

    #[test]
    fn shares_are_percentages() {
        assert_eq!(share("10%"), Ok(0.1));
        assert_eq!(share("0"), Ok(0.0));
        assert_eq!(share("12.5 %"), Ok(0.125));
        for bad in ["-1%", "1001%", "ten", "NaN", "inf", ""] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}
