// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir tune`: chooses limits, bursts and shared timers, says what each choice costs, and writes
//! them into the file.
mod conflict;
mod front;
mod json;
mod summary;
mod text;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::ValueHint;
use miette::{IntoDiagnostic, WrapErr, bail, miette};
use weir_model::{Duration, Rate};
use weir_report::terminal::{Outcome, is_coloured, print_answer};
use weir_report::write_all;
use weir_tune::{Options, Session, TunedSource};

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
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// How much more than it is asked for a limit may let through
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = share, allow_hyphen_values = true)]
    over_admission: f64,

    /// The rate of the shared timer, in place of the lowest with which every deadline holds
    #[arg(long, value_name = "RATE")]
    timer_rate: Option<Rate>,

    /// The longest time for which interrupts together may hold the processor, for example 2ms
    #[arg(long, value_name = "TIME")]
    longest_delay: Option<Duration>,

    /// Draw overhead against the longest delay of a task
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    plot: Option<PathBuf>,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Every source that states a rate { expected, tolerated } gets a limit, except where it says
policy = \"off\". A policy that the file states stays. Among all limits with which every deadline
holds, those are chosen that
  1. let through the largest common share of the tolerated rates, in whole percent; of a source that
     states only what is expected, that;
  2. then need the fewest timer interrupts per second at worst;
  3. then let through the least more than they are asked for.

Examples:
  weir tune examples/ethernut-node/system.toml
  weir tune system.toml --timer-rate 110Hz --plot front.svg
  weir tune system.toml --write && weir check system.toml

The exit code is 0 if there are such limits, 1 if there are none (and it is said which demands cannot
hold together), and 2 if the file cannot be used.";

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

/// Largest over-admission: beyond it a limit has nothing to do with the rate that it is for.
const MOST_PERCENT: f64 = 1000.0;

/// Carries the command out.
///
/// # Errors
/// Fails if a file cannot be read or written or is no system, or if the system has no source to
/// tune.
pub(crate) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    // The model's reader explains best what is wrong with a system file.
    let read = weir_model::load(&arguments.system)?;
    let text = read_text(&arguments.system)?;
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
    };
    let session = Session::new(&arguments.system.to_string_lossy(), &text, options)?;
    if session.task().tuned.is_empty() {
        return Err(miette!(
            help = "state for each source that is to be tuned what a healthy one does and what the system can do without: \
                    rate = { expected = \"300Hz\", tolerated = \"1kHz\" }; a source with policy = \"off\" stays without a limit",
            "nothing is to be tuned: no source states an expected or a tolerated rate that a timer could limit"
        ));
    }
    if arguments.timer_rate.is_some() && !session.task().tuned.iter().any(TunedSource::may_share) {
        return Err(miette!(
            help = "only bursty limits share a timer: state policy = \"bursty\", or no limit, for a source that is to share it",
            "--timer-rate has no timer to set: no source may share one"
        ));
    }
    let patience = Patience::new(PARTS);
    let so_far = AtomicUsize::new(0);
    let tuned = session.tune(&|done, all| {
        let part = done * STEPS / all.max(1);
        while so_far.fetch_max(part, Ordering::Relaxed) < part {
            patience.begins("which sources share a timer");
        }
    });
    let Some(tuned) = tuned else {
        let conflict = session.explain();
        drop(patience);
        let told = conflict::tell(&session, &conflict);
        let answer = json::conflict(&session, &conflict, &told);
        print_answer(&answer, arguments.json, || told)?;
        return Ok(Outcome::Bad);
    };
    drop(patience);
    let summary = summary::Summary::new(&session, &tuned, tuned.text != text);
    if let Some(path) = &arguments.plot {
        let svg = front::plot(&summary).to_svg().into_diagnostic()?;
        write_file(path, svg.as_bytes())?;
    }
    let written = if arguments.write {
        replace(&arguments.system, &text, &tuned.text)?;
        Some(arguments.system.as_path())
    } else if let Some(path) = &arguments.output {
        write_file(path, tuned.text.as_bytes())?;
        Some(path.as_path())
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

/// Steps of the progress bar.
const PARTS: u64 = 50;
const STEPS: usize = 50;

fn read_text(path: &Path) -> miette::Result<String> {
    std::fs::read_to_string(path)
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot read {}", path.display()))
}

/// Replaces `before` by `text` in the file, unless the file has changed meanwhile.
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
    // Follow a link: the file that it leads to is replaced, not the link.
    let place = path
        .canonicalize()
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot find {}", path.display()))?;
    let permissions = std::fs::metadata(&place).map(|of| of.permissions());
    write_file(&place, text.as_bytes())?;
    permissions
        .and_then(|permissions| std::fs::set_permissions(&place, permissions))
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot set the permissions of {}", place.display()))
}

/// Writes a file completely or not at all.
fn write_file(path: &Path, content: &[u8]) -> miette::Result<()> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        bail!(
            help = "write the name of a file",
            "{} is no name of a file",
            path.display()
        );
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    write_all(folder, &[(name, content)]).into_diagnostic()?;
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
