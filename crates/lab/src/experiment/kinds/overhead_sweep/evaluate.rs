// SPDX-License-Identifier: GPL-3.0-or-later
//! From runs to claims and curves.
use std::collections::{BTreeMap, BTreeSet};

use weir_report::Series;

use super::jobs::{Case, Key, admissible, adversaries, seconds};
use super::subject::{Setting, Subject};
use super::{OVERLOAD, OverheadSweep, overhead_series, published, suffix};
use crate::experiment::bench::{Bench, Loss, as_f64, plausible, served, turn_cycles};
use crate::experiment::costs;
use crate::experiment::error::ExperimentError;
use crate::experiment::findings::Measured;
use crate::experiment::model::{Constants, Model};
use crate::experiment::setup::hardware;
use weir_board::firmware::Toolchain;
use weir_board::line::Line;
use weir_board::run::{RunResult, VectorUse};

struct Sweep<'a> {
    bench: &'a Bench<'a>,
    spec: &'a OverheadSweep,
    subjects: &'a [Subject],
    results: &'a BTreeMap<Key, RunResult>,
    /// Cycles of one turn of the background, by subject.
    turns: BTreeMap<&'a str, f64>,
    costs: BTreeMap<String, Constants>,
}

/// The board's costs of the flavours that are claimed to follow the model.
pub(super) fn costs_needed(
    bench: &Bench,
    subjects: &[Subject],
) -> Result<BTreeMap<String, Constants>, ExperimentError> {
    subjects
        .iter()
        .map(|subject| subject.flavour.as_str())
        .collect::<BTreeSet<&str>>()
        .into_iter()
        .filter(|flavour| bench.setup.claims(&model_claim(flavour)))
        .map(|flavour| {
            let version = Toolchain::AVR.version()?;
            Ok((
                flavour.to_owned(),
                costs::read(bench.place, flavour, &version)?,
            ))
        })
        .collect()
}

fn model_claim(flavour: &str) -> String {
    format!("{flavour}.{}", suffix::MODEL)
}

pub(super) fn evaluate(
    bench: &Bench,
    spec: &OverheadSweep,
    subjects: &[Subject],
    results: &BTreeMap<Key, RunResult>,
    costs: BTreeMap<String, Constants>,
) -> Result<Measured, ExperimentError> {
    let turns = subjects
        .iter()
        .map(|subject| {
            let idle = &results[&(subject.id.clone(), Case::Idle)];
            Ok((subject.id.as_str(), turn_cycles(idle)?))
        })
        .collect::<Result<_, ExperimentError>>()?;
    let sweep = Sweep {
        bench,
        spec,
        subjects,
        results,
        turns,
        costs,
    };
    Ok(Measured {
        values: sweep.values()?,
        series: sweep.series(),
        ..Measured::default()
    })
}

impl Sweep<'_> {
    fn result(&self, id: &str, case: Case) -> Option<&RunResult> {
        self.results.get(&(id.to_owned(), case))
    }

    fn loss(&self, id: &str, case: Case) -> Option<Loss> {
        Some(Loss::of(self.result(id, case)?, *self.turns.get(id)?))
    }

    /// Points lost beyond the hardware limiter of the same flavour.
    fn overhead(&self, subject: &Subject, case: Case) -> Option<f64> {
        let reference = self.loss(&hardware(&subject.flavour), case)?;
        Some(self.loss(&subject.id, case)?.points_beyond(reference))
    }

    fn unprotected(&self, subject: &Subject) -> Option<&Subject> {
        self.subjects
            .iter()
            .find(|other| other.flavour == subject.flavour && other.setting == Setting::Unprotected)
    }

    fn software(&self) -> impl Iterator<Item = &Subject> {
        self.subjects
            .iter()
            .filter(|subject| subject.setting == Setting::Software)
    }

    fn grid(&self) -> impl Iterator<Item = (f64, Case)> + '_ {
        let phases = self.spec.phases.len();
        self.spec
            .rates
            .iter()
            .enumerate()
            .flat_map(move |(r, rate)| (0..phases).map(move |p| (rate.0.hertz(), Case::Grid(r, p))))
    }

    fn overloaded(&self) -> impl Iterator<Item = (f64, Case)> + '_ {
        self.grid()
            .filter(|(offered, _)| *offered >= OVERLOAD * self.spec.limit.0.hertz())
    }

    fn values(&self) -> Result<BTreeMap<String, f64>, ExperimentError> {
        let mut values = BTreeMap::new();
        let cases = adversaries(self.bench, self.spec)?.len();
        for subject in self.subjects.iter().filter(|of| of.setting.is_limiter()) {
            let id = &subject.id;
            let mut put = |suffix: &str, value: Option<f64>| {
                if let Some(value) = value {
                    values.insert(format!("{id}.{suffix}"), value);
                }
            };
            put(suffix::SLOPE, self.spread_in_overload(subject));
            put(suffix::SERVED, self.served_in_overload(subject));
            put(suffix::LOST, self.lost_below_limit(subject)?);
            put(suffix::REFUSED, self.refused_cycles(subject));
            put(suffix::WAKEUPS, self.extra_wakeups(subject));
            if subject.setting == Setting::Silicon {
                put(suffix::CYCLES, self.extra_cycles(subject));
                put(
                    suffix::MEAN_CYCLES,
                    self.extra_each(subject, |of| Some(of.cycles)),
                );
                put(
                    suffix::INSTRUCTIONS,
                    self.extra_each(subject, |of| of.instructions),
                );
                // What the others are compared with.
                continue;
            }
            put(
                suffix::ADVERSARY,
                worst((0..cases).map(|case| self.overhead(subject, Case::Adversary(case)))),
            );
            if let Some(overhead) = worst(self.grid().map(|(_, case)| self.overhead(subject, case)))
            {
                values.insert(id.clone(), plausible(id, overhead)?);
            }
        }
        for subject in self.subjects {
            if let Some(error) = self.model_error(subject) {
                let worst = values.entry(model_claim(&subject.flavour)).or_insert(error);
                *worst = worst.max(error);
            }
        }
        Ok(values)
    }

    /// Percent of the limit, at least.
    fn served_in_overload(&self, subject: &Subject) -> Option<f64> {
        let limit = self.spec.limit.0.hertz() * seconds(self.bench);
        self.overloaded()
            .map(|(_, case)| self.result(&subject.id, case).map(served))
            .collect::<Option<Vec<f64>>>()?
            .into_iter()
            .map(|served| 100.0 * served / limit)
            .reduce(f64::min)
    }

    /// Requests served by the unprotected firmware and not behind the limiter, at most.
    fn lost_below_limit(&self, subject: &Subject) -> Result<Option<f64>, ExperimentError> {
        let cases = admissible(self.bench, self.spec, subject.admission)?.len();
        let Some(unprotected) = self.unprotected(subject) else {
            return Ok(None);
        };
        Ok(worst((0..cases).map(|case| {
            let case = Case::Below(subject.admission, case);
            let count = |id| self.result(id, case).map(served);
            Some(count(&unprotected.id)? - count(&subject.id)?)
        })))
    }

    /// Whole cycles that one more refused request costs: what is lost at the higher rate beyond the same number of
    /// requests served at the lower one, by the requests that only the higher has.
    fn refused_cycles(&self, subject: &Subject) -> Option<f64> {
        let offered = |case| {
            let result = self.result(&subject.id, case)?;
            Some(as_f64(result.lines.first()?.offered))
        };
        let (few, many) = (Case::Refused(0), Case::Refused(1));
        let points = self
            .loss(&subject.id, many)?
            .points_beyond(self.loss(&subject.id, few)?);
        let cycles = points / 100.0 * as_f64(self.bench.length_cycles);
        // Rounding gives -0 for a very small negative number, which is no other result than 0.
        Some((cycles / (offered(many)? - offered(few)?)).round() + 0.0)
    }

    /// Wake-ups that the unprotected firmware does not have, at most, or as many less.
    fn extra_wakeups(&self, subject: &Subject) -> Option<f64> {
        let unprotected = self.unprotected(subject)?;
        let below = self
            .spec
            .sleep
            .iter()
            .zip(1..)
            .filter(|(rate, _)| subject.admission.admits(self.bench, rate.0.hertz()))
            .map(|(_, s)| s);
        worst(std::iter::once(0).chain(below).map(|s| {
            let count = |id| Some(as_f64(self.result(id, Case::Sleep(s))?.wakeups));
            Some((count(&subject.id)? - count(&unprotected.id)?).abs())
        }))
    }

    /// Points between the most and the least that is lost at a rate in overload.
    fn spread_in_overload(&self, subject: &Subject) -> Option<f64> {
        let lost = self
            .overloaded()
            .map(|(_, case)| Some(100.0 * self.loss(&subject.id, case)?.lost))
            .collect::<Option<Vec<f64>>>()?;
        let most = lost.iter().copied().reduce(f64::max)?;
        let least = lost.iter().copied().reduce(f64::min)?;
        Some(most - least)
    }

    /// What the longest interrupt of the line takes beyond the longest of the unprotected firmware, whose own may come back to back beyond the limit: there they are
    /// left out.
    fn extra_cycles(&self, subject: &Subject) -> Option<f64> {
        let longest = |of: &Subject, most_hz: f64| {
            let offered = self.grid().filter(|(hertz, _)| *hertz <= most_hz);
            worst(offered.map(|(_, case)| Some(as_f64(self.handler(of, case)?.longest_cycles))))
        };
        let limit = self.spec.limit.0.hertz();
        Some(longest(subject, f64::INFINITY)? - longest(self.unprotected(subject)?, limit)?)
    }

    /// What an interrupt takes beyond one of the unprotected firmware, on average over all below the limit.
    fn extra_each(
        &self,
        subject: &Subject,
        used: impl Fn(&VectorUse) -> Option<u64>,
    ) -> Option<f64> {
        let limit = self.spec.limit.0.hertz();
        let each = |of: &Subject| {
            let (mut all, mut taken) = (0, 0);
            for (_, case) in self.grid().filter(|(hertz, _)| *hertz < limit) {
                let handler = self.handler(of, case)?;
                all += used(handler)?;
                taken += handler.taken;
            }
            (taken > 0).then(|| as_f64(all) / as_f64(taken))
        };
        Some(each(subject)? - each(self.unprotected(subject)?)?)
    }

    /// The line's interrupt.
    fn handler(&self, subject: &Subject, case: Case) -> Option<&VectorUse> {
        let line = Line::INT0.to_string();
        let vectors = &self.result(&subject.id, case)?.vectors;
        vectors.iter().find(|vector| vector.name == line)
    }

    /// By how many percent the overhead differs from what §5.2 gives with the constants measured on this board, in
    /// overload, at most.
    fn model_error(&self, subject: &Subject) -> Option<f64> {
        let model = Model {
            constants: *self.costs.get(&subject.flavour)?,
            policy: subject.model?,
            burst: f64::from(subject.admission.burst),
            limit_hz: self.spec.limit.0.hertz(),
            clock_hz: as_f64(self.bench.clock_hz),
            work: 0.0,
        };
        worst(self.overloaded().map(|(_, case)| {
            let served = self.result(&subject.id, case).map(served)?;
            let expected = 100.0 * model.overhead(served / seconds(self.bench));
            let measured = self.overhead(subject, case)?;
            Some(100.0 * ((measured - expected) / expected).abs())
        }))
    }

    /// What is lost, the mean over the phases at each rate; of the limiters also the overhead, the worst of the phases.
    fn series(&self) -> Vec<Series> {
        let mut series: Vec<Series> = self
            .subjects
            .iter()
            .map(|subject| {
                self.curve(subject.id.clone(), |r, rate| {
                    let losses: Vec<f64> = (0..self.spec.phases.len())
                        .filter_map(|p| self.loss(&subject.id, Case::Grid(r, p)))
                        .map(|loss| 100.0 * loss.lost)
                        .collect();
                    (
                        rate / 1e3,
                        losses.iter().sum::<f64>() / as_f64(losses.len() as u64),
                    )
                })
            })
            .collect();
        for subject in self.software() {
            series.push(Series {
                y: "CPU lost beyond the hardware limiter, points".to_owned(),
                ..self.curve(overhead_series(&subject.id), |r, rate| {
                    let phases = (0..self.spec.phases.len())
                        .map(|p| self.overhead(subject, Case::Grid(r, p)));
                    (rate / 1e3, worst(phases).unwrap_or(f64::NAN))
                })
            });
        }
        if let Some(given) = &self.spec.published {
            for curve in &given.curves {
                let model = Model {
                    constants: given.constants,
                    policy: curve.policy,
                    burst: curve.burst,
                    limit_hz: self.spec.limit.0.hertz(),
                    clock_hz: as_f64(self.bench.clock_hz),
                    work: curve.work.unwrap_or(given.work),
                };
                series.push(self.curve(published(&curve.id), |_, rate| {
                    (rate / 1e3, 100.0 * model.busy(rate))
                }));
            }
        }
        series
    }

    fn curve(&self, id: String, point: impl Fn(usize, f64) -> (f64, f64)) -> Series {
        Series {
            id,
            x: "requests offered, kHz".to_owned(),
            y: "CPU lost to the background, %".to_owned(),
            points: self
                .spec
                .rates
                .iter()
                .enumerate()
                .map(|(r, rate)| point(r, rate.0.hertz()))
                .collect(),
        }
    }
}

/// The largest; nothing if one is missing or there is none.
fn worst(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values
        .collect::<Option<Vec<f64>>>()?
        .into_iter()
        .reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::worst;

    #[test]
    fn a_missing_measurement_is_no_measurement() {
        assert_eq!(
            worst([Some(1.0), Some(3.0), Some(2.0)].into_iter()),
            Some(3.0)
        );
        assert_eq!(worst([Some(1.0), None].into_iter()), None);
        assert_eq!(worst(std::iter::empty()), None);
    }
}
