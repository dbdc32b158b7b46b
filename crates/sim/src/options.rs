// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a system is run: for how long, with which of Weir's stages, with which costs and arrivals.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use weir_arrivals::Pattern;

use crate::spread::Spread;

/// How a system is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Cycles.
    pub duration: u64,
    /// Everything random follows from it.
    pub seed: u64,
    /// How costs lie about the worst that the system states.
    pub costs: CostSpreads,
    /// Do the sources' limits hold?
    pub limits: bool,
    /// Do devices moderate?
    pub moderation: bool,
    /// When bottom halves run.
    pub defer: Defer,
    /// The system's clock tick and what it accounts; none: no tick.
    pub tick: Option<Tick>,
    /// Of each receiver, if it does not work for its WCET but for as long as so many cycles have
    /// gone by since its release, whatever was done in them (zhang2006 §5's CPU-bound process,
    /// behnke2021's closed loop). Receivers beyond the end of the list work for their WCET.
    pub closed_loops: Vec<Option<u64>>,
    /// What arrives.
    pub feeds: Vec<Feed>,
}

/// How the costs of a run lie about the worst that is stated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostSpreads {
    /// Of interrupts: limiters, handlers, units of work, top halves, early demultiplexing.
    pub interrupts: Spread,
    /// Of bottom halves.
    pub bottom_halves: Spread,
    /// Of tasks.
    pub tasks: Spread,
    /// What bottom halves cost beside what a system states for each packet.
    pub batches: Batches,
}

impl CostSpreads {
    /// All alike, and batches cost what their packets do.
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

/// What packets cost together that a cost per packet does not say, in cycles at worst; a part of
/// the bottom half that pays it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Batches {
    /// What the first bottom half costs more when none has waited: whoever does them is woken, and
    /// gives way again.
    pub wake: u64,
    /// Packets of a flow that can wait without making each other dearer.
    pub room: u64,
    /// What a bottom half costs more that begins while more packets of its flow wait, itself among
    /// them: their buffers do not fit the cache any more (behnke2022 §3 has larger bursts that cost
    /// more).
    pub beyond: u64,
}

/// When the bottom half of a packet runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defer {
    /// Right after the top half, before every task (what systems do that know no receivers).
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
    /// What it means where ties are broken so.
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

/// What a bottom half does that is as urgent as what runs.
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
    /// The most urgent that waits on the device (zhang2006 §3.2).
    Waiting,
    /// The most urgent that has ever registered.
    Registered,
    /// The most urgent that waits and for which enough of the last packets were (zhang2006 §7
    /// leaves it to future work).
    History,
}

/// The system's clock tick (zhang2006 §3.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tick {
    /// Cycles between two.
    pub period: u64,
    /// Cycles that each takes, before every other interrupt.
    pub cost: u64,
    /// How the tick compensates for bottom halves that ran for others than it is charged to.
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

/// What arrives, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Feed {
    /// Where it arrives.
    pub to: Target,
    /// When.
    pub pattern: Pattern,
}

/// Where something arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// At a source with this index, as a request that is no packet, or as a packet whose flow its
    /// selectors tell.
    Source(usize),
    /// At the source of the flow with this index, as a packet of it.
    Flow(usize),
}
