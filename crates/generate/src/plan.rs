// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of the generated code: every name, channel and number. The plan is complete before any
//! text is written.
use std::fmt;

use serde::{Serialize, Serializer};
use weir_model::{Place, Policy, Source, Timing};

use weir_boards::{Flavour, Port, TimerCode};

use crate::rtos::RtosPlan;

/// The configuration of a chip for a system. Every plan can be compiled.
#[derive(Debug, Clone, Serialize)]
pub struct ChipPlan<'a> {
    /// The system's name.
    pub system: &'a str,
    /// SHA-256 of the system file.
    pub sha256: &'a str,
    /// The chip's name.
    pub chip: &'a str,
    /// The port of the chip.
    #[serde(skip)]
    pub port: Port,
    /// The flavour of the port.
    pub flavour: Flavour,
    /// The clock in cycles per second.
    pub clock_hz: u64,
    /// The sources, in the system's order.
    pub sources: Vec<PlannedSource<'a>>,
    /// The timers that limits use, in the order of their names.
    pub timers: Vec<PlannedTimer<'a>>,
    /// The timer that several sources share; `None` if no sources share one.
    pub shared_timer: Option<SharedTimer<'a>>,
    /// The receivers of frames, on FreeRTOS; `None` if the code is for no operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freertos: Option<RtosPlan<'a>>,
}

impl ChipPlan<'_> {
    /// Whether the firmware has a vector table written by hand, and keeps EIMSK in registers. The
    /// flavour `fast` does so for a limit with a timer of its own.
    #[must_use]
    pub fn is_by_hand(&self) -> bool {
        let own = |source: &PlannedSource<'_>| source.limit.as_ref().is_some_and(|of| !of.shared);
        self.flavour == Flavour::Fast && self.sources.iter().any(own)
    }
}

/// A source in the generated code.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedSource<'a> {
    /// The source's name in the system.
    pub name: &'a str,
    /// The source's name in C.
    pub identifier: String,
    /// The source's interrupt.
    pub vector: &'a str,
    /// The number of the interrupt among the board's vectors, counted from 1.
    #[serde(skip)]
    pub number: u32,
    /// The priority that the code gives to the interrupt; `None` if the chip's own order holds.
    pub priority: Option<u32>,
    /// The limit in software; `None` if every request that reaches the processor is served.
    pub limit: Option<SoftwareLimit>,
    /// The action of `weir_system_start()` for the source.
    pub start: LineStart,
    /// The system's data of this source.
    #[serde(skip)]
    pub source: &'a Source,
}

impl PlannedSource<'_> {
    /// Whether a limiter in silicon limits the source, so that software does not have to.
    #[must_use]
    pub fn is_in_silicon(&self) -> bool {
        let limit = &self.source.limit;
        limit.place == Place::Hardware && limit.policy != Policy::Off
    }
}

/// The code that switches a source on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineStart {
    /// The source's limiter enables the source.
    Limiter,
    /// The enable bit of the external line enables the source.
    Line,
    /// The user's code enables the source when it sets up the device.
    Device,
}

/// A limit in software, in ticks of its timer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SoftwareLimit {
    /// The limit's policy; never off or poll.
    #[serde(serialize_with = "policy")]
    pub policy: Policy,
    /// When the limiter masks the source.
    #[serde(serialize_with = "timing")]
    pub timing: Timing,
    /// The channel of the limit's timer, for example `TIMER1A`.
    pub channel: String,
    /// Whether other sources use the channel too.
    pub shared: bool,
    /// The prescaler of the limit's timer.
    pub prescaler: u64,
    /// The processor cycles of a tick.
    pub tick_cycles: u64,
    /// The interval or the period in ticks, at least 1.
    pub interval_ticks: u64,
    /// The requests per period, or the bucket's tokens, at least 1.
    pub burst: u32,
    /// The number of ticks by which the one-shot is set short.
    pub lag_ticks: u32,
    /// The rate that the limit lets through in the long run, in Hz.
    pub limit_hz: f64,
}

impl fmt::Display for SoftwareLimit {
    /// Prints the limit in the terms of the system file, as in `bursty eager 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.policy.name(), self.timing.name())?;
        match self.policy {
            Policy::Bursty | Policy::Bucket => write!(f, " {}", self.burst),
            _ => Ok(()),
        }
    }
}

/// A timer that the code has to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedTimer<'a> {
    /// The timer's name, for example `TIMER1`.
    pub name: String,
    /// One of the timer's channels that a limit uses.
    pub channel: String,
    /// The channel's interrupt.
    pub vector: &'a str,
    /// The number of the interrupt among the board's vectors, counted from 1.
    #[serde(skip)]
    pub number: u32,
    /// The priority that the code gives to the interrupt; `None` if the chip's own order holds.
    pub priority: Option<u32>,
    /// The timer's prescaler.
    pub prescaler: u64,
    /// The processor cycles of a tick.
    pub tick_cycles: u64,
    /// The code that runs the timer, and the address of its registers; `None` if the port has code
    /// for only one kind of timer.
    #[serde(skip)]
    pub driver: Option<(TimerCode<'a>, u32)>,
    /// The C names of the sources whose limits use the timer.
    pub sources: Vec<String>,
}

/// The timer that clears the counts of several sources (regehr2005 §3.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedTimer<'a> {
    /// The timer's name in the system.
    pub name: &'a str,
    /// The timer's name in C.
    pub identifier: String,
    /// The timer's channel, for example `TIMER1A`.
    pub channel: String,
    /// The timer's period in ticks.
    pub period_ticks: u64,
    /// The C names of the sources that the timer clears.
    pub clears: Vec<String>,
}

fn policy<S: Serializer>(policy: &Policy, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(policy.name())
}

fn timing<S: Serializer>(timing: &Timing, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(timing.name())
}
