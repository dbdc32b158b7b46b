// SPDX-License-Identifier: GPL-3.0-or-later
//! `weir-lab due`: runs as many experiments and long tests as fit into a given time, in rotation.
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, miette};
use weir_report::checksum;
use weir_report::terminal::Outcome;

use crate::experiment::Checkout;
use crate::ledger::{self, Entry, Ledger, RunError, Work};

/// Run as many experiments and long tests as a time allows: first those whose inputs have changed,
/// then others, chosen by the commit
#[derive(Debug, clap::Args)]
#[command(after_long_help = LONG_HELP)]
pub struct Args {
    /// How long it may take
    #[arg(long, value_name = "MINUTES", default_value_t = 20)]
    minutes: u64,

    /// The commit with which inputs are compared; if not given, the one before
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,

    /// List the order, and run nothing
    #[arg(long)]
    list: bool,
}

const LONG_HELP: &str = "\
What papers/ledger.json has as met and is missed now fails; what it has as missed, or does not have \
at all, is printed. With other versions of the tools than the ledger's, what fails is what misses its \
goal by more than the experiment's file allows. Experiments that only `make bench` runs are left out.

Exit: 0 nothing has failed, also if not everything could run; 1 something has failed.";

/// What the ledger does not have may take this long: others are to have their turn, too.
const LONGEST_UNKNOWN: Duration = Duration::from_secs(600);
/// The time that work takes which the ledger does not have.
const USUAL_SECONDS: u64 = 120;

/// Executes the command.
///
/// # Errors
/// The ledger cannot be read; git is missing; work that cannot be carried out.
pub fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let begun = Instant::now();
    let most = Duration::from_secs(arguments.minutes.saturating_mul(60));
    let place = Checkout::find(&std::env::current_dir().into_diagnostic()?)?;
    let ledger = Ledger::load(&place)?;
    let order = order(&place, arguments.since.as_deref())?;
    let mut failed = BTreeSet::new();
    let mut ran = 0;
    for (work, has_changed) in &order {
        let name = format!("{} {}", work.name, work.form);
        let why = if *has_changed {
            "changed"
        } else {
            "in its turn"
        };
        if arguments.list {
            say!("{name}: {why}");
            continue;
        }
        let left = most.saturating_sub(begun.elapsed());
        let entry = ledger.entry(work);
        let wanted = entry.map_or(USUAL_SECONDS, |entry| entry.seconds);
        // Allow half as much time again: this machine may be slower than the one that wrote the
        // ledger.
        if left < Duration::from_secs(wanted.saturating_mul(3) / 2) {
            continue;
        }
        if work.kind == "linux" && !has_kernels(&place, work)? {
            say!("{name}: left out, its kernel cannot be downloaded");
            continue;
        }
        tell!("due: {name}, {why}");
        let most = entry.map_or(left.min(LONGEST_UNKNOWN), |_| left);
        match ledger::run(&place, work, most) {
            Ok(seen) => {
                ran += 1;
                let fails = failures(work, entry, &seen);
                say!(
                    "{name}: {} met, {} missed in {} s{}",
                    seen.met,
                    seen.missed.len(),
                    seen.seconds,
                    if fails.is_empty() { "" } else { "; FAILED" }
                );
                for id in &seen.missed {
                    let how = match entry {
                        _ if fails.contains(id) => "NOT MET",
                        Some(entry) if entry.missed.contains(id) => "missed, as known",
                        _ => "missed; the ledger does not have it with these tools",
                    };
                    say!("  {id}: {how}");
                }
                if !fails.is_empty() {
                    failed.insert(name);
                }
            }
            Err(error @ RunError::Late { .. }) => say!("{error}: the time is over"),
            Err(error) if entry.is_none() => say!("{error}; the ledger does not have it"),
            Err(error) => {
                say!("{error}: FAILED");
                failed.insert(name);
            }
        }
    }
    if arguments.list {
        return Ok(Outcome::Good);
    }
    let left_out = order.len() - ran;
    if ran == 0 {
        say!("the time is too short: what the ledger does not have may take three minutes");
    }
    say!(
        "due: {ran} of {} ran in {} s, {} failed, {left_out} left to other commits",
        order.len(),
        begun.elapsed().as_secs(),
        failed.len()
    );
    Ok(Outcome::good_if(failed.is_empty()))
}

/// The exit code of [`KERNELS`] if a kernel cannot be downloaded.
const CANNOT_DOWNLOAD: i32 = 3;
/// The script that provides an experiment's kernels, relative to the repository's root.
const KERNELS: &str = "papers/scripts/kernels.sh";

/// Whether the kernels of an experiment on Linux are present or could be downloaded.
fn has_kernels(place: &Checkout, work: &Work) -> miette::Result<bool> {
    let mut script = Command::new(place.path(KERNELS));
    let status = script.arg(&work.name).status().into_diagnostic()?;
    Ok(status.code() != Some(CANNOT_DOWNLOAD))
}

/// The claims that count as failures of a run: those that the ledger records as met. If other
/// versions of the tools wrote the ledger entry, only claims that miss their goal by more than the
/// known amount count.
fn failures(work: &Work, entry: Option<&Entry>, seen: &ledger::Outcome) -> BTreeSet<String> {
    let Some(entry) = entry else {
        return BTreeSet::new();
    };
    let missed = if entry.tools == ledger::tools(&work.kind) {
        &seen.missed
    } else {
        &seen.fallen
    };
    missed.difference(&entry.missed).cloned().collect()
}

/// The work in the order in which it is due. The flag tells whether the inputs of the work have
/// changed.
fn order(place: &Checkout, since: Option<&str>) -> miette::Result<Vec<(Work, bool)>> {
    let commit = commit(place, "HEAD")?;
    // If the clone has no history, assume that nothing has changed.
    let before = match since {
        Some(since) => Some(self::commit(place, since)?),
        None => self::commit(place, "HEAD~1").ok(),
    };
    let mut order = Vec::new();
    for work in ledger::all(place)? {
        if work.is_for_bench {
            continue;
        }
        let has_changed = match &before {
            Some(before) => {
                ledger::checksum_at(place, before, &work)?
                    != ledger::checksum_at(place, &commit, &work)?
            }
            None => false,
        };
        order.push((work, has_changed));
    }
    order.sort_by_key(|(work, has_changed)| {
        (
            !has_changed,
            checksum(format!("{commit} {} {}", work.name, work.form).as_bytes()),
        )
    });
    Ok(order)
}

/// The full name of a commit.
fn commit(place: &Checkout, name: &str) -> miette::Result<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(place.path("")).args([
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &format!("{name}^{{commit}}"),
    ]);
    let said = git.output().into_diagnostic()?;
    if !said.status.success() {
        return Err(miette!(
            help = "run it in a clone of Weir's repository, and name one of its commits",
            "there is no commit `{name}` here"
        ));
    }
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Form;

    #[test]
    fn what_the_ledger_has_as_met_fails_and_what_it_does_not_have_is_shown() {
        let work = Work {
            name: "a/b".to_owned(),
            form: Form::Short,
            is_for_bench: false,
            kind: "simulation".to_owned(),
            bases: Vec::new(),
        };
        let set =
            |ids: &[&str]| -> BTreeSet<String> { ids.iter().map(ToString::to_string).collect() };
        let seen = ledger::Outcome {
            seconds: 1,
            met: 1,
            missed: set(&["known", "kept", "fallen"]),
            fallen: set(&["fallen"]),
        };
        let mut entry = Entry {
            name: work.name.clone(),
            form: work.form,
            inputs: String::new(),
            date: String::new(),
            tools: ledger::tools(&work.kind),
            seconds: 1,
            met: 3,
            missed: set(&["known"]),
        };
        assert_eq!(failures(&work, None, &seen), set(&[]));
        assert_eq!(
            failures(&work, Some(&entry), &seen),
            set(&["fallen", "kept"])
        );
        entry.tools.push("another 1.0".to_owned());
        assert_eq!(failures(&work, Some(&entry), &seen), set(&["fallen"]));
    }
}
