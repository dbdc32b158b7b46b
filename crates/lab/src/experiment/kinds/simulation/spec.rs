// SPDX-License-Identifier: GPL-3.0-or-later
//! What a file of a simulated experiment says.
use std::collections::BTreeMap;

use serde::Deserialize;
use weir_model::Duration;
use weir_sim::{Batches, Compensation, Costs, Defer, Deferral, Spread, Ties};

use crate::experiment::series::formula::Template;
use crate::experiment::series::{Axis, SeriesSpec, of_variants};
use crate::experiment::setup::{Name, Quantity};

/// The parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Simulation {
    /// The system file, from the repository's root.
    pub system: String,
    /// The length of every run.
    pub duration: Template,
    /// Every point is run with each.
    pub seeds: Vec<u64>,
    /// The spread of costs about those of the system file.
    #[serde(default)]
    pub costs: CostsSpec,
    /// What packets cost together.
    pub batches: Option<BatchesSpec>,
    /// The clock tick.
    pub tick: Option<TickSpec>,
    /// The receivers that work for a time, whatever is done in it.
    #[serde(default)]
    pub closed_loops: BTreeMap<String, Quantity<Duration>>,
    /// What arrives.
    pub feed: Vec<FeedSpec>,
    /// What differs from point to point.
    pub x: Axis,
    /// The ways to run the system.
    pub variant: Vec<VariantSpec>,
    /// What is looked at, over the names `VARIANT.WHOSE.WHAT` ([`super::values`]).
    series: Vec<SeriesSpec>,
}

impl Simulation {
    /// The series, those of each variant once per variant.
    pub fn series(&self) -> Vec<SeriesSpec> {
        let names = self.variant.iter().map(|of| Name::plain(&of.id));
        of_variants(&self.series, &names.collect::<Vec<_>>())
    }
}

/// The spread of costs about the stated ones; what is not said is the worst.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct CostsSpec {
    pub interrupts: Option<Quantity<Spread>>,
    pub bottom_halves: Option<Quantity<Spread>>,
    pub tasks: Option<Quantity<Spread>>,
}

impl CostsSpec {
    pub(super) fn costs(&self) -> Costs {
        let spread = |of: &Option<Quantity<Spread>>| of.as_ref().map_or(Spread::Worst, |of| of.0);
        Costs {
            interrupts: spread(&self.interrupts),
            bottom_halves: spread(&self.bottom_halves),
            tasks: spread(&self.tasks),
            batches: Batches::default(),
        }
    }
}

/// The costs of batches, as [`Batches`].
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

/// Arrivals; where a pattern depends on x, there are none at x = 0.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeedSpec {
    /// A flow.
    pub to: String,
    /// The pattern, as `weir simulate --flood` takes it.
    pub pattern: Template,
}

/// A way to run the system.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct VariantSpec {
    /// The word before the names of what is counted in its runs.
    pub id: String,
    pub defer: Deferral,
    /// What a bottom half does that is as urgent as what runs; as in the paper if it is not said.
    pub ties: Option<Ties>,
    #[serde(default)]
    pub compensation: Compensation,
    /// Whether the devices moderate.
    #[serde(default = "yes")]
    pub moderation: bool,
    /// The absolute timer of the moderation of sources, in place of the system file's.
    #[serde(default)]
    pub delays: BTreeMap<String, Template>,
    /// Whether packets that do not fit make each other dearer, if the file says so.
    #[serde(default = "yes")]
    pub crowding: bool,
    /// The deadline of receivers, in place of the system file's.
    #[serde(default)]
    pub deadlines: BTreeMap<String, Template>,
    /// The urgency of receivers, in place of the system file's.
    #[serde(default)]
    pub urgencies: BTreeMap<String, u8>,
}

impl VariantSpec {
    /// When bottom halves run.
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
