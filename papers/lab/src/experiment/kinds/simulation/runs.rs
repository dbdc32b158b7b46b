// SPDX-License-Identifier: GPL-3.0-or-later
//! The runs of a simulated experiment.
use std::collections::{BTreeMap, BTreeSet};

use weir_model::{Duration, System};
use weir_sim::{Batches, Feed, Options, Target, Tick, simulate};

use super::spec::{Simulation, VariantSpec};
use super::values::{names, values};
use crate::experiment::batch::carry_out;
use crate::experiment::error::{ExperimentError, list};
use crate::experiment::place::Checkout;
use crate::experiment::series::formula::Template;
use crate::experiment::series::{RunKey, SeriesPlan, Values};

/// The system to simulate.
pub(super) struct Model {
    system: System,
    /// The names of all values that a run has.
    names: BTreeSet<String>,
}

impl Model {
    /// Reads the experiment's system file.
    pub fn load(place: &Checkout, spec: &Simulation) -> Result<Self, ExperimentError> {
        let system = weir_model::load(&place.path(&spec.system)).map_err(Box::new)?;
        let mut known = BTreeSet::new();
        for name in names(&system) {
            if let Some(twice) = known.replace(name) {
                return Err(ExperimentError::Evaluation(format!(
                    "{}: two parts of the system have a value `{twice}`: rename one of them",
                    spec.system
                )));
            }
        }
        Ok(Self {
            system,
            names: known,
        })
    }

    /// Checks that a run has a value of this name.
    pub fn knows(&self, value: &str) -> Result<(), String> {
        if self.names.contains(value) {
            Ok(())
        } else {
            Err(format!(
                "a run has no value `{value}`; it has {}",
                list(&self.names)
            ))
        }
    }

    /// Runs every variant at every point with every seed, on all processors.
    pub fn simulate(
        &self,
        spec: &Simulation,
        plan: &SeriesPlan,
    ) -> Result<BTreeMap<RunKey, Values>, ExperimentError> {
        let mut runs = Vec::new();
        for variant in &spec.variant {
            for (key, x) in plan.runs_of(&variant.id) {
                let run = prepare(spec, variant, &self.system, x, key.seed).map_err(|what| {
                    ExperimentError::Evaluation(format!(
                        "the variant `{}` at x = {x}: {what}",
                        variant.id
                    ))
                })?;
                runs.push((key, run));
            }
        }
        carry_out(runs, |(key, (system, options))| {
            let tally = simulate(&system, &options).map_err(|error| {
                ExperimentError::Evaluation(format!("the variant `{}`: {error}", key.variant))
            })?;
            let tick = options.tick.map_or(0, |tick| tick.period);
            Ok((key, values(&system, &tally, tick)))
        })
    }
}

/// Prepares the simulation of a variant at a point with a seed.
fn prepare(
    spec: &Simulation,
    variant: &VariantSpec,
    system: &System,
    x: f64,
    seed: u64,
) -> Result<(System, Options), String> {
    let clock_hz = system.cpu.clock_hz;
    let cycles = |duration: Duration| duration.cycles(clock_hz).map_err(|error| error.to_string());
    let cycles_at = |template: &Template| {
        let duration: Result<Duration, _> = template.at(x)?.parse();
        cycles(duration.map_err(|error| error.to_string())?)
    };
    let system = changed(variant, system, cycles_at)?;
    let mut closed_loops = vec![None; system.receivers.len()];
    for (name, window) in &spec.closed_loops {
        let index = receiver(&system, name)?;
        closed_loops[index] = Some(cycles(window.0)?);
    }
    let mut feeds = Vec::new();
    for feed in &spec.feed {
        let flow = find(&system.flows, |flow| &flow.name, &feed.to, "flow")?;
        if let Some(pattern) = feed.pattern.pattern(x, clock_hz)? {
            feeds.push(Feed {
                to: Target::Flow(flow),
                pattern,
            });
        }
    }
    let tick = spec
        .tick
        .as_ref()
        .map(|tick| {
            Ok::<_, String>(Tick {
                period: cycles(tick.period.0)?,
                cost: tick.cost.map_or(Ok(0), |cost| cycles(cost.0))?,
                compensation: variant.compensation,
            })
        })
        .transpose()?;
    let mut costs = spec.costs.costs();
    if let Some(batches) = &spec.batches {
        costs.batches = Batches {
            wake: cycles(batches.wake.0)?,
            room: batches.room,
            beyond: if variant.crowding {
                cycles(batches.beyond.0)?
            } else {
                0
            },
        };
    }
    let options = Options {
        duration: cycles_at(&spec.duration)?,
        seed,
        costs,
        limits: true,
        moderation: variant.moderation,
        defer: variant.defer(),
        tick,
        closed_loops,
        feeds,
    };
    Ok((system, options))
}

/// The system with the changes of a variant, and with the variant's times at a point.
fn changed(
    variant: &VariantSpec,
    system: &System,
    cycles_at: impl Fn(&Template) -> Result<u64, String>,
) -> Result<System, String> {
    let mut system = system.clone();
    for (name, delay) in &variant.delays {
        let index = find(&system.sources, |source| &source.name, name, "source")?;
        match &mut system.sources[index].moderation {
            Some(moderation) => moderation.absolute = cycles_at(delay)?,
            None => return Err(format!("the system does not moderate `{name}`")),
        }
    }
    for (name, &urgency) in &variant.urgencies {
        let index = receiver(&system, name)?;
        system.receivers[index].urgency = urgency;
    }
    for (name, deadline) in &variant.deadlines {
        let index = receiver(&system, name)?;
        system.receivers[index].deadline = Some(cycles_at(deadline)?);
    }
    Ok(system)
}

fn receiver(system: &System, name: &str) -> Result<usize, String> {
    find(
        &system.receivers,
        |receiver| &receiver.name,
        name,
        "receiver",
    )
}

fn find<T>(all: &[T], name_of: fn(&T) -> &String, name: &str, what: &str) -> Result<usize, String> {
    all.iter()
        .position(|one| name_of(one) == name)
        .ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|one| name_of(one).as_str()).collect();
            format!("there is no {what} `{name}`, but {}", names.join(", "))
        })
}
