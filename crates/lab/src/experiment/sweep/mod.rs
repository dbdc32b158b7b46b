// SPDX-License-Identifier: GPL-3.0-or-later
//! Figures 1 and 2 of regehr2005: what limiting one line costs, over a grid of offered rates.
mod evaluate;
mod jobs;
mod subject;

use std::collections::BTreeSet;

use serde::Deserialize;
use weir_model::{Duration, Rate};

use super::bench::Bench;
use super::file::{File, Quantity, Role};
use super::model::{Constants, Policy};
use super::{ExperimentError, Measured};

/// The parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SweepSpec {
    /// What every limiter is set to.
    pub limit: Quantity<Rate>,
    /// Offered, at regular intervals.
    pub rates: Vec<Quantity<Rate>>,
    /// When the first request comes; each rate is run with each.
    pub phases: Vec<Quantity<Duration>>,
    /// The adversary: memoryless requests.
    pub poisson: Poisson,
    /// The adversary: two requests, close together.
    pub pairs: Pairs,
    /// Between the requests of a burst, where it is tested that none is lost.
    pub burst_gap: Quantity<Duration>,
    /// Two rates in overload; the requests that only the second has are all refused.
    pub refused: [Quantity<Rate>; 2],
    /// The part of the grid that a quick run keeps.
    pub quick: Option<Quick>,
    /// Below the limit, where wake-ups from sleep are counted.
    #[serde(default)]
    pub sleep: Vec<Quantity<Rate>>,
    /// Curves by the equations of §5.2.
    #[serde(default)]
    pub published: Option<Published>,
}

/// Fewer points of the same experiment, for which the same is claimed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quick {
    pub rates: Vec<Quantity<Rate>>,
    pub phases: Vec<Quantity<Duration>>,
    pub poisson: Poisson,
    pub pairs: Pairs,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Poisson {
    pub rates: Vec<Quantity<Rate>>,
    pub seeds: Vec<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pairs {
    pub periods: Vec<Quantity<Duration>>,
    pub gaps: Vec<Quantity<Duration>>,
}

/// What the paper's own constants give. The series are named `published.ID`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    pub constants: Constants,
    /// t_work, in cycles.
    pub work: f64,
    pub curves: Vec<PublishedCurve>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedCurve {
    pub id: String,
    pub policy: Policy,
    #[serde(default = "one")]
    pub burst: f64,
    /// t_work, where it is another than that of all.
    pub work: Option<f64>,
}

fn one() -> f64 {
    1.0
}

/// Offered rates from this share of the limit on are overload, where the limiter should serve nearly the limit.
const OVERLOAD: f64 = 1.05;

/// What can be claimed of each limiter, after its id.
pub(super) mod suffix {
    pub const ADVERSARY: &str = "adversary";
    pub const SERVED: &str = "served_in_overload";
    pub const LOST: &str = "lost_below_limit";
    pub const REFUSED: &str = "refused_cycles";
    pub const WAKEUPS: &str = "extra_wakeups";
    pub const MODEL: &str = "model_error";
    pub const SLOPE: &str = "spread_in_overload";
    pub const CYCLES: &str = "extra_cycles";
    pub const MEAN_CYCLES: &str = "extra_cycles_mean";
    pub const INSTRUCTIONS: &str = "extra_instructions";
}

pub(super) fn known_claims(file: &File) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for variant in file.limited() {
        let id = variant.id();
        known.insert(id.to_owned());
        for suffix in [
            suffix::ADVERSARY,
            suffix::SERVED,
            suffix::LOST,
            suffix::REFUSED,
            suffix::WAKEUPS,
            suffix::SLOPE,
        ] {
            known.insert(format!("{id}.{suffix}"));
        }
        if variant.model.is_some() {
            known.insert(format!("{}.{}", variant.flavour(), suffix::MODEL));
        }
    }
    let in_silicon = file
        .variant
        .iter()
        .filter(|variant| variant.role == Role::Hardware);
    for variant in in_silicon {
        for suffix in [
            suffix::SERVED,
            suffix::LOST,
            suffix::REFUSED,
            suffix::SLOPE,
            suffix::CYCLES,
            suffix::MEAN_CYCLES,
            suffix::INSTRUCTIONS,
        ] {
            known.insert(format!("{}.{suffix}", variant.id()));
        }
    }
    known
}

pub(super) fn known_series(file: &File, spec: &SweepSpec) -> BTreeSet<String> {
    let mut known: BTreeSet<String> = file
        .variant
        .iter()
        .map(|variant| variant.id().to_owned())
        .collect();
    for variant in &file.variant {
        if variant.role == Role::Unprotected {
            known.insert(hardware(variant.flavour()));
        }
        if matches!(variant.role, Role::Limited | Role::Polling) {
            known.insert(overhead_series(variant.id()));
        }
    }
    for curve in spec
        .published
        .iter()
        .flat_map(|published| &published.curves)
    {
        known.insert(published(&curve.id));
    }
    known
}

/// The series of a flavour's unprotected firmware behind the hardware limiter: the one in silicon if the flavour has a variant for it, else the ideal filter.
pub(super) fn hardware(flavour: &str) -> String {
    format!("{flavour}.hardware")
}

/// The series of a limiter's overhead.
fn overhead_series(id: &str) -> String {
    format!("{id}.overhead")
}

fn published(id: &str) -> String {
    format!("published.{id}")
}

impl SweepSpec {
    /// Keeps the points of a quick run; whether the file says which.
    pub fn shorten(&mut self) -> bool {
        let Some(quick) = self.quick.take() else {
            return false;
        };
        self.rates = quick.rates;
        self.phases = quick.phases;
        self.poisson = quick.poisson;
        self.pairs = quick.pairs;
        true
    }
}

pub(super) fn measure(bench: &Bench, spec: &SweepSpec) -> Result<Measured, ExperimentError> {
    let subjects = subject::subjects(bench, spec)?;
    // Before the runs: missing costs should not cost a minute.
    let costs = evaluate::costs_needed(bench, &subjects)?;
    let results = super::batch::run_all(jobs::jobs(bench, spec, &subjects)?)?;
    evaluate::evaluate(bench, spec, &subjects, &results, costs)
}
