// SPDX-License-Identifier: GPL-3.0-or-later
//! Table 1 of regehr2005: how often sources can interrupt, and what that does to the board.
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use weir_model::worst_rates::{self, WorstRate};
use weir_report::Series;

use super::batch::{Job, run_all};
use super::bench::{Bench, Loss, flood, turn_cycles};
use super::file::{File, Quantity};
use super::{ExperimentError, Measured};
use weir_board::run::Stimulus;

/// The parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RatesSpec {
    /// In ascending order; if none is stated, those of the sources that system files can name.
    #[serde(default)]
    pub offered: Vec<Quantity<weir_model::Rate>>,
}

impl RatesSpec {
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

pub(super) fn known_claims(file: &File) -> BTreeSet<String> {
    let of_variants = file
        .variant
        .iter()
        .flat_map(|variant| [lost_claim(variant.id()), left_claim(variant.id())]);
    let rates = worst_rates::all().iter().map(rate_claim);
    rates.chain(of_variants).collect()
}

/// Two series per variant: what its background loses, and what it is left.
pub(super) fn known_series(file: &File) -> BTreeSet<String> {
    file.variant
        .iter()
        .flat_map(|variant| [variant.id().to_owned(), left_series(variant.id())])
        .collect()
}

pub(super) fn measure(bench: &Bench, spec: &RatesSpec) -> Result<Measured, ExperimentError> {
    let mut values: BTreeMap<String, f64> = worst_rates::all()
        .iter()
        .map(|source| (rate_claim(source), source.hertz()))
        .collect();
    let rates = spec.hertz();
    let mut jobs = Vec::new();
    for variant in &bench.file.variant {
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
    for variant in &bench.file.variant {
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
        costs: None,
        ..Measured::default()
    })
}
