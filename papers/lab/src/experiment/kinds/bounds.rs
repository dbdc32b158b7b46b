// SPDX-License-Identifier: GPL-3.0-or-later
//! The tightness of the analysis: its bound on a response time, divided by the worst response that
//! a search for attacks found on the board (regehr2005 §5).
mod attack;
mod case;
mod observe;
mod random;
mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use indicatif::ProgressBar;
use rayon::prelude::*;
use serde::Deserialize;

use self::attack::Field;
use self::case::{Case, CaseSpec, Template, User, traced};
use self::random::RandomSpec;
use self::search::{Arena, Effort};
use crate::experiment::batch::bar;
use crate::experiment::bench::{Bench, as_f64};
use crate::experiment::error::ExperimentError;
use crate::experiment::findings::{Detail, Measurements};
use crate::experiment::kind::{Ids, Kind, KindEntry};
use crate::experiment::place::Checkout;
use crate::experiment::report::Series;
use crate::experiment::setup::Setup;
use weir_emulate::board::EmulatedBoard;

pub(super) const KIND: KindEntry =
    KindEntry::of::<Bounds>("bounds").on(&[EmulatedBoard::ATMEGA128]);

/// The table `[bounds]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    /// The keys that the system files of all cases share.
    #[serde(default)]
    system: Template,
    /// The number of runs of each case that the file states.
    #[serde(default)]
    runs: u64,
    /// The largest number of runs of each stated case in the form `--quick`.
    quick: Option<NonZeroU64>,
    /// The seed of all random numbers.
    seed: u64,
    #[serde(default)]
    case: Vec<CaseSpec>,
    /// Randomly drawn cases, in addition to those that the file states.
    random: Option<RandomSpec>,
}

const MIN: &str = "min_ratio";
const MEDIAN: &str = "median_ratio";
const MAX: &str = "max_ratio";
const RATIO: &str = "ratio";

/// The prefix of the ids of claims about drawn cases.
const DRAWN: &str = "random.";

/// The titles of the columns in the table of cases.
const COLUMNS: [&str; 5] = [
    "case",
    "bound, cycles",
    "observed, cycles",
    "ratio",
    "adversary began as",
];

/// The result of the attacks on a case.
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

impl Kind for Bounds {
    /// Claims can name the extremes and the median of the ratios, and the ratio of each stated
    /// case. For drawn cases they can name only the extremes and the median. The only series is
    /// over the cases.
    fn known(&self, _: &Setup) -> Ids {
        let mut claims = BTreeSet::new();
        for (prefix, is_there) in [("", !self.case.is_empty()), (DRAWN, self.random.is_some())] {
            if is_there {
                claims.extend([MIN, MEDIAN, MAX].map(|name| format!("{prefix}{name}")));
            }
        }
        let each = self.case.iter();
        claims.extend(each.map(|case| format!("{}.{RATIO}", case.name.get_ref())));
        Ids {
            claims,
            series: BTreeSet::from([RATIO.to_owned()]),
        }
    }

    fn shorten(&mut self) -> bool {
        let Some(most) = self.quick.map(NonZeroU64::get) else {
            return false;
        };
        self.runs = self.runs.min(most);
        true
    }

    /// Searches for the worst attack on every case.
    fn measure(&self, place: &Checkout, setup: &Setup) -> Result<Measurements, ExperimentError> {
        let bench = Bench::new(place, setup)?;
        let mut cases = self
            .case
            .par_iter()
            .map(|case| case.prepare(&bench, &self.system))
            .collect::<Result<Vec<Case>, _>>()?;
        if let Some(random) = &self.random {
            cases.extend(random.prepare(&bench)?);
        }
        let runs = |case: &Case| match &self.random {
            Some(random) if case.is_drawn() => random.runs,
            _ => self.runs,
        };
        let bar = bar(cases.iter().map(runs).sum());
        let outcomes = (0_u64..)
            .zip(cases)
            .map(|(index, case)| {
                let effort = Effort {
                    runs: runs(&case),
                    seed: self.seed.wrapping_add(index),
                };
                attack(case, effort, &bar)
            })
            .collect::<Result<Vec<Outcome>, _>>();
        bar.finish_and_clear();
        summed_up(&outcomes?)
    }
}

fn attack(case: Case, effort: Effort, bar: &ProgressBar) -> Result<Outcome, ExperimentError> {
    // The run has several jobs if the user switches the source or changes the limit before each
    // job.
    let jobs = if case.user == User::default() { 1 } else { 4 };
    let end = jobs * Field::end(&case.limits, case.bound);
    let arena = Arena {
        name: &case.name,
        spec: traced(&case.elf, case.clock_hz, end),
        lines: case.lines.clone(),
        field: Field {
            limits: &case.limits,
            end,
        },
        watch: case.watch,
        vectors: case.vectors(),
    };
    let found = arena.search(effort, bar)?;
    if found.worst.cycles == 0 {
        return Err(ExperimentError::Evaluation(format!(
            "the case `{}`: the observed job or interrupt never ran",
            case.name
        )));
    }
    let mut case = case;
    if !case.user.changes.is_empty() {
        // The board's file has no costs of a limit that changes, so the bound is computed from the
        // interrupts that these runs measured.
        case.bound = case.bound_with(found.longest).ok_or_else(|| {
            ExperimentError::Evaluation(format!(
                "the case `{}`: the analysis has no bound for interrupts of {:?} cycles",
                case.name, found.longest
            ))
        })?;
    }
    Ok(Outcome {
        observed: found.worst.cycles,
        pattern: found.attack.pattern,
        case,
    })
}

fn summed_up(outcomes: &[Outcome]) -> Result<Measurements, ExperimentError> {
    if outcomes.is_empty() {
        return Err(ExperimentError::Evaluation(
            "there is no case: give at least one".to_owned(),
        ));
    }
    let mut values = BTreeMap::new();
    for (prefix, is_drawn) in [("", false), (DRAWN, true)] {
        let of_these = outcomes
            .iter()
            .filter(|outcome| outcome.case.is_drawn() == is_drawn);
        let mut ratios: Vec<f64> = of_these.map(Outcome::ratio).collect();
        ratios.sort_by(f64::total_cmp);
        if let (Some(&min), Some(&max), Some(median)) =
            (ratios.first(), ratios.last(), median(&ratios))
        {
            values.extend([
                (format!("{prefix}{MIN}"), min),
                (format!("{prefix}{MEDIAN}"), median),
                (format!("{prefix}{MAX}"), max),
            ]);
        }
    }
    for outcome in outcomes.iter().filter(|outcome| !outcome.case.is_drawn()) {
        values.insert(format!("{}.{RATIO}", outcome.case.name), outcome.ratio());
    }
    let points = (1_u64..)
        .zip(outcomes)
        .map(|(number, outcome)| (as_f64(number), outcome.ratio()))
        .collect();
    let rows = shown(outcomes).into_iter().map(|outcome| {
        let case = &outcome.case;
        vec![
            if case.is_drawn() {
                format!("{}: {}", case.name, case.drawn)
            } else {
                case.name.clone()
            },
            case.bound.to_string(),
            outcome.observed.to_string(),
            format!("{:.3}", outcome.ratio()),
            outcome.pattern.to_owned(),
        ]
    });
    Ok(Measurements {
        values,
        series: vec![Series {
            id: RATIO.to_owned(),
            x: "case, in the order of the table".to_owned(),
            y: "bound / worst observed".to_owned(),
            points,
        }],
        detail: Some(Detail::new(&COLUMNS, rows)),
        ..Measurements::default()
    })
}

/// The number of drawn cases to show at each end: those with the smallest ratios and those with the
/// largest.
const EXTREMES: usize = 5;

/// The cases to show: all stated cases, and the extremes of the drawn cases.
fn shown(outcomes: &[Outcome]) -> Vec<&Outcome> {
    let (mut drawn, mut all): (Vec<&Outcome>, Vec<&Outcome>) =
        outcomes.iter().partition(|outcome| outcome.case.is_drawn());
    drawn.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    if drawn.len() > 2 * EXTREMES {
        drawn.drain(EXTREMES..drawn.len() - EXTREMES);
    }
    all.extend(drawn);
    all
}

/// The median of a sorted list: the mean of the two middle values if their number is even.
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
