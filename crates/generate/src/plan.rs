// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of the generated code: every name, channel and number, decided before a line is
//! written.
use std::fmt;

use serde::{Serialize, Serializer};
use weir_model::{Place, Policy, Source, Timing};

use weir_boards::{Flavour, Port, TimerCode};

use crate::rtos::RtosPlan;

/// What a chip is told about a system. All of it can be compiled.
#[derive(Debug, Clone, Serialize)]
pub struct ChipPlan<'a> {
    /// The system's name.
    pub system: &'a str,
    /// SHA-256 of the system file.
    pub sha256: &'a str,
    /// The chip's name.
    pub chip: &'a str,
    /// The port.
    #[serde(skip)]
    pub port: Port,
    /// The flavour of the port.
    pub flavour: Flavour,
    /// Cycles per second.
    pub clock_hz: u64,
    /// The sources, in the system's order.
    pub sources: Vec<PlannedSource<'a>>,
    /// The timers that limits use, by name.
    pub timers: Vec<PlannedTimer<'a>>,
    /// The timer that several sources share.
    pub shared_timer: Option<SharedTimer<'a>>,
    /// The receivers of frames, on FreeRTOS; none: the code is for no operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freertos: Option<RtosPlan<'a>>,
}

impl ChipPlan<'_> {
    /// Does the firmware have a vector table by hand, and EIMSK in registers? The flavour `fast`
    /// has that for a limit with a timer of its own.
    #[must_use]
    pub fn is_by_hand(&self) -> bool {
        let own = |source: &PlannedSource<'_>| source.limit.as_ref().is_some_and(|of| !of.shared);
        self.flavour == Flavour::Fast && self.sources.iter().any(own)
    }
}

/// One source.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedSource<'a> {
    /// Its name in the system.
    pub name: &'a str,
    /// Its name in C.
    pub identifier: String,
    /// Its interrupt.
    pub vector: &'a str,
    /// The interrupt's number among the board's, from 1 on.
    #[serde(skip)]
    pub number: u32,
    /// The priority that the interrupt is given; none: the chip's own order holds.
    pub priority: Option<u32>,
    /// The limit in software; none: every request that reaches the processor is served.
    pub limit: Option<SoftwareLimit>,
    /// What `weir_system_start()` does for the source.
    pub start: LineStart,
    /// The source of the system.
    #[serde(skip)]
    pub source: &'a Source,
}

impl PlannedSource<'_> {
    /// Does a limiter in silicon hold its requests back, so that software need not?
    #[must_use]
    pub fn is_in_silicon(&self) -> bool {
        let limit = &self.source.limit;
        limit.place == Place::Hardware && limit.policy != Policy::Off
    }
}

/// How a source is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineStart {
    /// Its limiter enables it.
    Limiter,
    /// The bit of the external line enables it.
    Line,
    /// The user's code enables it, when it sets up the device.
    Device,
}

/// A limit, in ticks of its timer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SoftwareLimit {
    /// How it limits; never off or poll.
    #[serde(serialize_with = "policy")]
    pub policy: Policy,
    /// When it masks.
    #[serde(serialize_with = "timing")]
    pub timing: Timing,
    /// The channel: `TIMER1A`.
    pub channel: String,
    /// Do other sources use the channel, too?
    pub shared: bool,
    /// The prescaler of its timer.
    pub prescaler: u64,
    /// Cycles of a tick.
    pub tick_cycles: u64,
    /// The interval or the period, at least 1.
    pub interval_ticks: u64,
    /// Requests per period, or tokens, at least 1.
    pub burst: u32,
    /// Ticks by which the one-shot is set short.
    pub lag_ticks: u32,
    /// The rate that it lets through in the long run, in Hz.
    pub limit_hz: f64,
}

impl fmt::Display for SoftwareLimit {
    /// The limit in the words of the system file: `bursty eager 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.policy.name(), self.timing.name())?;
        match self.policy {
            Policy::Bursty | Policy::Bucket => write!(f, " {}", self.burst),
            _ => Ok(()),
        }
    }
}

/// A timer to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedTimer<'a> {
    /// The timer's name: `TIMER1`.
    pub name: String,
    /// One of its channels that a limit uses.
    pub channel: String,
    /// The channel's interrupt.
    pub vector: &'a str,
    /// The interrupt's number among the board's, from 1 on.
    #[serde(skip)]
    pub number: u32,
    /// The priority that the interrupt is given; none: the chip's own order holds.
    pub priority: Option<u32>,
    /// Its prescaler.
    pub prescaler: u64,
    /// Cycles of a tick.
    pub tick_cycles: u64,
    /// The code by which it runs, and the address of its registers, where the port has several.
    #[serde(skip)]
    pub driver: Option<(TimerCode<'a>, u32)>,
    /// The sources whose limits it counts for, by their names in C.
    pub sources: Vec<String>,
}

/// The timer that clears the counts of several sources (regehr2005 §3.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedTimer<'a> {
    /// Its name in the system.
    pub name: &'a str,
    /// Its name in C.
    pub identifier: String,
    /// The channel: `TIMER1A`.
    pub channel: String,
    /// Its period.
    pub period_ticks: u64,
    /// The sources, by their names in C.
    pub clears: Vec<String>,
}

fn policy<S: Serializer>(policy: &Policy, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(policy.name())
}

fn timing<S: Serializer>(timing: &Timing, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(timing.name())
}
