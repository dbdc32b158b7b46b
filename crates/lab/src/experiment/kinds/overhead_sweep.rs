// SPDX-License-Identifier: GPL-3.0-or-later
//! Figures 1 and 2 of regehr2005: what limiting one line costs, over a grid of offered rates.
mod evaluate;
mod jobs;
mod subject;

use std::collections::BTreeSet;

use serde::Deserialize;
use weir_model::{Duration, Rate};

use crate::experiment::batch::run_all;
use crate::experiment::bench::Bench;
use crate::experiment::error::ExperimentError;
use crate::experiment::findings::Measured;
use crate::experiment::kind::{Entry, Kind, Known};
use crate::experiment::model::{Constants, Policy};
use crate::experiment::place::Place;
use crate::experiment::setup::{Quantity, Role, Setup, hardware};
use weir_board::machine::Machine;

pub(super) const KIND: Entry = Entry::of::<OverheadSweep>("overhead-sweep").on(&Machine::ALL);

/// The table `[overhead-sweep]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct OverheadSweep {
    /// What every limiter is set to.
    limit: Quantity<Rate>,
    /// Offered, at regular intervals.
    rates: Vec<Quantity<Rate>>,
    /// When the first request comes; each rate is run with each.
    phases: Vec<Quantity<Duration>>,
    /// The adversary: memoryless requests.
    poisson: Poisson,
    /// The adversary: two requests, close together.
    pairs: Pairs,
    /// Between the requests of a burst, where it is tested that none is lost.
    burst_gap: Quantity<Duration>,
    /// Two rates in overload; the requests that only the second has are all refused.
    refused: [Quantity<Rate>; 2],
    /// The part of the grid that a quick run keeps.
    quick: Option<Quick>,
    /// Below the limit, where wake-ups from sleep are counted.
    #[serde(default)]
    sleep: Vec<Quantity<Rate>>,
    /// Curves by the equations of §5.2.
    #[serde(default)]
    published: Option<Published>,
}

/// Fewer points of the same experiment, for which the same is claimed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Quick {
    rates: Vec<Quantity<Rate>>,
    phases: Vec<Quantity<Duration>>,
    poisson: Poisson,
    pairs: Pairs,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Poisson {
    rates: Vec<Quantity<Rate>>,
    seeds: Vec<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pairs {
    periods: Vec<Quantity<Duration>>,
    gaps: Vec<Quantity<Duration>>,
}

/// What the paper's own constants give. The series are named `published.ID`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    constants: Constants,
    /// t_work, in cycles.
    work: f64,
    curves: Vec<PublishedCurve>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedCurve {
    id: String,
    policy: Policy,
    #[serde(default = "one")]
    burst: f64,
    /// t_work, where it is another than that of all.
    work: Option<f64>,
}

fn one() -> f64 {
    1.0
}

/// Offered rates from this share of the limit on are overload, where the limiter should serve nearly the limit.
const OVERLOAD: f64 = 1.05;

/// What can be claimed of each limiter, after its id.
mod suffix {
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

fn known_claims(setup: &Setup) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for variant in setup.limited() {
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
    let in_silicon = setup
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

fn known_series(setup: &Setup, spec: &OverheadSweep) -> BTreeSet<String> {
    let mut known: BTreeSet<String> = setup
        .variant
        .iter()
        .map(|variant| variant.id().to_owned())
        .collect();
    for variant in &setup.variant {
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

/// The series of a limiter's overhead.
fn overhead_series(id: &str) -> String {
    format!("{id}.overhead")
}

fn published(id: &str) -> String {
    format!("published.{id}")
}

impl Kind for OverheadSweep {
    fn known(&self, setup: &Setup) -> Known {
        Known {
            claims: known_claims(setup),
            series: known_series(setup, self),
        }
    }

    fn measure(&self, place: &Place, setup: &Setup) -> Result<Measured, ExperimentError> {
        let bench = &Bench::new(place, setup)?;
        let subjects = subject::subjects(bench, self)?;
        // Before the runs: missing costs should not cost a minute.
        let costs = evaluate::costs_needed(bench, &subjects)?;
        let results = run_all(jobs::jobs(bench, self, &subjects)?)?;
        evaluate::evaluate(bench, self, &subjects, &results, costs)
    }

    fn shorten(&mut self) -> bool {
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
