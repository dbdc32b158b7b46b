// SPDX-License-Identifier: MIT OR Apache-2.0
//! What several commands print: a system in JSON, and the progress of long work.
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use weir_model::System;

/// The system that an answer in JSON is about.
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

/// The progress of work that may take long: a bar on a terminal, and elsewhere, if that is wanted,
/// now and then a line on standard error. It appears only after [`PATIENT_FOR`]. The bar disappears
/// when this value is dropped.
pub(crate) struct Patience {
    bar: ProgressBar,
    /// Dropping it ends the thread that waits to show the progress.
    _wait: Option<Sender<()>>,
}

/// Time after which the progress appears.
const PATIENT_FOR: Duration = Duration::from_secs(2);
/// Time between two lines.
const LINE_EVERY: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(120);
const TEMPLATE: &str = "{spinner} {wide_bar} {percent:>3} % {msg}, {elapsed} so far, {eta} left";

impl Patience {
    /// The progress of so many steps, on a terminal only.
    pub(crate) fn new(steps: u64) -> Self {
        Self::with_lines(steps, false)
    }

    /// The progress of so many steps. Elsewhere than on a terminal, it appears if `lines` says so.
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
                // Of some work it is not known how much it is.
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

    /// Says what is under way.
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
