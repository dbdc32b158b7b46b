// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir linux top` shows live for which processes interrupts are handled, and from which processes
//! they take time.
mod screen;
mod view;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use miette::IntoDiagnostic as _;
use serde_json::{Value, json};

use super::{StateArgs, able_to_see};
use crate::account::{AccountReport, Accountant, Options};
use crate::instance::{self, Run};
use crate::machine::Capability;
use crate::receivers::{self, Follower, RuleSet};
use view::View;
use weir_report::terminal::{Outcome, is_coloured, print, print_json, print_more};

/// Period in which a run writes its account.
const PERIOD: Duration = Duration::from_secs(2);
/// Most processes in a printed table.
const MOST: usize = 40;

/// Show whom interrupts are for, and whom they are taken from, as it changes
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(super) struct Args {
    #[command(flatten)]
    state: StateArgs,

    /// Show one interval of 2 s, and end
    #[arg(long)]
    once: bool,

    /// Print each interval as JSON, an object a line: `rates` of the interval, and the `account`
    /// since it was begun
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
It shows the account of a run (`accounting` in [linux] of its system file); where none runs that \
keeps one, it measures by itself, for which it needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, and \
charges nothing to anybody after it has ended. `used` is the processor time that the kernel \
books; `charged` are interrupts for a process while others ran; `taken` are interrupts in its \
time that were not for it. Both are reported: a stock scheduler gives nothing back. Where the \
output is no terminal, each interval is printed as text. The exit code is 0, or 2 if nothing can \
be measured.";

/// Executes the command.
///
/// # Errors
/// Fails when no run keeps an account and this process cannot keep one.
pub(super) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let mut source = AccountSource::find(&arguments.state.state)?;
    let mut before = source.report()?;
    let mut next = || -> miette::Result<Option<(View, AccountReport)>> {
        let now = source.report()?;
        Ok(View::next(&mut before, &now).map(|view| (view, now)))
    };
    if !arguments.once && !arguments.json && io::stdout().is_terminal() {
        std::thread::sleep(PERIOD);
        screen::show(PERIOD, || Ok(next()?.map(|(view, _)| view)))?;
        return Ok(Outcome::Good);
    }
    loop {
        std::thread::sleep(PERIOD);
        let Some((view, report)) = next()? else {
            continue;
        };
        let output = json!({ "schema": 1, "rates": view, "account": report });
        if arguments.once {
            if arguments.json {
                print_json(&output)?;
            } else {
                print(&view.text(MOST, is_coloured()))?;
            }
            return Ok(Outcome::Good);
        }
        let text = if arguments.json {
            output.to_string()
        } else {
            view.text(MOST, is_coloured()) + "\n"
        };
        if !print_more(&text)? {
            return Ok(Outcome::Good);
        }
    }
}

/// Where the account comes from.
enum AccountSource {
    /// A run keeps the account, and writes it to `folder`.
    Run { run: Box<Run>, folder: PathBuf },
    /// This process keeps the account.
    Own(Box<(Follower, Accountant)>),
}

/// The account that a run has written last. `None` if it keeps no account.
fn account_of(run: &Run) -> Option<AccountReport> {
    let account: Option<&Value> = run.status.get("account");
    account.and_then(|account| serde_json::from_value(account.clone()).ok())
}

impl AccountSource {
    fn find(folder: &Path) -> miette::Result<Self> {
        let runs = instance::all(folder)?.into_iter();
        let mut keeping = runs.filter(|run| run.lives() && account_of(run).is_some());
        if let Some(run) = keeping.next() {
            let folder = folder.to_owned();
            return Ok(Self::Run {
                run: Box::new(run),
                folder,
            });
        }
        let help = "no run keeps an account: add `accounting = \"packets\"` to [linux] of its system file, or start this as root";
        able_to_see(
            "whom interrupts are for",
            &[Capability::Bpf, Capability::NetAdmin, Capability::Perfmon],
            help,
        )?;
        let failed = |error: String| miette::miette!(help = help, "{error}");
        let follower = Follower::start(RuleSet::default(), receivers::Options::default());
        let follower = follower.map_err(|error| failed(error.to_string()))?;
        let accountant = Accountant::start(Options::default());
        let accountant = accountant.map_err(|error| failed(error.to_string()))?;
        Ok(Self::Own(Box::new((follower, accountant))))
    }

    /// Returns the account up to now.
    fn report(&mut self) -> miette::Result<AccountReport> {
        match self {
            Self::Run { run, folder } => {
                let mut runs = instance::all(folder)?.into_iter();
                let now = runs.find(|now| now.process == run.process && now.lives());
                let account = now.as_ref().and_then(account_of);
                account.ok_or_else(|| {
                    miette::miette!(
                        "the run of `{}` has ended, and its account with it",
                        run.system
                    )
                })
            }
            Self::Own(own) => {
                let (follower, accountant) = &mut **own;
                follower.poll(Duration::ZERO).into_diagnostic()?;
                accountant.turn(follower.table(), None).into_diagnostic()?;
                Ok(accountant.report())
            }
        }
    }
}
