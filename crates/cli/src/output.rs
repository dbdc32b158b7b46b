// SPDX-License-Identifier: MIT OR Apache-2.0
//! What several commands print: a system in JSON, and a progress bar.
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

/// A progress bar for work that may take long. It appears only on a terminal and only after
/// [`PATIENT_FOR`], and disappears when this value is dropped.
pub(crate) struct Patience {
    bar: Option<ProgressBar>,
    /// Dropping it ends the thread that waits to show the bar.
    _wait: Option<Sender<()>>,
}

/// Time after which the bar appears.
const PATIENT_FOR: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(120);
const TEMPLATE: &str = "{spinner} {wide_bar} {percent:>3} % {msg}, {elapsed} so far, {eta} left";

impl Patience {
    /// A bar for so many steps.
    pub(crate) fn new(steps: u64) -> Self {
        if !io::stderr().is_terminal() {
            return Self {
                bar: None,
                _wait: None,
            };
        }
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
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

    /// Says what is under way.
    pub(crate) fn begins(&self, what: &'static str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what);
        }
    }

    /// Counts `steps` as done.
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
