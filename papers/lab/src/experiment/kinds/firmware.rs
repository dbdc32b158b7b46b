// SPDX-License-Identifier: GPL-3.0-or-later
//! Experiments with firmware under floods: they measure how much processor time interrupts and
//! their limiters take from the background loop.
//!
//! Everything that is specific to a figure is in its file. A series ([`series`]) is a formula over
//! values counted in runs ([`values`]), and a claim is a formula over series.
mod spec;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use weir_model::worst_rates;

use crate::experiment::batch::{BatchRun, run_all, run_one};
use crate::experiment::bench::{Bench, plausible};
use crate::experiment::error::{ExperimentError, list};
use crate::experiment::findings::{Detail, Measurements};
use crate::experiment::kind::{Ids, Kind, KindEntry};
use crate::experiment::place::Checkout;
use crate::experiment::search::{self, SearchSpec};
use crate::experiment::series::formula::number;
use crate::experiment::series::{self, RunKey, SeriesPlan, SeriesSpec, Values};
use crate::experiment::setup::{Role, Setup, Variant};
use spec::{Firmware, FloodSpec, MeasureSpec};
use values::Meter;
use weir_emulate::board::EmulatedBoard;
use weir_emulate::line::Line;
use weir_emulate::run::{
    FrontController, HardwareLimit, LineStimulus, RunResult, RunSpec, Stimulus,
};
use weir_emulate::stimulus::arrivals;

pub(super) const KIND: KindEntry =
    KindEntry::of::<Firmware>("firmware").on(&[EmulatedBoard::ATMEGA128, EmulatedBoard::SOC]);

/// The pin on which the second microcontroller forwards requests (limiter.c).
const FRONT_OUTPUT: &str = "PB0";
/// The flavour of the unprotected firmware behind the second microcontroller, as in the paper.
const BEHIND_FRONT: &str = "paper";

impl Kind for Firmware {
    fn known(&self, setup: &Setup) -> Ids {
        let measured = self.measures(setup).into_iter().map(|measure| measure.id);
        let rates = worst_rates::all().iter().filter(|_| self.has_worst_rates());
        let series = self.flood.iter().flat_map(|flood| flood.series_of(setup));
        let series: Vec<SeriesSpec> = series.collect();
        Ids {
            claims: measured
                .chain(rates.map(|source| rate_claim(&source.id)))
                .collect(),
            series: series::known(&series).series,
        }
    }

    fn measure(&self, place: &Checkout, setup: &Setup) -> Result<Measurements, ExperimentError> {
        let bench = Bench::new(place, setup)?;
        // Read the costs before the runs, so that a missing cost is reported at once.
        let meter = Meter::new(place, &self.costs)?;
        let sets = self
            .flood
            .iter()
            .map(|flood| Set::new(&bench, self, flood))
            .collect::<Result<Vec<Set>, _>>()?;
        for set in &sets {
            set.plan.check(|value| meter.knows(value))?;
        }
        let searches = search::of_variants(&self.search, &setup.names());
        let variants = setup.variant.iter();
        let searched = SeriesPlan {
            variants: variants.map(|of| of.id().to_owned()).collect(),
            ..SeriesPlan::default()
        };
        let of_sets = sets
            .iter()
            .flat_map(|set| series::known(&set.plan.series).claims);
        let of_sets = of_sets.collect();
        search::check(
            &searches,
            &searched,
            (&of_sets, &[]),
            |_, value| meter.knows(value),
            |flood| setup.board.stimulus(flood, bench.clock_hz),
        )?;
        let measures = self.claimed(setup, of_sets, &searches)?;
        let mut jobs = self.idle(&bench)?;
        for (number, set) in (1..).zip(&sets) {
            set.add_jobs(&bench, number, &mut jobs)?;
        }
        let results = run_all(jobs)?;
        let mut runs: Vec<BTreeMap<RunKey, Values>> = vec![BTreeMap::new(); sets.len() + 1];
        for variant in &setup.variant {
            let idle = &results[&(IDLE, idle_key(variant.id()))];
            let of_variant = results
                .iter()
                .filter(|((_, key), _)| key.variant == variant.id());
            for ((number, key), result) in of_variant {
                let values = meter.values(&bench, variant, result, idle)?;
                runs[*number].insert(key.clone(), values);
            }
        }
        let mut all = Measurements::default();
        let mut names = Values::new();
        for (set, runs) in sets.iter().zip(&runs[1..]) {
            let measured = set.plan.measure(runs)?;
            let values = measured.values.into_iter();
            names.extend(values.map(|(name, value)| (name, number(value))));
            all.series.extend(measured.series);
        }
        if !searches.is_empty() {
            let idle = |variant: &str| &results[&(IDLE, idle_key(variant))];
            let (worst, floods) = Self::search(&bench, &meter, (&searches, &searched), idle)?;
            names.extend(worst.into_iter().map(|(id, worst)| (id, number(worst))));
            all.detail = Some(floods);
        }
        for measure in measures {
            let value = measure
                .value
                .evaluate(&names)
                .map_err(|what| in_claim(&measure, &what))?;
            let value = if measure.overhead {
                plausible(&measure.id, value)?
            } else {
                value
            };
            all.values.insert(measure.id, value);
        }
        let rates = worst_rates::all().iter();
        all.values
            .extend(rates.map(|source| (rate_claim(&source.id), source.hertz())));
        Ok(all)
    }

    fn shorten(&mut self) -> bool {
        let mut is_shorter = search::shorten(&mut self.search);
        for flood in &mut self.flood {
            if let Some(quick) = flood.quick.take() {
                if let Some(x) = &mut flood.x {
                    x.shorten(quick.values);
                }
                flood.phases = quick.phases;
                is_shorter = true;
            }
        }
        is_shorter
    }
}

fn wrong(what: &str) -> ExperimentError {
    ExperimentError::Evaluation(what.to_owned())
}

/// The id of the claim about a source's rate in Table 1 of regehr2005.
fn rate_claim(source: &str) -> String {
    format!("{source}.rate")
}

/// The number of the set that contains the runs without a flood.
const IDLE: usize = 0;

/// The point and the seed in the key of a run without a flood, for which they have no meaning.
const IDLE_POINT: (usize, u64) = (0, 0);

fn idle_key(variant: &str) -> RunKey {
    let (index, seed) = IDLE_POINT;
    RunKey {
        variant: variant.to_owned(),
        index,
        seed,
    }
}

fn in_claim(measure: &MeasureSpec, what: &str) -> ExperimentError {
    wrong(&format!("the claim `{}`: {what}", measure.id))
}

impl Firmware {
    /// The values that the file's claims are about. Their formulas may name the values in `known`
    /// and the results of `searches`.
    fn claimed(
        &self,
        setup: &Setup,
        mut known: BTreeSet<String>,
        searches: &[SearchSpec],
    ) -> Result<Vec<MeasureSpec>, ExperimentError> {
        known.extend(searches.iter().map(|search| search.id.clone()));
        let mut claimed = self.measures(setup);
        claimed.retain(|measure| setup.claims(&measure.id));
        for measure in &claimed {
            if let Some(name) = measure.value.names().find(|&name| !known.contains(name)) {
                let what = format!("there is no value `{name}`, but {}", list(&known));
                return Err(in_claim(measure, &what));
            }
        }
        Ok(claimed)
    }

    /// Carries out all searches. Returns the worst value of each search, and the floods.
    fn search<'a>(
        bench: &Bench,
        meter: &Meter,
        (searches, plan): (&[SearchSpec], &SeriesPlan),
        idle: impl Fn(&str) -> &'a RunResult + Sync,
    ) -> Result<(BTreeMap<String, f64>, Detail), ExperimentError> {
        search::carry_out(searches, |search, flood| {
            let Ok(stimulus) = bench.setup.board.stimulus(&flood.pattern, bench.clock_hz) else {
                return Ok(None);
            };
            let mut runs = BTreeMap::new();
            let used = plan.used_in(&search.value);
            let variants = bench.setup.variant.iter();
            for variant in variants.filter(|of| used.contains(of.id())) {
                let spec = RunSpec {
                    floods: vec![stimulus.clone()],
                    ..base(bench, variant)?
                };
                let counted = run_one(variant.id(), &spec)?;
                let values = meter.values(bench, variant, &counted, idle(variant.id()))?;
                runs.insert(idle_key(variant.id()), values);
            }
            let value = search.value.evaluate(&plan.at(&runs, IDLE_POINT, 0.0));
            value.map(Some).map_err(|what| search.wrong(&what))
        })
    }

    /// A run of each variant without a flood. It shows how many cycles a turn of the background
    /// loop takes.
    fn idle(&self, bench: &Bench) -> Result<Vec<BatchRun<(usize, RunKey)>>, ExperimentError> {
        let cycles = match &self.idle {
            Some(idle) => bench.cycles(idle.0)?,
            None => bench.length_cycles,
        };
        let job = |variant: &Variant| {
            Ok(BatchRun {
                key: (IDLE, idle_key(variant.id())),
                firmware: variant.id().to_owned(),
                spec: RunSpec {
                    cycles,
                    hardware_limits: Vec::new(),
                    front: None,
                    ..base(bench, variant)?
                },
            })
        };
        bench.setup.variant.iter().map(job).collect()
    }
}

/// A set of floods with the results of its runs. A seed selects the phase of a flood, in cycles.
struct Set<'a> {
    spec: &'a FloodSpec,
    plan: SeriesPlan,
}

impl<'a> Set<'a> {
    fn new(
        bench: &Bench,
        firmware: &Firmware,
        spec: &'a FloodSpec,
    ) -> Result<Self, ExperimentError> {
        let phases = spec.phases.iter();
        let mut seeds = phases
            .map(|phase| bench.cycles(phase.0))
            .collect::<Result<Vec<u64>, _>>()?;
        if seeds.is_empty() {
            seeds.push(0);
        }
        let variants = bench.setup.variant.iter();
        let constants = firmware.constants.iter();
        Ok(Self {
            spec,
            plan: SeriesPlan {
                x: spec.axis(),
                seeds,
                series: spec.series_of(bench.setup),
                variants: variants.map(|of| of.id().to_owned()).collect(),
                constants: constants
                    .map(|(name, &value)| (name.clone(), number(value)))
                    .collect(),
            },
        })
    }

    /// Adds a run for every variant that occurs in a series, at every point and with every phase.
    fn add_jobs(
        &self,
        bench: &Bench,
        number: usize,
        jobs: &mut Vec<BatchRun<(usize, RunKey)>>,
    ) -> Result<(), ExperimentError> {
        let used = self.plan.used();
        for variant in bench
            .setup
            .variant
            .iter()
            .filter(|of| used.contains(of.id()))
        {
            let mut base = base(bench, variant)?;
            if !self.spec.defines.is_empty() {
                let defines: Vec<&str> = self.spec.defines.iter().map(String::as_str).collect();
                base.elf = bench.compile(variant, &defines)?;
            }
            for (key, x) in self.plan.runs_of(variant.id()) {
                let spec = RunSpec {
                    floods: self.floods(bench, variant, &key, x)?,
                    ..base.clone()
                };
                jobs.push(BatchRun {
                    key: (number, key),
                    firmware: variant.id().to_owned(),
                    spec,
                });
            }
        }
        Ok(())
    }

    fn floods(
        &self,
        bench: &Bench,
        variant: &Variant,
        run: &RunKey,
        x: f64,
    ) -> Result<Vec<LineStimulus>, ExperimentError> {
        let failed = |what: String| wrong(&format!("the flood at x = {x}: {what}"));
        let mut floods = Vec::new();
        let pattern = self.spec.patterns.get(run.index);
        if let Some(pattern) = pattern.filter(|text| !text.is_empty()) {
            let flood = bench.setup.board.stimulus(pattern, bench.clock_hz);
            floods.push(flood.map_err(|error| failed(error.to_string()))?);
        }
        let lines = usize::try_from(variant.lines).unwrap_or(usize::MAX);
        let rates = Line::all().zip(&self.spec.rates).zip(1..);
        for ((line, rate), place) in rates.take(lines) {
            floods.push(LineStimulus {
                line,
                stimulus: Stimulus::Periodic {
                    rate_hz: rate.at(x).map_err(failed)?,
                    phase_cycles: run.seed.saturating_mul(place),
                },
            });
        }
        if self.spec.until_quiet {
            for flood in &mut floods {
                flood.stimulus = until_quiet(bench, &flood.stimulus)?;
            }
        }
        Ok(floods)
    }
}

/// A run of a variant without a flood. If the variant has a limiter in front of the board, the run
/// includes the limiter.
fn base(bench: &Bench, variant: &Variant) -> Result<RunSpec, ExperimentError> {
    let mut spec = bench.spec(&bench.elf(variant));
    spec.hardware_limits = variant
        .limit
        .iter()
        .map(|limit| HardwareLimit {
            line: Line::INT0,
            interval_cycles: interval_cycles(bench, limit.0),
        })
        .collect();
    if variant.role == Role::Front {
        let mut all = bench.setup.variant.iter();
        let behind = all
                .find(|of| of.role == Role::Unprotected && of.flavour() == BEHIND_FRONT)
                .ok_or_else(|| {
                    wrong(&format!(
                        "the flavour `{BEHIND_FRONT}` has no variant with role = \"unprotected\" to compare with"
                    ))
                })?;
        spec.front = Some(FrontController {
            elf: bench.elf(variant),
            input: Line::INT0,
            output: FRONT_OUTPUT
                .parse()
                .map_err(|error| wrong(&format!("{FRONT_OUTPUT}: {error}")))?,
            to: Line::INT0,
        });
        spec.elf = bench.elf(behind);
    }
    Ok(spec)
}

/// The interval of a limit's rate, in cycles.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a period is positive and far below 2^52"
)]
fn interval_cycles(bench: &Bench, limit: weir_model::Rate) -> u64 {
    (limit.period_cycles(bench.clock_hz).ceil() as u64).max(1)
}

/// The edges of `stimulus` in the first nine tenths of the counted part. The quiet last tenth lets
/// every request be dealt with before the count ends, so that requests can be counted exactly.
fn until_quiet(bench: &Bench, stimulus: &Stimulus) -> Result<Stimulus, ExperimentError> {
    let end = bench.warmup_cycles + bench.length_cycles / 10 * 9;
    // Skip the first cycles: the last instruction of the warm-up may still run.
    let begin = bench.warmup_cycles + 100;
    let edges = arrivals(stimulus, bench.clock_hz).map_err(|cause| wrong(&cause.to_string()))?;
    Ok(Stimulus::Trace {
        name: stimulus.to_string(),
        times: edges
            .map(|edge| edge.at + begin)
            .take_while(|at| *at < end)
            .collect(),
    })
}
