// SPDX-License-Identifier: GPL-3.0-or-later
//! Table 2 of regehr2005: the cost in cycles of each step of limiting, measured on running
//! firmware.
mod worst;

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::experiment::batch::{BatchRun, run_all};
use crate::experiment::bench::{Bench, as_f64};
use crate::experiment::costs::{self, WorstCosts};
use crate::experiment::error::ExperimentError;
use crate::experiment::findings::Measurements;
use crate::experiment::kind::{Ids, Kind, KindEntry};
use crate::experiment::place::Checkout;
use crate::experiment::setup::Setup;
use weir_emulate::board::EmulatedBoard;
use weir_emulate::firmware::Toolchain;
use weir_emulate::run::RunResult;
use worst::WorstSpec;

pub(super) const KIND: KindEntry =
    KindEntry::of::<Constants>("constants").on(&[EmulatedBoard::ATMEGA128]);

/// The table `[constants]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Constants {
    /// The constants in the order of their measurement. A constant may subtract earlier ones.
    measure: Vec<ConstantSpec>,
    /// The worst interrupts of each limiter, which are measured in addition to the mean costs.
    worst: Option<WorstSpec>,
}

/// The measurement of one constant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstantSpec {
    /// The id of the constant: `FLAVOUR.CONSTANT`.
    id: Spanned<String>,
    /// The id of the variant whose firmware runs.
    of: String,
    /// The flood, in the syntax of the command line. If the key is missing, there is no flood.
    flood: Option<String>,
    /// The interrupt to measure. Its mean number of cycles counts, from its taking to the end of
    /// its RETI.
    vector: Option<String>,
    /// Whether the longest interrupt counts instead of the mean.
    #[serde(default)]
    longest: bool,
    /// An alternative to `vector`: the cycles from the symbol `weir_mark_NAME_begin` to
    /// `weir_mark_NAME_end` count. If the paths between them differ, the shortest counts.
    mark: Option<String>,
    /// The ids of the constants to subtract from the measured value.
    #[serde(default)]
    minus: Vec<String>,
}

fn split(id: &str) -> (&str, &str) {
    id.split_once('.').unwrap_or(("", id))
}

fn symbols(mark: &str) -> [String; 2] {
    ["begin", "end"].map(|end| format!("weir_mark_{mark}_{end}"))
}

impl Kind for Constants {
    fn known(&self, _: &Setup) -> Ids {
        let measured = self.measure.iter();
        let measured = measured.map(|constant| constant.id.get_ref().clone());
        Ids {
            claims: measured
                .chain(self.worst.iter().flat_map(worst::ids))
                .collect(),
            ..Ids::default()
        }
    }

    fn measure(&self, place: &Checkout, setup: &Setup) -> Result<Measurements, ExperimentError> {
        let bench = Bench::new(place, setup)?;
        let jobs = self
            .measure
            .iter()
            .enumerate()
            .map(|(index, constant)| job(&bench, index, constant))
            .collect::<Result<Vec<_>, _>>()?;
        let results = run_all(jobs)?;
        let mut values = BTreeMap::new();
        for (constant, result) in self.measure.iter().zip(results.values()) {
            let id = constant.id.get_ref();
            let mut cycles = evaluate(constant, result)
                .ok_or_else(|| ExperimentError::Unmeasured(id.clone()))?;
            for other in &constant.minus {
                cycles -= values
                    .get(other)
                    .ok_or_else(|| ExperimentError::Unmeasured(other.clone()))?;
            }
            values.insert(id.clone(), cycles);
        }
        let mut by_flavour: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        for (id, cycles) in &values {
            let (flavour, name) = split(id);
            by_flavour
                .entry(flavour.to_owned())
                .or_default()
                .insert(name.to_owned(), *cycles);
        }
        let worst = match &self.worst {
            Some(spec) => worst::measure(&bench, spec)?,
            None => WorstCosts::default(),
        };
        for (id, costs) in &worst.any {
            values.extend(
                costs
                    .iter()
                    .map(|(name, cycles)| (format!("{id}.{name}"), as_f64(*cycles))),
            );
        }
        Ok(Measurements {
            values,
            costs: Some(costs::to_toml(
                std::fs::read_to_string(place.costs_file()).ok().as_deref(),
                &Toolchain::AVR.version()?,
                &by_flavour,
                &worst,
            )),
            ..Measurements::default()
        })
    }
}

fn job(
    bench: &Bench,
    index: usize,
    constant: &ConstantSpec,
) -> Result<BatchRun<usize>, ExperimentError> {
    let variant = bench
        .setup
        .variant
        .iter()
        .find(|variant| variant.id() == constant.of)
        .ok_or_else(|| {
            ExperimentError::Evaluation(format!(
                "the constant `{}` is measured on `{}`, which is no variant of the file",
                constant.id.get_ref(),
                constant.of
            ))
        })?;
    let mut spec = bench.spec(&bench.elf(variant));
    // Drop the counters: the firmware of a constant has only the symbols that its measurement
    // needs.
    spec.counters.clear();
    if let Some(text) = &constant.flood {
        let flood = EmulatedBoard::ATMEGA128
            .stimulus(text, bench.clock_hz)
            .map_err(|error| {
                ExperimentError::Evaluation(format!(
                    "the flood of `{}`: {error}",
                    constant.id.get_ref()
                ))
            })?;
        spec.floods.push(flood);
    }
    spec.marks = constant
        .mark
        .iter()
        .flat_map(|mark| symbols(mark))
        .collect();
    Ok(BatchRun {
        key: index,
        firmware: constant.of.clone(),
        spec,
    })
}

fn evaluate(constant: &ConstantSpec, result: &RunResult) -> Option<f64> {
    if let Some(mark) = &constant.mark {
        let [begin, end] = symbols(mark);
        return fewest(result.marks.get(&begin)?, result.marks.get(&end)?).map(as_f64);
    }
    let vector = constant.vector.as_ref()?;
    let used = result.vectors.iter().find(|used| &used.name == vector)?;
    Some(if constant.longest {
        as_f64(used.longest_cycles)
    } else {
        as_f64(used.cycles) / as_f64(used.taken)
    })
}

/// The fewest cycles from an entry of `begins` to the next entry of `ends`. Both lists are in
/// ascending order.
fn fewest(begins: &[u64], ends: &[u64]) -> Option<u64> {
    begins
        .iter()
        .filter_map(|begin| {
            let next = ends.partition_point(|end| end < begin);
            ends.get(next).map(|end| end - begin)
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::fewest;

    #[test]
    fn each_begin_belongs_to_the_next_end() {
        assert_eq!(fewest(&[10, 30, 50], &[15, 33]), Some(3));
        // The counted part of this run began between the two symbols.
        assert_eq!(fewest(&[10], &[2, 14]), Some(4));
        assert_eq!(fewest(&[10], &[2]), None);
        assert_eq!(fewest(&[], &[]), None);
    }
}
