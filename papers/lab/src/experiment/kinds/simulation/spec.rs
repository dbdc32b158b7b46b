// SPDX-License-Identifier: GPL-3.0-or-later
//! The tables of an experiment's file for simulated experiments.
use std::collections::BTreeMap;

use serde::Deserialize;
use weir_model::Duration;
use weir_sim::{Batches, Compensation, CostSpreads, Defer, Deferral, Spread, Ties};

use crate::experiment::series::formula::Template;
use crate::experiment::series::{Axis, QuickPoints, SeriesSpec, of_variants};
use crate::experiment::setup::{Name, Quantity};

/// The table `[simulation]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Simulation {
    /// The path of the system file, relative to the repository's root.
    pub system: String,
    /// The length of every run.
    pub duration: Template,
    /// The seeds. Every point is run with each seed.
    pub seeds: Vec<u64>,
    /// The part that `--quick` runs in place of all points and seeds.
    pub quick: Option<QuickPoints>,
    /// The spread of costs around those in the system file.
    #[serde(default)]
    pub costs: CostsSpec,
    /// Costs that depend on the size of a batch of packets.
    pub batches: Option<BatchesSpec>,
    /// The clock tick. `None` if the system has no tick.
    pub tick: Option<TickSpec>,
    /// Receivers that run for a fixed time, however much work they complete in it.
    #[serde(default)]
    pub closed_loops: BTreeMap<String, Quantity<Duration>>,
    /// The packets that arrive.
    pub feed: Vec<FeedSpec>,
    /// The axis of the points.
    pub x: Axis,
    /// The ways to run the system.
    pub variant: Vec<VariantSpec>,
    /// The series, over the names `VARIANT.VALUE`, where VALUE is a name that [`super::values`]
    /// lists.
    series: Vec<SeriesSpec>,
}

impl Simulation {
    /// The series. A series whose id contains VARIANT is repeated for each variant.
    pub fn series(&self) -> Vec<SeriesSpec> {
        let names = self.variant.iter().map(|of| Name::plain(&of.id));
        of_variants(&self.series, &names.collect::<Vec<_>>())
    }
}

/// The spread of costs around the stated ones. Costs that are not listed always take their worst
/// value.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct CostsSpec {
    pub interrupts: Option<Quantity<Spread>>,
    pub bottom_halves: Option<Quantity<Spread>>,
    pub tasks: Option<Quantity<Spread>>,
}

impl CostsSpec {
    pub(super) fn costs(&self) -> CostSpreads {
        let spread = |of: &Option<Quantity<Spread>>| of.as_ref().map_or(Spread::Worst, |of| of.0);
        CostSpreads {
            interrupts: spread(&self.interrupts),
            bottom_halves: spread(&self.bottom_halves),
            tasks: spread(&self.tasks),
            batches: Batches::default(),
        }
    }
}

/// The costs of batches, as in [`Batches`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchesSpec {
    pub wake: Quantity<Duration>,
    pub room: u64,
    pub beyond: Quantity<Duration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TickSpec {
    pub period: Quantity<Duration>,
    pub cost: Option<Quantity<Duration>>,
}

/// Arrivals of packets. If the pattern depends on x, no packets arrive at x = 0.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeedSpec {
    /// The name of the flow that the packets belong to.
    pub to: String,
    /// The pattern of arrivals, in the syntax of `weir simulate --flood`.
    pub pattern: Template,
}

/// A way to run the system.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct VariantSpec {
    /// The prefix of the names of the values of the variant's runs.
    pub id: String,
    pub defer: Deferral,
    /// The order of a bottom half and a running process of the same urgency. `None` means the
    /// paper's order.
    pub ties: Option<Ties>,
    #[serde(default)]
    pub compensation: Compensation,
    /// Whether the devices moderate their interrupts.
    #[serde(default = "yes")]
    pub moderation: bool,
    /// The absolute timers of the sources' interrupt moderation, in place of those in the system
    /// file.
    #[serde(default)]
    pub delays: BTreeMap<String, Template>,
    /// Whether packets beyond a batch's size make each other more expensive. This has no effect if
    /// the file states no such costs.
    #[serde(default = "yes")]
    pub crowding: bool,
    /// The deadlines of receivers, in place of those in the system file.
    #[serde(default)]
    pub deadlines: BTreeMap<String, Template>,
    /// The urgencies of receivers, in place of those in the system file.
    #[serde(default)]
    pub urgencies: BTreeMap<String, u8>,
}

impl VariantSpec {
    /// The times at which bottom halves run in this variant.
    pub fn defer(&self) -> Defer {
        let usual = match self.defer {
            Deferral::Exact => Ties::Run,
            _ => Ties::Wait,
        };
        self.defer.with(self.ties.unwrap_or(usual))
    }
}

fn yes() -> bool {
    true
}
