// SPDX-License-Identifier: GPL-3.0-or-later
//! Table 1 of regehr2005: how often sources can interrupt, and what that does to the board.
use std::collections::BTreeMap;

use serde::Deserialize;
use weir_model::worst_rates::{self, WorstRate};
use weir_report::Series;

use crate::experiment::batch::{Job, run_all};
use crate::experiment::bench::{Bench, Loss, flood, turn_cycles};
use crate::experiment::error::ExperimentError;
use crate::experiment::findings::Measured;
use crate::experiment::kind::{Entry, Kind, Known};
use crate::experiment::place::Place;
use crate::experiment::setup::{Quantity, Setup, Variant};
use weir_board::machine::Machine;
use weir_board::run::Stimulus;

pub(super) const KIND: Entry = Entry::of::<Rates>("rates").on(&Machine::ALL);

/// The table `[rates]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rates {
    /// In ascending order; if none is stated, those of the sources that system files can name.
    #[serde(default)]
    offered: Vec<Quantity<weir_model::Rate>>,
}

impl Rates {
    fn hertz(&self) -> Vec<f64> {
        if self.offered.is_empty() {
            worst_rates::all().iter().map(WorstRate::hertz).collect()
        } else {
            self.offered.iter().map(|rate| rate.0.hertz()).collect()
        }
    }
}

fn rate_claim(source: &WorstRate) -> String {
    format!("{}.rate", source.id)
}

fn lost_claim(variant: &str) -> String {
    format!("{variant}.most_lost")
}

fn left_claim(variant: &str) -> String {
    format!("{variant}.least_left")
}

fn left_series(variant: &str) -> String {
    format!("{variant}.left")
}

impl Kind for Rates {
    /// Claims are about the sources' rates and what each variant's background loses; there are two
    /// series per variant, of what its background loses and of what it is left.
    fn known(&self, setup: &Setup) -> Known {
        let ids = || setup.variant.iter().map(Variant::id);
        let rates = worst_rates::all().iter().map(rate_claim);
        Known {
            claims: rates
                .chain(ids().flat_map(|id| [lost_claim(id), left_claim(id)]))
                .collect(),
            series: ids()
                .flat_map(|id| [id.to_owned(), left_series(id)])
                .collect(),
        }
    }

    fn measure(&self, place: &Place, setup: &Setup) -> Result<Measured, ExperimentError> {
        let bench = Bench::new(place, setup)?;
        let mut values: BTreeMap<String, f64> = worst_rates::all()
            .iter()
            .map(|source| (rate_claim(source), source.hertz()))
            .collect();
        let rates = self.hertz();
        let mut jobs = Vec::new();
        for variant in &setup.variant {
            let base = bench.spec(&bench.elf(variant));
            // The first is the background without a flood.
            let offered = std::iter::once(None).chain(rates.iter().copied().map(Some));
            for (index, rate) in offered.enumerate() {
                let mut spec = base.clone();
                spec.floods.extend(rate.map(|rate_hz| {
                    flood(Stimulus::Periodic {
                        rate_hz,
                        phase_cycles: 0,
                    })
                }));
                jobs.push(Job {
                    key: (variant.id().to_owned(), index),
                    firmware: variant.id().to_owned(),
                    spec,
                });
            }
        }
        let results = run_all(jobs)?;
        let mut series = Vec::new();
        for variant in &setup.variant {
            let result = |index: usize| &results[&(variant.id().to_owned(), index)];
            let turn = turn_cycles(result(0))?;
            let points: Vec<(f64, f64)> = rates
                .iter()
                .zip(1..)
                .map(|(&hertz, index)| (hertz, 100.0 * Loss::of(result(index), turn).lost))
                .collect();
            let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
            values.insert(lost_claim(variant.id()), most);
            values.insert(left_claim(variant.id()), 100.0 - most);
            series.push(Series {
                id: left_series(variant.id()),
                x: "requests offered, Hz".to_owned(),
                y: "CPU left for the background, %".to_owned(),
                points: points.iter().map(|&(x, lost)| (x, 100.0 - lost)).collect(),
            });
            series.push(Series {
                id: variant.id().to_owned(),
                x: "requests offered, Hz".to_owned(),
                y: "CPU lost to the background, %".to_owned(),
                points,
            });
        }
        Ok(Measured {
            values,
            series,
            ..Measured::default()
        })
    }
}
