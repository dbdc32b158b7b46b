// SPDX-License-Identifier: GPL-3.0-or-later
//! Figure 3 of regehr2005: several lines whose counts one timer clears.
//!
//! The variants of a flavour have fixed names: `unprotectedN` and `sharedN` with N lines, `burstyN` with one line and a
//! burst of N.
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use weir_model::{Duration, Rate};
use weir_report::Series;

use crate::experiment::batch::{Job, run_all};
use crate::experiment::bench::{Bench, Loss, as_f64, plausible, sizes, turn_cycles};
use crate::experiment::error::ExperimentError;
use crate::experiment::findings::Measured;
use crate::experiment::kind::{Entry, Kind, Known};
use crate::experiment::place::Place;
use crate::experiment::setup::{Quantity, Setup, Variant};
use weir_board::line::Line;
use weir_board::machine::Machine;
use weir_board::run::{Flood, RunResult, RunSpec, Stimulus};

pub(super) const KIND: Entry = Entry::of::<TwoSources>("two-sources").on(&[Machine::Atmega128]);

/// The table `[two-sources]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TwoSources {
    /// Source A's rate at the point that the claims are about.
    first: Quantity<Rate>,
    /// Source B's.
    second: Quantity<Rate>,
    /// The third source's, where there is one.
    third: Quantity<Rate>,
    /// The rate of the only source, where there is one.
    single: Quantity<Rate>,
    /// The curves: A's rate and B's, each times this.
    scale: Vec<f64>,
    /// When A's first request comes; B's comes at twice, the third's at three times as late. Each point is run with each.
    phases: Vec<Quantity<Duration>>,
}

const TWO: &str = "two_sources";
const THIRD: &str = "third_source";
const FLASH: &str = "flash_per_source";
const RAM: &str = "ram_per_source";

/// The claims of a flavour, and the variants that each compares.
fn comparisons(flavour: &str) -> Vec<(String, [String; 2])> {
    let id = |policy: &str| format!("{flavour}.{policy}");
    let of = |claim: &str, a: &str, b: &str| (id(claim), [id(a), id(b)]);
    vec![
        of(TWO, "shared2", "unprotected2"),
        of(THIRD, "shared3", "unprotected3"),
        of("single4", "bursty4", "unprotected1"),
        of("single16", "bursty16", "unprotected1"),
        of(FLASH, "shared2", "shared1"),
        of(RAM, "shared2", "shared1"),
    ]
}

fn flavours(setup: &Setup) -> BTreeSet<&str> {
    setup.variant.iter().map(Variant::flavour).collect()
}

fn has(setup: &Setup, id: &str) -> bool {
    setup.variant.iter().any(|variant| variant.id() == id)
}

/// Each variant with two lines has a series.
fn with_two_lines(setup: &Setup) -> impl Iterator<Item = String> {
    let variants = setup.variant.iter().filter(|variant| variant.lines == 2);
    variants.map(|variant| variant.id().to_owned())
}

/// A run: its variant; the point (0 is no flood, 1 the claims', 2 the first of the curve); the phase.
type Key = (String, usize, usize);

impl Kind for TwoSources {
    fn known(&self, setup: &Setup) -> Known {
        Known {
            claims: flavours(setup)
                .into_iter()
                .flat_map(comparisons)
                .filter(|(_, variants)| variants.iter().all(|id| has(setup, id)))
                .map(|(claim, _)| claim)
                .collect(),
            series: with_two_lines(setup).collect(),
        }
    }

    fn measure(&self, place: &Place, setup: &Setup) -> Result<Measured, ExperimentError> {
        let bench = &Bench::new(place, setup)?;
        let results = run_all(jobs(bench, self)?)?;
        let losses = Losses {
            results: &results,
            phases: self.phases.len(),
        };
        let mut values = BTreeMap::new();
        for flavour in flavours(setup) {
            let mut two = None;
            for (claim, [a, b]) in comparisons(flavour) {
                if !setup.claims(&claim) {
                    continue;
                }
                let value = if claim.ends_with(FLASH) || claim.ends_with(RAM) {
                    let size = |id: &str| -> Result<_, ExperimentError> {
                        let sizes = sizes(id, &bench.elf(variant(bench, id)?))?;
                        Ok(as_f64(if claim.ends_with(FLASH) {
                            sizes.flash
                        } else {
                            sizes.ram
                        }))
                    };
                    size(&a)? - size(&b)?
                } else {
                    plausible(&a, losses.overhead(&a, &b)?)?
                };
                if claim.ends_with(TWO) {
                    two = Some(value);
                }
                let value = if claim.ends_with(THIRD) {
                    value
                        - two.ok_or_else(|| {
                            ExperimentError::Unmeasured(format!("{flavour}.{TWO}"))
                        })?
                } else {
                    value
                };
                values.insert(claim, value);
            }
        }
        let mut series = Vec::new();
        for id in with_two_lines(setup).collect::<BTreeSet<String>>() {
            series.push(curve(&losses, self, id)?);
        }
        Ok(Measured {
            values,
            series,
            ..Measured::default()
        })
    }
}

fn variant<'a>(bench: &'a Bench, id: &str) -> Result<&'a Variant, ExperimentError> {
    bench
        .setup
        .variant
        .iter()
        .find(|variant| variant.id() == id)
        .ok_or_else(|| ExperimentError::Unmeasured(id.to_owned()))
}

fn jobs(bench: &Bench, spec: &TwoSources) -> Result<Vec<Job<Key>>, ExperimentError> {
    let phases = spec
        .phases
        .iter()
        .map(|phase| bench.cycles(phase.0))
        .collect::<Result<Vec<u64>, _>>()?;
    let mut jobs = Vec::new();
    for variant in &bench.setup.variant {
        let base = bench.spec(&bench.elf(variant));
        let mut add = |point, phase, spec| {
            jobs.push(Job {
                key: (variant.id().to_owned(), point, phase),
                firmware: variant.id().to_owned(),
                spec,
            });
        };
        add(0, 0, base.clone());
        for (p, &phase) in phases.iter().enumerate() {
            let rates = match variant.lines {
                1 => vec![spec.single.0.hertz()],
                _ => vec![
                    spec.first.0.hertz(),
                    spec.second.0.hertz(),
                    spec.third.0.hertz(),
                ],
            };
            add(1, p, flooded(&base, variant, &rates, phase));
            if variant.lines == 2 {
                for (point, scale) in (2..).zip(&spec.scale) {
                    let rates: Vec<f64> = rates.iter().map(|rate| rate * scale).collect();
                    add(point, p, flooded(&base, variant, &rates, phase));
                }
            }
        }
    }
    Ok(jobs)
}

/// Each of the variant's lines with its rate.
fn flooded(base: &RunSpec, variant: &Variant, rates: &[f64], phase: u64) -> RunSpec {
    let mut spec = base.clone();
    let lines = usize::try_from(variant.lines).unwrap_or(usize::MAX);
    spec.floods = Line::all()
        .zip(rates)
        .zip(1..)
        .take(lines)
        .map(|((line, &rate_hz), place)| Flood {
            line,
            stimulus: Stimulus::Periodic {
                rate_hz,
                phase_cycles: phase * place,
            },
        })
        .collect();
    spec
}

struct Losses<'a> {
    results: &'a BTreeMap<Key, RunResult>,
    phases: usize,
}

impl Losses<'_> {
    fn of(&self, id: &str, point: usize, phase: usize) -> Result<Loss, ExperimentError> {
        let find = |point, phase| {
            self.results
                .get(&(id.to_owned(), point, phase))
                .ok_or_else(|| ExperimentError::Unmeasured(id.to_owned()))
        };
        Ok(Loss::of(find(point, phase)?, turn_cycles(find(0, 0)?)?))
    }

    /// At the claims' point, the worst phase.
    fn overhead(&self, a: &str, b: &str) -> Result<f64, ExperimentError> {
        (0..self.phases)
            .map(|phase| Ok(self.of(a, 1, phase)?.points_beyond(self.of(b, 1, phase)?)))
            .try_fold(
                f64::NEG_INFINITY,
                |worst, points: Result<f64, ExperimentError>| Ok(worst.max(points?)),
            )
    }
}

fn curve(losses: &Losses, spec: &TwoSources, id: String) -> Result<Series, ExperimentError> {
    let both = spec.first.0.hertz() + spec.second.0.hertz();
    let points = spec
        .scale
        .iter()
        .zip(2..)
        .map(|(scale, point)| {
            let mut lost = 0.0;
            for phase in 0..losses.phases {
                lost += losses.of(&id, point, phase)?.lost;
            }
            Ok((
                both * scale / 1e3,
                100.0 * lost / as_f64(losses.phases as u64),
            ))
        })
        .collect::<Result<_, ExperimentError>>()?;
    Ok(Series {
        id,
        x: "requests offered by both sources, kHz".to_owned(),
        y: "CPU used for interrupts, %".to_owned(),
        points,
    })
}
