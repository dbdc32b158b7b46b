// SPDX-License-Identifier: GPL-3.0-or-later
//! The tables of a simulated experiment, in its file.
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
    /// The system file, from the repository's root.
    pub system: String,
    /// The length of every run.
    pub duration: Template,
    /// The seeds; every point is run with each.
    pub seeds: Vec<u64>,
    /// The part that `--quick` runs in place of all points and seeds.
    pub quick: Option<QuickPoints>,
    /// The spread of costs around those of the system file.
    #[serde(default)]
    pub costs: CostsSpec,
    /// Costs that depend on a whole batch of packets.
    pub batches: Option<BatchesSpec>,
    /// The clock tick.
    pub tick: Option<TickSpec>,
    /// The receivers that work for a fixed time, whatever they get done.
    #[serde(default)]
    pub closed_loops: BTreeMap<String, Quantity<Duration>>,
    /// The packets that arrive.
    pub feed: Vec<FeedSpec>,
    /// The axis of the points.
    pub x: Axis,
    /// The ways to run the system.
    pub variant: Vec<VariantSpec>,
    /// The series, over the names `VARIANT.WHOSE.WHAT` ([`super::values`]).
    series: Vec<SeriesSpec>,
}

impl Simulation {
    /// The series; those with VARIANT in their id once per variant.
    pub fn series(&self) -> Vec<SeriesSpec> {
        let names = self.variant.iter().map(|of| Name::plain(&of.id));
        of_variants(&self.series, &names.collect::<Vec<_>>())
    }
}

/// The spread of costs around the stated ones; costs that are not listed are the worst.
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

/// Arrivals of packets; if the pattern depends on x, there are none at x = 0.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeedSpec {
    /// The name of a flow.
    pub to: String,
    /// The pattern, as `weir simulate --flood` takes it.
    pub pattern: Template,
}

/// A way to run the system.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct VariantSpec {
    /// The prefix of the names of the values of the variant's runs.
    pub id: String,
    pub defer: Deferral,
    /// The order of a bottom half and a running process of the same urgency; the paper's if it is
    /// not set.
    pub ties: Option<Ties>,
    #[serde(default)]
    pub compensation: Compensation,
    /// Whether the devices moderate their interrupts.
    #[serde(default = "yes")]
    pub moderation: bool,
    /// The absolute timers of the sources' moderation, in place of the system file's.
    #[serde(default)]
    pub delays: BTreeMap<String, Template>,
    /// Whether packets beyond a batch's size make each other more expensive, if the file has such
    /// costs.
    #[serde(default = "yes")]
    pub crowding: bool,
    /// The deadlines of receivers, in place of the system file's.
    #[serde(default)]
    pub deadlines: BTreeMap<String, Template>,
    /// The urgencies of receivers, in place of the system file's.
    #[serde(default)]
    pub urgencies: BTreeMap<String, u8>,
}

impl VariantSpec {
    /// The times at which bottom halves run.
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
