// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output that several commands share: a system in JSON, and the progress of long work.
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use weir_model::System;

/// The system in a JSON answer.
#[derive(Debug, Serialize)]
pub(crate) struct About<'a> {
    name: &'a str,
    sha256: &'a str,
    board: Option<&'a str>,
    flavour: Option<&'a str>,
    clock_hz: u64,
}

impl<'a> About<'a> {
    pub(crate) fn of(system: &'a System) -> Self {
        Self {
            name: &system.name,
            sha256: &system.sha256,
            board: system.cpu.board.as_deref(),
            flavour: system.cpu.flavour.as_deref(),
            clock_hz: system.cpu.clock_hz,
        }
    }
}

/// Shows the progress of work that may take long. On a terminal it is a bar, which disappears when
/// this value is dropped. Elsewhere it is, if wanted, an occasional line on standard error. Nothing
/// is shown before [`PATIENT_FOR`] has passed.
pub(crate) struct Patience {
    bar: ProgressBar,
    /// Dropping this sender ends the thread that waits to show the progress.
    _wait: Option<Sender<()>>,
}

/// The time after which the progress is shown.
const PATIENT_FOR: Duration = Duration::from_secs(2);
/// The time between two lines.
const LINE_EVERY: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(120);
const TEMPLATE: &str = "{spinner} {wide_bar} {percent:>3} % {msg}, {elapsed} so far, {eta} left";

impl Patience {
    /// Makes a progress of `steps` steps, which is shown on a terminal only.
    pub(crate) fn new(steps: u64) -> Self {
        Self::with_lines(steps, false)
    }

    /// Makes a progress of `steps` steps. If `lines` is true, it is also shown as lines when there
    /// is no terminal.
    pub(crate) fn with_lines(steps: u64, lines: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let is_terminal = io::stderr().is_terminal();
        if !is_terminal && !lines {
            return Self { bar, _wait: None };
        }
        let (wait, waits) = mpsc::channel();
        let shown = bar.clone();
        std::thread::spawn(move || {
            let is_over = |within| waits.recv_timeout(within) != Err(RecvTimeoutError::Timeout);
            if is_over(PATIENT_FOR) {
                return;
            }
            if is_terminal {
                if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
                    shown.set_style(style);
                }
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
                return;
            }
            loop {
                let percent = 100 * shown.position() / shown.length().unwrap_or(1).max(1);
                // The amount of some work is unknown, so that it has no percentage.
                let percent = match percent {
                    0 => String::new(),
                    percent => format!("{percent} % "),
                };
                let so_far = shown.elapsed().as_secs();
                eprintln!("{percent}{}, {so_far} s so far", shown.message());
                if is_over(LINE_EVERY) {
                    return;
                }
            }
        });
        Self {
            bar,
            _wait: Some(wait),
        }
    }

    /// Shows which work has begun.
    pub(crate) fn begins(&self, what: &'static str) {
        self.bar.set_message(what);
    }

    /// Counts `steps` as done.
    pub(crate) fn advances(&self, steps: u64) {
        self.bar.inc(steps);
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
