// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir linux run` runs a system until it is asked to stop, and then restores all settings.
use std::fs::File;
use std::iter;
use std::mem;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic as _, WrapErr as _};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use sd_notify::NotifyState;
use serde_json::json;
use weir_report::plural;
use weir_report::terminal::{Outcome, printable};

use super::{StateArgs, SystemArgs, able};
use crate::instance::Run;
use crate::parts::{Messages, RunParts};
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

    /// Trust the other ends of veth pairs that cannot be looked at to compute checksums, in the
    /// mode exact
    #[arg(long)]
    yes_checksums: bool,

    /// Tell what happens as JSON, an object a line: `event` is ready, note, overload_begins,
    /// overload_ends, reloading or stopped
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
It changes what `weir linux plan` lists and nothing else; what a crashed run has left is put back \
first. It stays in the foreground, and tells systemd when it is ready. SIGHUP has it read the \
file anew: if that says something else, everything is put back and what it says then is carried \
out; if it cannot be carried out, that is said, and all goes on as before. Ctrl-C, SIGTERM and a \
terminal that goes end it. The exit code is 0 if it was stopped and everything is as it was \
before or as somebody else has set it since, 1 if something could not be put back, and 2 if it \
could not begin or go on: then nothing stays changed but what it names.";

/// Executes the command.
///
/// # Errors
/// Fails if the file describes no system for Linux, if this machine lacks something, or if the
/// kernel refuses a setting. All settings are restored in that case.
pub(super) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let mut node = arguments.node()?;
    // The system that ran before the file was read again.
    let mut before = None;
    // The signals are blocked before anything is changed. Otherwise Ctrl-C would end the process
    // without restoring anything.
    let signals = Signals::new()?;
    let mut messages = Messages::new(arguments.json);
    loop {
        let (end, is_whole) = carry_out(&node, arguments, &signals, &mut messages)?;
        match end {
            End::Stopped if is_whole => return Ok(Outcome::Good),
            End::Stopped => return Ok(Outcome::Bad),
            // Settings that could not be restored are retried, as after a crash.
            End::Another(new) => before = Some(mem::replace(&mut node, *new)),
            End::NotBegun(error) => {
                let Some(last) = before.take() else {
                    return Err(error);
                };
                tell_reload(
                    &last,
                    &messages,
                    &format!(
                        "the changed file cannot be carried out, and the earlier one is carried out again: {error:?}"
                    ),
                );
                node = last;
            }
        }
    }
}

impl Args {
    /// Reads the file. Checks that this machine can run the system, and that the user has agreed to
    /// the options that need it.
    fn node(&self) -> miette::Result<Node> {
        let node = self.system.node()?;
        able(&node, self.yes_checksums)?;
        if node.linux.mode.facts().demultiplexes && !self.yes_xdp {
            return Err(not_agreed(&node));
        }
        Ok(node)
    }
}

/// Reason why a run has ended.
enum End {
    /// A user or systemd has asked the run to end.
    Stopped,
    /// The file was read again and describes another system.
    Another(Box<Node>),
    /// The system could not be started, and all of its settings are restored.
    NotBegun(miette::Report),
}

/// Runs `node`, restores all settings, and returns whether that succeeded.
fn carry_out(
    node: &Node,
    arguments: &Args,
    signals: &Signals,
    messages: &mut Messages,
) -> miette::Result<(End, bool)> {
    let folder = &arguments.state.state;
    let (mut journal, left) = match Journal::open(folder).into_diagnostic() {
        Ok(opened) => opened,
        Err(error) => return Ok((End::NotBegun(error), true)),
    };
    let ended = restored::forget_crashed(folder)
        .map_err(miette::Report::from)
        .and_then(|()| {
            for left in &left {
                let count = restored::count(left);
                messages.line(&format!(
                    "a crashed run had left settings: {count} are put back"
                ));
                restored::remarks(left)
                    .iter()
                    .for_each(|line| messages.line(line));
            }
            until_told(node, arguments, signals, &mut journal, messages)
        });
    // Settings are restored after an error, too. What cannot be restored is reported.
    let restoration = journal.restore();
    let remarks = restored::remarks(&restoration);
    remarks.iter().for_each(|line| messages.line(line));
    let (end, status) = ended?;
    if matches!(end, End::Stopped) {
        messages.step(
            "stopped",
            &format!("{} is stopped", node.name),
            json!({
                "system": node.name,
                "status": status,
                "put_back": restored::count(&restoration),
                "complete": restoration.is_complete(),
            }),
        );
    }
    Ok((end, restoration.is_complete()))
}

/// Runs `node` until something else is asked for. Then everything ends except for the changes in
/// the journal. Also returns the last status.
fn until_told(
    node: &Node,
    arguments: &Args,
    signals: &Signals,
    journal: &mut Journal,
    messages: &mut Messages,
) -> miette::Result<(End, serde_json::Value)> {
    let (mut notice, mut parts) = match begin(node, arguments, journal, messages) {
        Ok(begun) => begun,
        Err(error) => return Ok((End::NotBegun(error), serde_json::Value::Null)),
    };
    notify(&[NotifyState::Ready]);
    messages.step(
        "ready",
        &format!(
            "{}: {}; {} changed. Ctrl-C ends it and puts back what was there.",
            node.name,
            notice.run.about(),
            plural(
                notice.run.status["changes"].as_u64().unwrap_or(0),
                "setting"
            )
        ),
        json!({ "schema": 1, "run": notice.run }),
    );
    let end = loop {
        match wait(signals, &parts)? {
            SignalRequest::Nothing => {}
            SignalRequest::ToEnd => {
                notify(&[NotifyState::Stopping]);
                break End::Stopped;
            }
            SignalRequest::ToReload => {
                if let Some(new) = reloaded(node, arguments, messages) {
                    break End::Another(new);
                }
            }
        }
        if parts.turn(journal, messages)? {
            // A full disk is no reason to end, since the journal already has the settings.
            if let Err(error) = notice.tell(parts.status()) {
                messages.once(&format!(
                    "the status for other commands cannot be written: {error:#}"
                ));
            }
        }
    };
    Ok((end, parts.status()))
}

/// Makes the changes for `node`, and writes the file by which other commands find this run.
fn begin<'a>(
    node: &Node,
    arguments: &'a Args,
    journal: &mut Journal,
    messages: &mut Messages,
) -> miette::Result<(RunNotice<'a>, RunParts)> {
    let mut notice = RunNotice::new(&arguments.state.state, node, &arguments.system.system)?;
    let mut parts =
        RunParts::start(node, arguments.yes_checksums).wrap_err("nothing was changed")?;
    parts
        .turn(journal, messages)
        .wrap_err("everything was put back except for the settings named above")?;
    notice.tell(parts.status())?;
    Ok((notice, parts))
}

/// Reports the result of a reload.
fn tell_reload(node: &Node, messages: &Messages, text: &str) {
    messages.step(
        "reloading",
        text,
        json!({ "system": node.name, "text": text }),
    );
}

/// Reads the file again. `None` if the system in it is unchanged or cannot run here.
fn reloaded(node: &Node, arguments: &Args, messages: &Messages) -> Option<Box<Node>> {
    let times = NotifyState::monotonic_usec_now().ok();
    let reloading: Vec<_> = iter::once(NotifyState::Reloading).chain(times).collect();
    notify(&reloading);
    let report = |text: &str| tell_reload(node, messages, text);
    let file = &arguments.system.system;
    let new = if file.is_file() {
        arguments.node()
    } else {
        // Only regular files are read, since reading a pipe would block.
        Err(miette::miette!("{} is no file", printable(file)))
    };
    let with_room = new.and_then(|new| {
        if new != *node {
            Journal::has_room(&arguments.state.state).into_diagnostic()?;
        }
        Ok(new)
    });
    let new = match with_room {
        Ok(new) if new == *node => {
            report("the file asks for the same as before, and the run goes on");
            None
        }
        Ok(new) => {
            report("the file has changed: everything is put back, and the new file is carried out");
            Some(Box::new(new))
        }
        Err(error) => {
            report(&format!(
                "the changed file cannot be carried out, and the run goes on as before: {error:?}"
            ));
            None
        }
    };
    if new.is_none() {
        notify(&[NotifyState::Ready]);
    }
    new
}

fn not_agreed(node: &Node) -> miette::Report {
    let names: Vec<&str> = node
        .interfaces
        .iter()
        .map(|interface| interface.name.as_str())
        .collect();
    miette::miette!(
        help = "`weir linux plan` says what that may cost; add --yes-xdp if it may, or take the mode `native` or `predicted`",
        "the mode `exact` attaches an XDP program to {}, which may take its link down for a moment; nothing was changed",
        names.join(", ")
    )
}

/// A request that a signal makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignalRequest {
    Nothing,
    ToEnd,
    ToReload,
}

/// The signals that the run receives through a descriptor.
struct Signals {
    descriptor: SignalFd,
    /// Whether the run was started from a terminal, which may disappear.
    had_terminal: bool,
}

impl Signals {
    /// Receives the signals from now on. Call this before other threads exist, since they would
    /// receive the signals instead.
    fn new() -> miette::Result<Self> {
        let all = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
        all.thread_block().into_diagnostic()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self {
            descriptor: SignalFd::with_flags(&all, flags).into_diagnostic()?,
            had_terminal: has_terminal(),
        })
    }

    /// Returns the request of the signals that have arrived since the last call.
    fn request(&self) -> miette::Result<SignalRequest> {
        /// When the terminal disappears, the kernel itself sends the hang-up signal.
        const SI_KERNEL: i32 = 0x80;
        let mut request = SignalRequest::Nothing;
        while let Some(signal) = self.descriptor.read_signal().into_diagnostic()? {
            let is_reload = i32::try_from(signal.ssi_signo) == Ok(libc::SIGHUP)
                && signal.ssi_code != SI_KERNEL
                && (!self.had_terminal || has_terminal());
            if !is_reload {
                request = SignalRequest::ToEnd;
            } else if request == SignalRequest::Nothing {
                request = SignalRequest::ToReload;
            }
        }
        Ok(request)
    }
}

fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// Waits until a part has work or a request arrives, and returns the request.
fn wait(signals: &Signals, parts: &RunParts) -> miette::Result<SignalRequest> {
    let watchdog = sd_notify::watchdog_enabled();
    if watchdog.is_some() {
        notify(&[NotifyState::Watchdog]);
    }
    let mut time = parts.due().saturating_duration_since(Instant::now());
    if let Some(most) = watchdog {
        time = time.min(most / 3);
    }
    // A fraction of a millisecond is rounded up. Otherwise a wait of 0 ms would be repeated in a
    // busy loop.
    let timeout = PollTimeout::try_from(time + Duration::from_micros(999)).into_diagnostic()?;
    let polled = |descriptor| PollFd::new(descriptor, PollFlags::POLLIN);
    let mut all: Vec<PollFd<'_>> = iter::once(signals.descriptor.as_fd())
        .chain(parts.descriptors())
        .map(polled)
        .collect();
    match poll(&mut all, timeout) {
        Ok(_) | Err(Errno::EINTR) => signals.request(),
        Err(error) => Err(error).into_diagnostic(),
    }
}

/// Notifies systemd if it has started this process.
fn notify(states: &[NotifyState<'_>]) {
    // An error is ignored: the run does not depend on systemd.
    let _ = sd_notify::notify(states);
}

/// The file by which other commands find this run. It is removed on drop.
struct RunNotice<'a> {
    folder: &'a Path,
    run: Run,
}

impl<'a> RunNotice<'a> {
    fn new(folder: &'a Path, node: &Node, file: &Path) -> miette::Result<Self> {
        let process = Thread::find(nix::unistd::getpid().as_raw()).into_diagnostic()?;
        let notice = Self {
            folder,
            run: Run {
                system: node.name.clone(),
                file: file.canonicalize().into_diagnostic()?,
                mode: node.linux.mode.name().to_owned(),
                interfaces: node
                    .interfaces
                    .iter()
                    .map(|interface| interface.name.clone())
                    .collect(),
                process: process
                    .ok_or_else(|| miette::miette!("/proc does not show this process"))?,
                status: json!({ "changes": 0 }),
            },
        };
        notice.run.tell(folder)?;
        Ok(notice)
    }

    fn tell(&mut self, status: serde_json::Value) -> miette::Result<()> {
        if self.run.status != status {
            self.run.status = status;
            self.run.tell(self.folder)?;
        }
        Ok(())
    }
}

impl Drop for RunNotice<'_> {
    fn drop(&mut self) {
        // If the file cannot be removed, other commands treat the run as crashed. That is correct,
        // since the process ends now.
        let _ = self.run.forget(self.folder);
    }
}
