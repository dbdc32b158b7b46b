// SPDX-License-Identifier: GPL-3.0-or-later
//! Measures the longest interrupts of limiters, which the response times of regehr2005 §5 need:
//! each kind of interrupt of each flavour, policy and timing.
mod adversary;
mod events;
mod subject;

use std::collections::BTreeMap;
use std::path::PathBuf;

use rayon::prelude::*;

use self::adversary::{Attack, in_step, storm};
use self::events::{LimiterInterrupt, longest};
use self::subject::Subject;
pub(super) use self::subject::WorstSpec;
use crate::experiment::batch::{BatchRun, run_each};
use crate::experiment::bench::{Bench, edges};
use crate::experiment::costs::WorstCosts;
use crate::experiment::error::ExperimentError;
use crate::experiment::setup::FlavourSources;
use weir_emulate::line::Line;
use weir_emulate::run::LineStimulus;

const BASE: &str = "expiry_base";
const CLEAR: &str = "clear_empty";

/// The ids of all costs that this measurement gives.
pub(super) fn ids(spec: &WorstSpec) -> impl Iterator<Item = String> {
    let limited = spec.limited.iter().map(|one| &one.id);
    let plain = spec.plain.iter().map(|one| &one.id);
    let shared = spec.shared.iter().map(|one| &one.id);
    let names = LimiterInterrupt::ALL
        .into_iter()
        .map(LimiterInterrupt::name)
        .chain([BASE, CLEAR]);
    limited.chain(plain).chain(shared).flat_map(move |id| {
        names
            .clone()
            .map(move |name| format!("{}.{name}", id.get_ref()))
    })
}

/// Runs every firmware under every attack, and returns the worst costs.
pub(super) fn measure(bench: &Bench, spec: &WorstSpec) -> Result<WorstCosts, ExperimentError> {
    let subjects = spec.subjects()?;
    let elves = subjects
        .par_iter()
        .enumerate()
        .map(|(index, subject)| compile(bench, spec, index, subject))
        .collect::<Result<Vec<PathBuf>, _>>()?;
    let length = bench.length_cycles;
    let mut jobs = Vec::new();
    for (index, subject) in subjects.iter().enumerate() {
        for seed in 0..spec.attacks {
            for (kind, attack) in [
                in_step(&subject.limit, seed),
                storm(&subject.limit, seed, length),
            ]
            .into_iter()
            .enumerate()
            {
                let mut run = bench.spec(&elves[index]);
                run.counters.clear();
                run.warmup_cycles = 0;
                run.trace = true;
                run.cycles = attack.end;
                run.floods = floods(subject, &attack);
                jobs.push(BatchRun {
                    key: (index, seed, kind),
                    firmware: subject.id.clone(),
                    spec: run,
                });
            }
        }
    }
    let results = run_each(jobs, |(index, ..), result| {
        longest(&result.events, &subjects[*index].watch)
    })?;
    let mut of_subject: Vec<BTreeMap<LimiterInterrupt, u64>> =
        vec![BTreeMap::new(); subjects.len()];
    for ((index, ..), found) in results {
        for (kind, cycles) in found {
            let most = of_subject[index].entry(kind).or_insert(0);
            *most = cycles.max(*most);
        }
    }
    summed_up(&subjects, &of_subject)
}

fn compile(
    bench: &Bench,
    spec: &WorstSpec,
    index: usize,
    subject: &Subject,
) -> Result<PathBuf, ExperimentError> {
    let unknown = |what: &str| {
        ExperimentError::Evaluation(format!(
            "`{}` is measured on `{}`, but the file has no {what} of that name",
            subject.id, subject.of
        ))
    };
    let flavour = subject.of.split('.').next().unwrap_or_default();
    let common = bench
        .setup
        .flavour
        .get(flavour)
        .ok_or_else(|| unknown("flavour"))?;
    let own = spec
        .firmware
        .get(&subject.of)
        .ok_or_else(|| unknown("firmware"))?;
    let defines = FlavourSources {
        defines: subject.defines.clone(),
        ..FlavourSources::default()
    };
    bench.compile_parts(&format!("worst{index}"), &[common, own, &defines])
}

/// The floods of an attack: every line gets the same edges, shifted from line to line by less than
/// an interrupt takes.
fn floods(subject: &Subject, attack: &Attack) -> Vec<LineStimulus> {
    let lines = (0_u64..).zip(&subject.lines);
    let mut floods: Vec<LineStimulus> = lines
        .map(|(index, line)| {
            let times = attack.requests.iter().map(|edge| edge + 7 * index);
            edges(&subject.id, *line, times.collect())
        })
        .collect();
    if subject.limit.block > 0 {
        floods.push(edges(&subject.id, Line::INT0, attack.blocks.clone()));
    }
    floods
}

/// The worst costs of all subjects with the same id.
fn summed_up(
    subjects: &[Subject],
    measured: &[BTreeMap<LimiterInterrupt, u64>],
) -> Result<WorstCosts, ExperimentError> {
    let mut worst = WorstCosts::default();
    let mut timers: BTreeMap<(&str, &str), Vec<(u64, u64)>> = BTreeMap::new();
    for (subject, kinds) in subjects.iter().zip(measured) {
        for (kind, cycles) in kinds {
            match (subject.sources, kind, &subject.channel) {
                (Some(sources), LimiterInterrupt::ExpiryEmpty, Some(channel)) => timers
                    .entry((&subject.id, channel))
                    .or_default()
                    .push((sources, *cycles)),
                (_, _, channel) => worst.add(&subject.id, channel.as_deref(), kind.name(), *cycles),
            }
        }
    }
    for ((id, channel), mut of_timer) in timers {
        of_timer.sort_unstable();
        let (base, clear) = line_above(&of_timer).ok_or_else(|| {
            ExperimentError::Evaluation(format!(
                "`{id}` shares a timer: measure it with 2 sources at least"
            ))
        })?;
        worst.add(id, Some(channel), BASE, base);
        worst.add(id, Some(channel), CLEAR, clear);
    }
    Ok(worst)
}

/// Bounds the timer interrupt's cycles from above by a straight line over the number of sources.
/// Returns the line's base and its slope per source. The slope is the largest difference between
/// neighbouring points, and the base follows from it.
fn line_above(points: &[(u64, u64)]) -> Option<(u64, u64)> {
    let slope = points
        .windows(2)
        .map(|pair| {
            pair[1]
                .1
                .saturating_sub(pair[0].1)
                .div_ceil(pair[1].0.saturating_sub(pair[0].0).max(1))
        })
        .max()?;
    let base = points
        .iter()
        .map(|(sources, cycles)| cycles.saturating_sub(sources * slope))
        .max()?;
    Some((base, slope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_lies_above_all_points() {
        assert_eq!(line_above(&[(1, 40), (2, 52), (3, 64)]), Some((28, 12)));
        // Here the step to the second source is larger than that to the third.
        assert_eq!(line_above(&[(1, 40), (2, 54), (3, 66)]), Some((26, 14)));
        assert_eq!(line_above(&[(1, 40), (2, 50), (3, 64)]), Some((26, 14)));
        assert_eq!(line_above(&[(1, 40)]), None);
    }
}
