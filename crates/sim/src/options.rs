// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of a run: how long, with which of Weir's stages, with which costs and arrivals.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use weir_arrivals::Pattern;

use crate::spread::Spread;

/// The options of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The length of the run in cycles.
    pub duration: u64,
    /// The seed of everything random.
    pub seed: u64,
    /// The spread of costs below the worst that the system states.
    pub costs: CostSpreads,
    /// Do the sources' limits hold?
    pub limits: bool,
    /// Do devices moderate?
    pub moderation: bool,
    /// When bottom halves run, and what decides ties.
    pub defer: Defer,
    /// The system's clock tick and what it accounts; none: no tick.
    pub tick: Option<Tick>,
    /// By receiver, the cycles after its release until which it works, whatever was done in them,
    /// in place of its WCET (the CPU-bound process of zhang2006 §5, the closed loop of behnke2021).
    /// Receivers beyond the end of the list work for their WCET.
    pub closed_loops: Vec<Option<u64>>,
    /// The arrivals.
    pub feeds: Vec<Feed>,
}

/// The spreads of the costs of a run below the worst that is stated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostSpreads {
    /// The spread of interrupts: limiters, handlers, units of work, top halves, early
    /// demultiplexing.
    pub interrupts: Spread,
    /// The spread of bottom halves.
    pub bottom_halves: Spread,
    /// The spread of tasks.
    pub tasks: Spread,
    /// The cost of bottom halves beside what the system states for each packet.
    pub batches: Batches,
}

impl CostSpreads {
    /// The same spread for all; batches cost no more than their packets.
    #[must_use]
    pub fn all(spread: Spread) -> Self {
        Self {
            interrupts: spread,
            bottom_halves: spread,
            tasks: spread,
            batches: Batches::default(),
        }
    }
}

/// The costs of packets together that a cost per packet does not contain, in cycles at worst. The
/// bottom half that causes one pays it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Batches {
    /// The additional cost of the first bottom half after a time without any: its thread is woken,
    /// and yields again.
    pub wake: u64,
    /// Packets of a flow that can wait without making each other dearer.
    pub room: u64,
    /// The additional cost of a bottom half that begins while more packets of its flow wait, its
    /// own among them: their buffers no longer fit the cache (behnke2022 §3 has larger bursts that
    /// cost more).
    pub beyond: u64,
}

/// When the bottom half of a packet runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defer {
    /// Right after the top half, before every task, as in systems that know no receivers.
    Immediate,
    /// At the urgency of the packet's receiver, found in the top half (lee2010 §4).
    Exact(Ties),
    /// At the urgency of the receiver that is expected on the device; the receiver itself is found
    /// in the bottom half (zhang2006 §3.2).
    Predicted(By, Ties),
}

/// The word for a [`Defer`], as the command line and experiments say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deferral {
    /// At the urgency of the packet's receiver (lee2010)
    Exact,
    /// At that of the most urgent receiver that waits on the device (zhang2006)
    #[serde(alias = "predicted")]
    Waiting,
    /// At that of the most urgent receiver of the device
    Registered,
    /// At that of the most urgent that waits and has got enough of the last packets
    History,
    /// Right after the interrupt
    Immediate,
}

impl Deferral {
    /// The deferral for this word, with ties broken so.
    #[must_use]
    pub const fn with(self, ties: Ties) -> Defer {
        match self {
            Self::Exact => Defer::Exact(ties),
            Self::Waiting => Defer::Predicted(By::Waiting, ties),
            Self::Registered => Defer::Predicted(By::Registered, ties),
            Self::History => Defer::Predicted(By::History, ties),
            Self::Immediate => Defer::Immediate,
        }
    }
}

/// The order of a bottom half and work of the same urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// It runs (lee2010)
    Run,
    /// It waits (zhang2006)
    Wait,
}

/// How the receiver of a device's next packet is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The most urgent receiver that waits on the device (zhang2006 §3.2).
    Waiting,
    /// The most urgent receiver that has ever registered.
    Registered,
    /// The most urgent receiver that waits and got enough of the last packets (zhang2006 §7 leaves
    /// it to future work).
    History,
}

/// The system's clock tick (zhang2006 §3.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tick {
    /// Cycles between two ticks.
    pub period: u64,
    /// Cycles that each tick takes, before every other interrupt.
    pub cost: u64,
    /// How the account makes up for bottom halves that ran for others than the task that is
    /// charged.
    pub compensation: Compensation,
}

/// How the account by the tick is corrected for bottom halves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compensation {
    /// Whoever runs at a tick is charged
    #[default]
    None,
    /// By the number of packets and their average cost (zhang2006)
    Counted,
    /// By what the bottom halves were measured to cost
    Measured,
}

/// A stream of arrivals, and its target.
#[derive(Debug, Clone, PartialEq)]
pub struct Feed {
    /// The target.
    pub to: Target,
    /// The pattern of the arrivals.
    pub pattern: Pattern,
}

/// The target of arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The source with this index, for a request that is no packet, or for a packet whose flow its
    /// selectors tell.
    Source(usize),
    /// The source of the flow with this index, for a packet of it.
    Flow(usize),
}
