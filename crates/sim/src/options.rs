// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of a run: the duration, the active stages, the costs and the arrivals.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use weir_arrivals::Pattern;

use crate::spread::Spread;

/// The options of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The length of the run in cycles.
    pub duration: u64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The distributions of costs below the stated worst cases.
    pub costs: CostSpreads,
    /// Whether the limits of sources are enforced.
    pub limits: bool,
    /// Whether devices moderate their interrupts.
    pub moderation: bool,
    /// When bottom halves run, and how ties in urgency are broken.
    pub defer: Defer,
    /// The system's clock tick and its accounting. `None` if there is no tick.
    pub tick: Option<Tick>,
    /// The closed loops, by receiver index: the cycles after each release for which the receiver
    /// works, instead of its WCET (the CPU-bound process of zhang2006 §5, the closed loop of
    /// behnke2021). Receivers that are `None` or beyond the end of the list work for their WCET.
    pub closed_loops: Vec<Option<u64>>,
    /// The streams of arrivals.
    pub feeds: Vec<Feed>,
}

/// The distributions of the costs of a run, up to the stated worst cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostSpreads {
    /// The distribution for work in interrupts: limiters, handlers, units of work, top halves,
    /// early demultiplexing.
    pub interrupts: Spread,
    /// The distribution for bottom halves.
    pub bottom_halves: Spread,
    /// The distribution for tasks.
    pub tasks: Spread,
    /// The costs of bottom halves beyond what the system states for each packet.
    pub batches: Batches,
}

impl CostSpreads {
    /// Uses the same distribution for all costs, without additional costs of batches.
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

/// The additional worst-case costs, in cycles, that depend on how many packets wait together. Each
/// is charged to the bottom half that causes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Batches {
    /// The additional cost of the first bottom half after an idle period, whose thread has to be
    /// woken and has to yield.
    pub wake: u64,
    /// The number of packets of a flow that can wait without additional cost.
    pub room: u64,
    /// The additional cost of a bottom half that starts while more than `room` packets of its flow
    /// wait, the handled one included: their buffers no longer fit into the cache (in behnke2022 §3
    /// larger bursts cost more per packet).
    pub beyond: u64,
}

/// When the bottom half of a packet runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defer {
    /// Right after the top half, before every task, as on systems that do not know the receivers.
    Immediate,
    /// At the urgency of the packet's receiver, which the top half finds (lee2010 §4).
    Exact(Ties),
    /// At the urgency of the receiver that is predicted for the device. The bottom half finds the
    /// actual receiver (zhang2006 §3.2).
    Predicted(By, Ties),
}

/// The name of a [`Defer`] on the command line and in experiments.
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
    /// Returns the [`Defer`] of this name, with ties in urgency broken by `ties`.
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

/// Whether a bottom half runs before other work of the same urgency.
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
    /// The most urgent receiver that is registered on the device.
    Registered,
    /// The most urgent receiver that waits and has got a sufficient share of the last packets
    /// (zhang2006 §7 leaves this to future work).
    History,
}

/// The system's clock tick (zhang2006 §3.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tick {
    /// Cycles between two ticks.
    pub period: u64,
    /// Cycles that each tick takes. The tick's interrupt goes before all others.
    pub cost: u64,
    /// How the account compensates the charged task for bottom halves that ran for other tasks.
    pub compensation: Compensation,
}

/// How accounting by ticks compensates for bottom halves.
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

/// A stream of arrivals and its target.
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
    /// The source with this index. The arrivals are requests, or packets whose flows the source's
    /// selectors find.
    Source(usize),
    /// The flow with this index. The packets arrive at the source of the flow.
    Flow(usize),
}
