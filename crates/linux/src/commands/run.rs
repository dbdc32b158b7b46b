// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir linux run`: carries a system out until it is told to stop, and puts everything back.
use std::iter;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic as _, WrapErr as _};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use sd_notify::NotifyState;
use serde_json::json;
use weir_model::LinuxMode;

use super::{Outcome, StateArgs, SystemArgs, able};
use crate::instance::Run;
use crate::parts::{Parts, Said};
use crate::restored;
use crate::settings::Journal;
use crate::system::Node;
use crate::threads::Thread;

/// Carry a system out until Ctrl-C or `weir linux stop`, and put everything back then
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(super) struct Args {
    #[command(flatten)]
    system: SystemArgs,

    #[command(flatten)]
    state: StateArgs,

    /// Attach an XDP program to the interfaces, in the mode exact; `plan` says what that may cost
    #[arg(long)]
    yes_xdp: bool,

    /// Trust the other ends of veth pairs that cannot be looked at to compute checksums, in the mode exact
    #[arg(long)]
    yes_checksums: bool,

    /// Tell what happens as JSON, an object a line: `event` is ready, note, overload_begins, overload_ends or stopped
    #[arg(long)]
    json: bool,
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
    able(&node, arguments.yes_checksums)?;
    if node.mode == LinuxMode::Exact && !arguments.yes_xdp {
        return Err(not_agreed(&node));
    }
    // Before anything is changed, since without it Ctrl-C would put nothing back.
    let stop = told_to_stop()?;
    let mut said = Said::new(arguments.json);
    let folder = &arguments.state.state;
    let (mut journal, left) = Journal::open(folder).into_diagnostic()?;
    restored::forget_crashed(folder)?;
    for left in &left {
        said.line(&format!(
            "a crashed run had left settings: {} are put back",
            restored::count(left)
        ));
        restored::remarks(left)
            .iter()
            .for_each(|line| said.line(line));
    }
    let mut told = Told::new(folder, &node, &arguments.system.system)?;
    // After the journal, so that they end before it puts everything back, also after an error.
    let mut parts = Parts::start(&node, arguments.yes_checksums).wrap_err("nothing was changed")?;
    parts
        .turn(&mut journal, &mut said)
        .wrap_err("nothing stays changed")?;
    told.tell(parts.status())?;
    notify(&[NotifyState::Ready]);
    said.step(
        "ready",
        &format!(
            "{}: {}; {} settings changed. Ctrl-C ends it and puts them back.",
            node.name,
            told.run.about(),
            told.run.status["changes"]
        ),
        json!({ "schema": 1, "run": told.run }),
    );
    while !wait(&stop, &parts)? {
        if parts.turn(&mut journal, &mut said)? {
            told.tell(parts.status())?;
        }
    }
    notify(&[NotifyState::Stopping]);
    let status = parts.status();
    drop(parts);
    let restoration = journal.restore().into_diagnostic()?;
    let remarks = restored::remarks(&restoration);
    remarks.iter().for_each(|line| said.line(line));
    said.step(
        "stopped",
        &format!("{} is stopped", node.name),
        json!({
            "system": node.name,
            "status": status,
            "put_back": restored::count(&restoration),
            "complete": restoration.is_complete(),
        }),
    );
    Ok(if restoration.is_complete() {
        Outcome::Good
    } else {
        Outcome::Bad
    })
}

fn not_agreed(node: &Node) -> miette::Report {
    let names: Vec<&str> = node.interfaces.iter().map(|of| of.name.as_str()).collect();
    miette::miette!(
        help = "`weir linux plan` says what that may cost; add --yes-xdp if it may, or take the mode `native` or `predicted`",
        "the mode `exact` attaches an XDP program to {}, which may take its link down for a moment; nothing was changed",
        names.join(", ")
    )
}

/// Readable when the process is asked to end.
fn told_to_stop() -> miette::Result<Arc<EventFd>> {
    let stop = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC).into_diagnostic()?);
    let told = stop.clone();
    let handler = move || {
        // It has room for more signals than anybody sends.
        let _ = told.write(1);
    };
    ctrlc::set_handler(handler).into_diagnostic()?;
    Ok(stop)
}

/// Waits until there is something to do; whether that is to end.
fn wait(stop: &EventFd, parts: &Parts) -> miette::Result<bool> {
    let watchdog = sd_notify::watchdog_enabled();
    if watchdog.is_some() {
        notify(&[NotifyState::Watchdog]);
    }
    let mut time = parts.due().saturating_duration_since(Instant::now());
    if let Some(most) = watchdog {
        time = time.min(most / 3);
    }
    // A part of a millisecond is waited for as a whole, not by asking again and again.
    let timeout = PollTimeout::try_from(time + Duration::from_micros(999)).into_diagnostic()?;
    let of = |descriptor| PollFd::new(descriptor, PollFlags::POLLIN);
    let mut all: Vec<PollFd<'_>> = iter::once(stop.as_fd())
        .chain(parts.descriptors())
        .map(of)
        .collect();
    match poll(&mut all, timeout) {
        // A signal, of which the next call tells.
        Ok(_) | Err(Errno::EINTR) => Ok(all[0].any() == Some(true)),
        Err(error) => Err(error).into_diagnostic(),
    }
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
