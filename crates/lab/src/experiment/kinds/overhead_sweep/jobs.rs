// SPDX-License-Identifier: GPL-3.0-or-later
//! The runs of a sweep.
use std::collections::BTreeSet;

use super::subject::{Admission, Setting, Subject};
use super::{OverheadSweep, suffix};
use crate::experiment::batch::Job;
use crate::experiment::bench::{Bench, as_f64, flood};
use crate::experiment::error::ExperimentError;
use weir_board::run::{RunSpec, Stimulus};
use weir_board::stimulus::arrivals;

/// A run, by the id of its subject.
pub(super) type Key = (String, Case);

/// What is done to a subject. Indices are those of the lists in the experiment's file, or of the functions below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Case {
    /// Nothing.
    Idle,
    /// A rate of the grid, with a phase.
    Grid(usize, usize),
    /// One of [`adversaries`].
    Adversary(usize),
    /// One of [`admissible`].
    Below(Admission, usize),
    /// One of the two rates between which all requests are refused.
    Refused(usize),
    /// With a background that sleeps: nothing for 0, else a rate below the limit.
    Sleep(usize),
}

/// Runs whose only subject is the idle background need not be long.
const IDLE_CYCLES: u64 = 200_000;

pub(super) fn jobs(
    bench: &Bench,
    spec: &OverheadSweep,
    subjects: &[Subject],
) -> Result<Vec<Job<Key>>, ExperimentError> {
    let phases = spec
        .phases
        .iter()
        .map(|phase| bench.cycles(phase.0))
        .collect::<Result<Vec<u64>, _>>()?;
    let adversaries = adversaries(bench, spec)?;
    let mut jobs = Vec::new();
    for subject in subjects {
        let base = subject.spec(bench)?;
        let mut add = |case, spec| {
            jobs.push(Job {
                key: (subject.id.clone(), case),
                firmware: subject.id.clone(),
                spec,
            });
        };
        add(
            Case::Idle,
            RunSpec {
                cycles: IDLE_CYCLES,
                hardware_limits: Vec::new(),
                front: None,
                ..base.clone()
            },
        );
        for (r, rate) in spec.rates.iter().enumerate() {
            for (p, &phase_cycles) in phases.iter().enumerate() {
                let stimulus = Stimulus::Periodic {
                    rate_hz: rate.0.hertz(),
                    phase_cycles,
                };
                add(Case::Grid(r, p), flooded(&base, stimulus));
            }
        }
        if compared_under_adversary(bench, subject) {
            for (a, stimulus) in adversaries.iter().enumerate() {
                add(Case::Adversary(a), flooded(&base, stimulus.clone()));
            }
        }
        for admission in admissions_compared(bench, subject, subjects) {
            for (b, stimulus) in admissible(bench, spec, admission)?.into_iter().enumerate() {
                add(Case::Below(admission, b), flooded(&base, stimulus));
            }
        }
        if claimed(bench, subject, suffix::REFUSED) {
            for (r, rate) in spec.refused.iter().enumerate() {
                let stimulus = periodic(rate.0.hertz());
                add(Case::Refused(r), flooded(&base, stimulus));
            }
        }
        if let Some(elf) = &subject.sleeping {
            let asleep = RunSpec {
                elf: elf.clone(),
                ..base.clone()
            };
            add(Case::Sleep(0), asleep.clone());
            for (s, rate) in spec.sleep.iter().enumerate() {
                let times = until_quiet(bench, &periodic(rate.0.hertz()))?;
                add(Case::Sleep(s + 1), flooded(&asleep, times));
            }
        }
    }
    Ok(jobs)
}

fn flooded(base: &RunSpec, stimulus: Stimulus) -> RunSpec {
    let mut spec = base.clone();
    spec.floods.push(flood(stimulus));
    spec
}

fn periodic(rate_hz: f64) -> Stimulus {
    Stimulus::Periodic {
        rate_hz,
        phase_cycles: 0,
    }
}

/// Poisson arrivals and pairs. A gap that is no shorter than its period is left out.
pub(super) fn adversaries(
    bench: &Bench,
    spec: &OverheadSweep,
) -> Result<Vec<Stimulus>, ExperimentError> {
    let mut stimuli = Vec::new();
    for rate in &spec.poisson.rates {
        for &seed in &spec.poisson.seeds {
            stimuli.push(Stimulus::Poisson {
                rate_hz: rate.0.hertz(),
                seed: Some(seed),
            });
        }
    }
    for period in &spec.pairs.periods {
        for gap in &spec.pairs.gaps {
            let (period_cycles, gap_cycles) = (bench.cycles(period.0)?, bench.cycles(gap.0)?);
            if gap_cycles < period_cycles {
                stimuli.push(Stimulus::Pairs {
                    period_cycles,
                    gap_cycles,
                });
            }
        }
    }
    Ok(stimuli)
}

/// Arrivals that a limiter must not touch: regular ones below its limit, and bursts of its size once in as many
/// intervals. Each comes within the counted part and leaves time at its end, so that requests can be counted
/// exactly.
pub(super) fn admissible(
    bench: &Bench,
    spec: &OverheadSweep,
    limiter: Admission,
) -> Result<Vec<Stimulus>, ExperimentError> {
    let mut stimuli: Vec<Stimulus> = spec
        .rates
        .iter()
        .map(|rate| rate.0.hertz())
        .filter(|hertz| limiter.admits(bench, *hertz))
        .map(periodic)
        .collect();
    if limiter.burst > 1 {
        // In percent of what the limit demands.
        for stretch in [105, 137] {
            stimuli.push(Stimulus::Bursts {
                count: limiter.burst,
                gap_cycles: bench.cycles(spec.burst_gap.0)?,
                period_cycles: u64::from(limiter.burst) * limiter.interval_cycles * stretch / 100,
            });
        }
    }
    stimuli
        .iter()
        .map(|stimulus| until_quiet(bench, stimulus))
        .collect()
}

/// The edges of the first nine tenths of the counted part.
fn until_quiet(bench: &Bench, stimulus: &Stimulus) -> Result<Stimulus, ExperimentError> {
    let end = bench.warmup_cycles + bench.length_cycles / 10 * 9;
    // Not the very first cycle, at which the warm-up's last instruction may still run.
    let begin = bench.warmup_cycles + 100;
    let edges = arrivals(stimulus, bench.clock_hz)
        .map_err(|cause| ExperimentError::Evaluation(cause.to_string()))?;
    Ok(Stimulus::Trace {
        name: stimulus.to_string(),
        times: edges
            .map(|edge| edge.at + begin)
            .take_while(|at| *at < end)
            .collect(),
    })
}

fn claimed(bench: &Bench, subject: &Subject, suffix: &str) -> bool {
    bench.setup.claims(&format!("{}.{suffix}", subject.id))
}

/// The limiters whose claim this is, and what they are compared with.
fn compared_under_adversary(bench: &Bench, subject: &Subject) -> bool {
    match subject.setting {
        Setting::Software => claimed(bench, subject, suffix::ADVERSARY),
        Setting::Hardware(_) | Setting::Silicon => bench.setup.limited().any(|limited| {
            limited.flavour() == subject.flavour
                && bench
                    .setup
                    .claims(&format!("{}.{}", limited.id(), suffix::ADVERSARY))
        }),
        Setting::Unprotected | Setting::Front(_) => false,
    }
}

/// What limiters admit of which this subject's losses below the limit are compared.
fn admissions_compared(
    bench: &Bench,
    subject: &Subject,
    subjects: &[Subject],
) -> BTreeSet<Admission> {
    let claiming =
        |other: &&Subject| other.setting.is_limiter() && claimed(bench, other, suffix::LOST);
    match subject.setting {
        Setting::Software | Setting::Silicon => Some(subject)
            .into_iter()
            .filter(claiming)
            .map(|s| s.admission)
            .collect(),
        Setting::Unprotected => subjects
            .iter()
            .filter(|other| other.flavour == subject.flavour)
            .filter(claiming)
            .map(|other| other.admission)
            .collect(),
        Setting::Hardware(_) | Setting::Front(_) => BTreeSet::new(),
    }
}

/// Seconds of the counted part.
pub(super) fn seconds(bench: &Bench) -> f64 {
    as_f64(bench.length_cycles) / as_f64(bench.clock_hz)
}
