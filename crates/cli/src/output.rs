// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all commands do alike when they speak to their user.
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use weir_model::System;

/// Which system an answer in JSON is about.
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

/// A progress bar for work that may take long. It shows up only when it does, and only on a
/// terminal; it is gone when this is dropped.
pub(crate) struct Patience {
    bar: Option<ProgressBar>,
    /// Dropped to end the wait for the moment from which on the bar is worth showing.
    _wait: Option<Sender<()>>,
}

/// Whoever waits for less wants no bar.
const PATIENT_FOR: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(120);

impl Patience {
    /// For work of so many steps.
    pub(crate) fn new(steps: u64) -> Self {
        if !io::stderr().is_terminal() {
            return Self {
                bar: None,
                _wait: None,
            };
        }
        let bar = ProgressBar::with_draw_target(Some(steps + 1), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_bar} {msg} {elapsed}") {
            bar.set_style(style);
        }
        let (wait, waits) = mpsc::channel();
        let shown = bar.clone();
        std::thread::spawn(move || {
            if waits.recv_timeout(PATIENT_FOR) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        });
        Self {
            bar: Some(bar),
            _wait: Some(wait),
        }
    }

    /// The next step begins: `what` is being found out.
    pub(crate) fn begins(&self, what: &'static str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what);
            bar.inc(1);
        }
    }

    /// So many steps are done.
    pub(crate) fn advances(&self, steps: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(steps);
        }
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
