// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir linux run`: carries a system out until it is told to stop, and puts everything back.
use std::collections::HashSet;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic as _, WrapErr as _};
use sd_notify::NotifyState;
use serde_json::json;

use super::{Outcome, StateArgs, SystemArgs, able, print};
use crate::instance::Run;
use crate::plan;
use crate::restored;
use crate::settings::Journal;
use crate::system::Node;
use crate::threads::Thread;

/// An interface that was taken down and up has new threads, which get their policies so much later at the latest.
const PERIOD: Duration = Duration::from_secs(2);

/// Carry a system out until Ctrl-C or `weir linux stop`, and put everything back then
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(super) struct Args {
    #[command(flatten)]
    system: SystemArgs,

    #[command(flatten)]
    state: StateArgs,
}

const AFTER: &str = "\
It changes what `weir linux plan` lists and nothing else; what a crashed run has left is put back first. It stays in the foreground, and tells systemd when it is
ready. The exit code is 0 if it was stopped and everything is as it was before or as somebody else has set it since, 1 if something could not be put back, and 2
if it could not begin: then nothing has changed.";

/// Carries the command out.
///
/// # Errors
/// A file that is no system for Linux; what this machine does not have; a setting that is refused. Everything is put back then.
pub(super) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let node = arguments.system.node()?;
    able(&node)?;
    // Before anything is changed, since without it Ctrl-C would put nothing back.
    let stop = told_to_stop()?;
    let folder = &arguments.state.state;
    let (mut journal, left) = Journal::open(folder).into_diagnostic()?;
    restored::forget_crashed(folder)?;
    for left in &left {
        say(&format!(
            "a crashed run had left settings: {} are put back",
            restored::count(left)
        ));
        restored::remarks(left).iter().for_each(|line| say(line));
    }
    let mut told = Told::new(folder, &node, &arguments.system.system)?;
    let mut work = Work::new(&node);
    work.apply(&mut journal).wrap_err("nothing stays changed")?;
    told.tell(json!({ "changes": work.changes }))?;
    notify(&[NotifyState::Ready]);
    print(&format!(
        "{}: mode {} on {}; {} settings changed. Ctrl-C ends it and puts them back.",
        node.name,
        node.mode.name(),
        told.run.interfaces.join(", "),
        work.changes
    ))?;
    work.go_on(&mut journal, &stop, &mut told)?;
    notify(&[NotifyState::Stopping]);
    let restoration = journal.restore().into_diagnostic()?;
    restored::remarks(&restoration)
        .iter()
        .for_each(|line| say(line));
    print(&format!("{} is stopped", node.name))?;
    Ok(if restoration.is_complete() {
        Outcome::Good
    } else {
        Outcome::Bad
    })
}

/// Receives when the process is asked to end.
fn told_to_stop() -> miette::Result<Receiver<()>> {
    let (tell, told) = mpsc::channel();
    let handler = move || {
        // Nobody receives any more when it is about to end.
        let _ = tell.send(());
    };
    ctrlc::set_handler(handler).into_diagnostic()?;
    Ok(told)
}

/// To whoever looks at the terminal or the journal of the service.
fn say(line: &str) {
    eprintln!("weir linux: {line}");
}

/// Systemd, if it has started this.
fn notify(states: &[NotifyState<'_>]) {
    // Whether it listens changes nothing here.
    let _ = sd_notify::notify(states);
}

/// Lets other commands know of this run, until it is dropped.
struct Told<'a> {
    folder: &'a Path,
    run: Run,
}

impl<'a> Told<'a> {
    fn new(folder: &'a Path, node: &Node, file: &Path) -> miette::Result<Self> {
        let process = Thread::of(nix::unistd::getpid().as_raw()).into_diagnostic()?;
        let told = Self {
            folder,
            run: Run {
                system: node.name.clone(),
                file: file.canonicalize().into_diagnostic()?,
                mode: node.mode.name().to_owned(),
                interfaces: node.interfaces.iter().map(|of| of.name.clone()).collect(),
                process: process
                    .ok_or_else(|| miette::miette!("/proc does not show this process"))?,
                status: json!({ "changes": 0 }),
            },
        };
        told.run.tell(folder)?;
        Ok(told)
    }

    fn tell(&mut self, status: serde_json::Value) -> miette::Result<()> {
        if self.run.status != status {
            self.run.status = status;
            self.run.tell(self.folder)?;
        }
        Ok(())
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        // A file that stays is taken for that of a crashed run, which it then is.
        let _ = self.run.forget(self.folder);
    }
}

/// What is done while it runs.
struct Work<'a> {
    node: &'a Node,
    /// How many settings were changed.
    changes: usize,
    /// What was said already.
    said: HashSet<String>,
}

impl<'a> Work<'a> {
    fn new(node: &'a Node) -> Self {
        Self {
            node,
            changes: 0,
            said: HashSet::new(),
        }
    }

    /// Sets everything as it should be.
    fn apply(&mut self, journal: &mut Journal) -> miette::Result<()> {
        let native = plan::native(self.node).into_diagnostic()?;
        let report = native.apply(journal).into_diagnostic()?;
        self.changes += report.changes.len();
        for note in &report.notes {
            self.once(note.to_string());
        }
        Ok(())
    }

    fn once(&mut self, line: String) {
        if !self.said.contains(&line) {
            say(&line);
            self.said.insert(line);
        }
    }

    /// Until it is told to stop.
    fn go_on(
        &mut self,
        journal: &mut Journal,
        stop: &Receiver<()>,
        told: &mut Told<'_>,
    ) -> miette::Result<()> {
        let watchdog = sd_notify::watchdog_enabled();
        let period = watchdog.map_or(PERIOD, |most| PERIOD.min(most / 3));
        let mut looked = Instant::now();
        while stop.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
            if watchdog.is_some() {
                notify(&[NotifyState::Watchdog]);
            }
            if looked.elapsed() < PERIOD {
                continue;
            }
            looked = Instant::now();
            // An interface that has gone may come back; until then there is nothing to be done for it.
            if let Err(error) = self.apply(journal) {
                self.once(format!("{error:#}"));
            }
            told.tell(json!({ "changes": self.changes }))?;
        }
        Ok(())
    }
}
