// SPDX-License-Identifier: GPL-3.0-or-later
//! How near to the worst that happens the analysis is: its bound on a response time, divided by the worst that adversaries found on the board (regehr2005 §5).
mod attack;
mod case;
mod observe;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use indicatif::ProgressBar;
use rayon::prelude::*;
use serde::Deserialize;
use weir_report::Series;

use self::attack::Field;
use self::case::{Case, CaseSpec, traced};
use self::search::{Arena, Effort};
use super::batch::bar;
use super::bench::{Bench, as_f64};
use super::file::File;
use super::{Detail, ExperimentError, Measured};

/// The parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BoundsSpec {
    /// Where the cases' system files are, from the repository's root.
    pub systems: String,
    /// Runs of each case, adversary by adversary.
    pub runs: u64,
    /// From which all random numbers come.
    pub seed: u64,
    pub case: Vec<CaseSpec>,
}

const MIN: &str = "min_ratio";
const MEDIAN: &str = "median_ratio";
const MAX: &str = "max_ratio";
const RATIO: &str = "ratio";

/// Of the ratios the extremes and the median, and each by itself.
pub(super) fn known_claims(spec: &BoundsSpec) -> BTreeSet<String> {
    let of_cases = spec
        .case
        .iter()
        .map(|case| format!("{}.{RATIO}", case.name.get_ref()));
    [MIN, MEDIAN, MAX]
        .into_iter()
        .map(str::to_owned)
        .chain(of_cases)
        .collect()
}

/// One, over the cases.
pub(super) fn known_series(_: &File) -> BTreeSet<String> {
    BTreeSet::from([RATIO.to_owned()])
}

/// A case that was attacked.
struct Outcome {
    case: Case,
    observed: u64,
    pattern: &'static str,
}

impl Outcome {
    fn ratio(&self) -> f64 {
        as_f64(self.case.bound) / as_f64(self.observed)
    }
}

/// Attacks every case.
pub(super) fn measure(bench: &Bench, spec: &BoundsSpec) -> Result<Measured, ExperimentError> {
    let cases = spec
        .case
        .par_iter()
        .map(|case| case.prepare(bench, &spec.systems))
        .collect::<Result<Vec<Case>, _>>()?;
    let bar = bar(spec.runs.saturating_mul(cases.len() as u64));
    let outcomes = (0_u64..)
        .zip(cases)
        .map(|(index, case)| attack(case, spec, index, &bar))
        .collect::<Result<Vec<Outcome>, _>>();
    bar.finish_and_clear();
    summed_up(&outcomes?)
}

fn attack(
    case: Case,
    spec: &BoundsSpec,
    index: u64,
    bar: &ProgressBar,
) -> Result<Outcome, ExperimentError> {
    let end = Field::end(&case.targets, case.bound);
    let arena = Arena {
        name: &case.name,
        spec: traced(&case.elf, case.clock_hz, end),
        lines: case.lines.clone(),
        field: Field {
            targets: &case.targets,
            end,
        },
        watch: case.watch,
    };
    let effort = Effort {
        runs: spec.runs,
        seed: spec.seed.wrapping_add(index),
    };
    let found = arena.search(effort, bar)?;
    if found.worst.response == 0 {
        return Err(ExperimentError::Evaluation(format!(
            "the case `{}`: nothing of what is watched ever ran",
            case.name
        )));
    }
    Ok(Outcome {
        observed: found.worst.response,
        pattern: found.attack.pattern,
        case,
    })
}

fn summed_up(outcomes: &[Outcome]) -> Result<Measured, ExperimentError> {
    let mut ratios: Vec<f64> = outcomes.iter().map(Outcome::ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let (Some(&min), Some(&max), Some(median)) = (ratios.first(), ratios.last(), median(&ratios))
    else {
        return Err(ExperimentError::Evaluation(
            "there is no case: give at least one".to_owned(),
        ));
    };
    let mut values = BTreeMap::from([
        (MIN.to_owned(), min),
        (MEDIAN.to_owned(), median),
        (MAX.to_owned(), max),
    ]);
    for outcome in outcomes {
        values.insert(format!("{}.{RATIO}", outcome.case.name), outcome.ratio());
    }
    let points = (1_u64..)
        .zip(outcomes)
        .map(|(number, outcome)| (as_f64(number), outcome.ratio()))
        .collect();
    let rows = outcomes
        .iter()
        .map(|outcome| {
            vec![
                outcome.case.name.clone(),
                outcome.case.bound.to_string(),
                outcome.observed.to_string(),
                format!("{:.3}", outcome.ratio()),
                outcome.pattern.to_owned(),
            ]
        })
        .collect();
    Ok(Measured {
        values,
        series: vec![Series {
            id: RATIO.to_owned(),
            x: "case, in the order of the table".to_owned(),
            y: "bound / worst observed".to_owned(),
            points,
        }],
        costs: None,
        detail: Some(Detail {
            columns: [
                "case",
                "bound, cycles",
                "observed, cycles",
                "ratio",
                "adversary began as",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows,
        }),
        picture: None,
    })
}

/// The middle of what is in order; of two middles their mean.
fn median(ordered: &[f64]) -> Option<f64> {
    let middle = ordered.len() / 2;
    let upper = *ordered.get(middle)?;
    if ordered.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *ordered.get(middle.checked_sub(1)?)?;
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0]), Some(1.0));
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), Some(3.0));
    }
}
