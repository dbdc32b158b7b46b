// SPDX-License-Identifier: GPL-3.0-or-later
//! `weir-lab bench`: runs experiments and long tests, and records their results in the ledger.
use std::process::Command;
use std::time::Duration;

use miette::{IntoDiagnostic, miette};
use weir_report::terminal::Outcome;
use weir_report::{Outputs, write_all};

use crate::experiment::Checkout;
use crate::ledger::{self, Entry, Form, Ledger, Work};

/// Run experiments and the product's long tests, and note in papers/ledger.json what was seen
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Experiments, such as regehr2005/fig1, and long tests, such as long/core; all if none is
    /// named
    name: Vec<String>,

    /// The form: short or whole; both if it is not given
    #[arg(long, value_enum)]
    form: Option<FormArgument>,

    /// Leave out what is not stale: its inputs and tools are those of the ledger
    #[arg(long)]
    stale: bool,

    /// List what would run
    #[arg(long)]
    list: bool,
}

/// The form of an experiment, as the command line names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FormArgument {
    /// Runs only the part that the experiment's file states for `--quick`.
    Short,
    /// Runs the whole experiment.
    Whole,
}

impl FormArgument {
    fn form(self) -> Form {
        match self {
            Self::Short => Form::Short,
            Self::Whole => Form::Whole,
        }
    }
}

/// The time limit of one experiment. No experiment comes near it.
const MOST: Duration = Duration::from_secs(24 * 3600);

/// Executes the command.
///
/// # Errors
/// Returns an error if a name is unknown, if the repository has uncommitted changes (a ledger
/// describes a commit), or if a run fails.
pub fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let place = Checkout::find(&std::env::current_dir().into_diagnostic()?)?;
    let mut ledger = Ledger::load(&place)?;
    let chosen = chosen(&place, &ledger, arguments)?;
    if arguments.list {
        for work in &chosen {
            say!("{} {}", work.name, work.form);
        }
        return Ok(Outcome::Good);
    }
    must_be_committed(&place)?;
    let mut is_good = true;
    for (index, work) in chosen.iter().enumerate() {
        tell!(
            "bench {}/{}: {} {}",
            index + 1,
            chosen.len(),
            work.name,
            work.form
        );
        match ledger::run(&place, work, MOST) {
            Ok(seen) => {
                is_good &= seen.fallen.is_empty();
                ledger.note(Entry {
                    name: work.name.clone(),
                    form: work.form,
                    inputs: ledger::checksum_at(&place, "HEAD", work)?,
                    date: today()?,
                    tools: ledger::tools(&work.kind),
                    seconds: seen.seconds,
                    met: seen.met,
                    missed: seen.missed,
                });
                // Write the ledger after each run, so that a later failure loses nothing.
                write(&place, &ledger)?;
            }
            Err(error) => {
                is_good = false;
                tell!("{error}");
            }
        }
    }
    Ok(Outcome::good_if(is_good))
}

fn chosen(place: &Checkout, ledger: &Ledger, arguments: &Args) -> miette::Result<Vec<Work>> {
    let all = ledger::all(place)?;
    for name in &arguments.name {
        if !all.iter().any(|work| work.name == *name) {
            return Err(miette!(
                help = "`weir reproduce --list` has the experiments, `scripts/long.sh --list` the long tests",
                "there is no experiment and no long test `{name}`"
            ));
        }
    }
    let is_named = |work: &Work| arguments.name.is_empty() || arguments.name.contains(&work.name);
    let is_form = |work: &Work| arguments.form.is_none_or(|form| form.form() == work.form);
    let mut chosen = Vec::new();
    for work in all {
        if !is_named(&work) || !is_form(&work) {
            continue;
        }
        if arguments.stale {
            let inputs = ledger::checksum_at(place, "HEAD", &work)?;
            let is_fresh =
                |entry: &Entry| entry.inputs == inputs && entry.tools == ledger::tools(&work.kind);
            if ledger.entry(&work).is_some_and(is_fresh) {
                continue;
            }
        }
        chosen.push(work);
    }
    // Run the experiment that measures the costs first, because the curves of others need the
    // costs.
    chosen.sort_by_key(|work| work.name != "regehr2005/table2");
    Ok(chosen)
}

/// Writes the ledger and its page.
fn write(place: &Checkout, ledger: &Ledger) -> miette::Result<()> {
    let stale: Vec<(String, Form)> = ledger::all(place)?
        .iter()
        .filter(|work| {
            let inputs = ledger::checksum_at(place, "HEAD", work).ok();
            let entry = ledger.entry(work);
            entry.is_some_and(|entry| Some(&entry.inputs) != inputs.as_ref())
        })
        .map(|work| (work.name.clone(), work.form))
        .collect();
    let page = ledger::page(ledger, |entry| {
        stale.contains(&(entry.name.clone(), entry.form))
    });
    let json = ledger.to_json();
    let files = [
        (Outputs::update(&place.path(ledger::FILE)), json.as_bytes()),
        (Outputs::update(&place.path(ledger::PAGE)), page.as_bytes()),
    ];
    write_all(files).into_diagnostic()?;
    Ok(())
}

fn must_be_committed(place: &Checkout) -> miette::Result<()> {
    let mut git = Command::new("git");
    git.arg("-C").arg(place.path("")).args([
        "status",
        "--porcelain",
        "--",
        ".",
        ":!papers/ledger.json",
        ":!papers/LEDGER.md",
    ]);
    let changed = git.output().into_diagnostic()?;
    if !changed.status.success() {
        return Err(miette!(
            help = "run it in a clone of Weir's repository: a ledger is about a commit",
            "git knows no commit here: {}",
            String::from_utf8_lossy(&changed.stderr).trim()
        ));
    }
    if changed.stdout.is_empty() {
        return Ok(());
    }
    Err(miette!(
        help = "commit the changes first: a ledger is about what others can check out",
        "this tree has changes that are not committed:\n{}",
        String::from_utf8_lossy(&changed.stdout).trim_end()
    ))
}

/// Today's date in UTC, as in 2026-11-29.
fn today() -> miette::Result<String> {
    let said = Command::new("date").args(["-u", "+%F"]).output();
    let said = said.into_diagnostic()?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}
