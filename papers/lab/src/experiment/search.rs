// SPDX-License-Identifier: GPL-3.0-or-later
//! Searches for the worst flood of a given form for each variant. Floods that a person chooses can
//! miss the worst one.
//!
//! A third of the runs draw floods at random, with every order of magnitude equally likely. The
//! first two floods are no random ones: they have the largest and the smallest numbers of all
//! ranges, where the worst flood often lies. From the worst of these floods the search climbs by
//! small and large changes. A repeated search finds the same flood: the board is deterministic, and
//! every random number depends on the seed and the run's number.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use indicatif::ProgressBar;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use serde::Deserialize;
use weir_arrivals::Pattern;

use super::batch::bar;
use super::climb::{Climb, Hill};
use super::draw::log_uniform;
use super::error::ExperimentError;
use super::findings::Detail;
use super::series::formula::Formula;
use super::series::{RunKey, SeriesPlan, Values};
use super::setup::{Name, each};

/// The table `[[search]]` of a kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchSpec {
    /// The id of the search. It names the worst flood's value in claims and in the formulas of
    /// `measure`.
    pub id: String,
    #[serde(default)]
    of: Vec<String>,
    /// The value that the search maximises, as a formula over the values of runs.
    pub value: Formula,
    /// The flood, in the syntax of the command line. The names of `ranges` stand in braces.
    pattern: String,
    /// The least and the greatest value of each number in the pattern.
    ranges: BTreeMap<String, [u64; 2]>,
    /// An interval or rate of the limiter, around which the limiter's cost changes. Half of the
    /// drawn numbers lie near this value or near one of its first four multiples.
    around: Option<u64>,
    /// The number of floods to try.
    runs: u64,
    /// The number of floods to try in the form `--quick`.
    quick: Option<u64>,
    /// The seed of all random numbers.
    seed: u64,
}

/// Reduces each search to the number of runs for `--quick`. Returns false if no search states such
/// a number.
pub(super) fn shorten(searches: &mut [SearchSpec]) -> bool {
    let mut is_shorter = false;
    for search in searches {
        is_shorter |= search.shorten();
    }
    is_shorter
}

/// The searches for these variants. A search whose id contains VARIANT is repeated for each variant
/// that its `of` selects.
pub(super) fn of_variants(searches: &[SearchSpec], variants: &[Name]) -> Vec<SearchSpec> {
    let each = searches.iter();
    each.flat_map(|search| search.of_variants(variants))
        .collect()
}

/// Checks the searches before any run. `taken` contains the names of other values. `beside`
/// contains the ranges that the kind of experiment itself uses, which a pattern need not contain.
/// `knows` accepts a variant and the name of one of its values, and `parses` parses a flood.
///
/// # Errors
/// Returns an error if a name in a formula begins with no variant, or if `knows` rejects the name;
/// if an id is not unique; if `parses` accepts no flood of a form; or if a number is out of range.
pub(super) fn check<P, E: Display>(
    searches: &[SearchSpec],
    plan: &SeriesPlan,
    (taken, beside): (&BTreeSet<String>, &[&str]),
    knows: impl Fn(&str, &str) -> Result<(), String>,
    parses: impl Fn(&str) -> Result<P, E>,
) -> Result<(), ExperimentError> {
    let mut ids = taken.clone();
    searches.iter().try_for_each(|search| {
        search
            .check_form(beside)
            .and_then(|()| plan.check_formula(&search.value, &knows))
            .and_then(|()| search.check_floods(&parses))
            .and_then(|()| {
                let is_new = ids.insert(search.id.clone());
                is_new.then_some(()).ok_or_else(|| {
                    "another search, or the claim of a series, has this id, too; choose another"
                        .to_owned()
                })
            })
            .map_err(|what| search.wrong(&what))
    })
}

/// Carries out all searches. Returns the worst value of each search by its id, and a table of the
/// floods.
///
/// # Errors
/// Returns an error if no flood of a form is possible, or if a run fails.
pub(super) fn carry_out(
    searches: &[SearchSpec],
    measure: impl Fn(&SearchSpec, &FloodTrial) -> Result<Option<f64>, ExperimentError> + Sync,
) -> Result<(BTreeMap<String, f64>, Detail), ExperimentError> {
    let bar = bar(searches.iter().map(|search| search.runs).sum());
    let worst: Result<Vec<Worst>, _> = searches
        .iter()
        .map(|search| search.worst(&measure, &bar))
        .collect();
    bar.finish_and_clear();
    let worst = worst?;
    let of_each = || searches.iter().zip(&worst);
    let values = of_each().map(|(of, worst)| (of.id.clone(), worst.value));
    let rows = of_each().map(|(of, worst)| {
        let value = format!("{:.2}", worst.value);
        vec![of.id.clone(), value, worst.flood.to_string()]
    });
    let detail = Detail::new(&["searched", "worst", "flood"], rows);
    Ok((values.collect(), detail))
}

/// Does the same as [`carry_out`] for searches over the series of `plan`, with the first seed and
/// at the first point. `base` contains the values of the experiment's own runs. `run` gives the
/// values of one of the `variants` under a flood; each variant comes with its name.
///
/// # Errors
/// Returns the errors of [`carry_out`], and an error if `plan` has no seed or no point.
pub(super) fn over_series<V: Sync>(
    (searches, plan): (&[SearchSpec], &SeriesPlan),
    base: &BTreeMap<RunKey, Values>,
    variants: &[(&str, &V)],
    clock_hz: u64,
    run: impl Fn(&V, &SearchSpec, &FloodTrial, (u64, f64)) -> Result<Values, ExperimentError> + Sync,
) -> Result<(BTreeMap<String, f64>, Detail), ExperimentError> {
    let (Some(&seed), Some(&x)) = (plan.seeds.first(), plan.x.values.first()) else {
        return Err(ExperimentError::Evaluation(
            "a search needs a seed and a first point".to_owned(),
        ));
    };
    carry_out(searches, |search, flood| {
        if Pattern::parse(&flood.pattern, clock_hz).is_err() {
            return Ok(None);
        }
        let used = plan.used_in(&search.value);
        let under_it: Result<Vec<(String, Values)>, ExperimentError> = variants
            .iter()
            .filter(|(name, _)| used.contains(name))
            .map(|&(name, variant)| Ok((name.to_owned(), run(variant, search, flood, (seed, x))?)))
            .collect();
        search.value_of(plan, base, under_it?, (seed, x)).map(Some)
    })
}

/// A flood to try.
pub(super) struct FloodTrial {
    /// The pattern with its numbers filled in.
    pub pattern: String,
    /// The numbers of the ranges that the pattern does not contain.
    beside: BTreeMap<String, u64>,
}

impl FloodTrial {
    /// The number of a range that the pattern does not contain. `None` if there is no such range.
    pub fn beside(&self, name: &str) -> Option<u64> {
        self.beside.get(name).copied()
    }
}

impl Display for FloodTrial {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.pattern)?;
        let mut beside = self.beside.iter();
        beside.try_for_each(|(name, number)| write!(out, ", {name} {number}"))
    }
}

/// The worst flood that a search found.
struct Worst {
    value: f64,
    flood: FloodTrial,
}

/// The number of variations of each flood per round.
const TRIES: usize = 2;
/// One in this many runs draws a flood at random.
const DRAWN: u64 = 3;
/// The largest allowed `around`. Its multiples stay far below 2^64.
const MOST_AROUND: u64 = 1 << 32;

/// A value for each of the ranges, in their order.
type Numbers = Vec<u64>;

/// The floods of a search, as a space that [`Climb`] explores.
struct Floods<'a, M> {
    spec: &'a SearchSpec,
    drawn: u64,
    measure: &'a M,
    bar: &'a ProgressBar,
}

impl<M> Hill for Floods<'_, M>
where
    M: Fn(&SearchSpec, &FloodTrial) -> Result<Option<f64>, ExperimentError> + Sync,
{
    type Candidate = Numbers;
    type Trial = (f64, Numbers);

    fn draw(&self, number: u64) -> Numbers {
        self.spec.begin(number, self.drawn)
    }

    fn vary(&self, (_, numbers): &Self::Trial, number: u64) -> Numbers {
        self.spec.vary(numbers, &mut self.spec.random(number))
    }

    fn attempt(&self, numbers: Numbers) -> Result<Self::Trial, ExperimentError> {
        let flood = self.spec.flood(&numbers);
        let value = (self.measure)(self.spec, &flood)?;
        self.bar.inc(1);
        if let Some(value) = value.filter(|value| !value.is_finite()) {
            let what = format!("the value under {flood} is {value}, and not finite");
            return Err(self.spec.wrong(&what));
        }
        Ok((value.unwrap_or(f64::NEG_INFINITY), numbers))
    }

    fn value((value, _): &Self::Trial) -> f64 {
        *value
    }

    /// Two floods are near to each other if no number differs by more than an eighth.
    fn is_near((_, a): &Self::Trial, (_, b): &Self::Trial) -> bool {
        let mut pairs = a.iter().zip(b);
        pairs.all(|(&a, &b)| a.abs_diff(b) <= a.max(b) / 8)
    }
}

impl SearchSpec {
    /// The searches for these variants: one for each selected variant if the id contains VARIANT.
    fn of_variants(&self, variants: &[Name]) -> Vec<Self> {
        each(variants, (&self.id, &self.of), |rename| {
            let id = rename(&self.id);
            Self {
                // Keep the `of` of an id without VARIANT, so that [`Self::check_form`] rejects it.
                of: if id == self.id {
                    self.of.clone()
                } else {
                    Vec::new()
                },
                id,
                value: self.value.renamed(rename),
                pattern: self.pattern.clone(),
                ranges: self.ranges.clone(),
                ..*self
            }
        })
    }

    fn shorten(&mut self) -> bool {
        let quick = self.quick.take();
        self.runs = quick.unwrap_or(self.runs);
        quick.is_some()
    }

    /// The value of the search under a flood. `under_it` contains the values of each variant's run
    /// under the flood, and `base` those of the experiment's own runs.
    ///
    /// # Errors
    /// Returns an error if a series or the search's formula cannot be evaluated.
    fn value_of(
        &self,
        plan: &SeriesPlan,
        base: &BTreeMap<RunKey, Values>,
        under_it: Vec<(String, Values)>,
        (seed, x): (u64, f64),
    ) -> Result<f64, ExperimentError> {
        // The values under the flood belong to an additional point after all others.
        let index = plan.x.values.len();
        let mut runs = base.clone();
        for (variant, values) in under_it {
            let key = RunKey {
                variant,
                index,
                seed,
            };
            runs.insert(key, values);
        }
        plan.add_series(&mut runs, (index, seed), x)?;
        let value = self.value.evaluate(&plan.at(&runs, (index, seed), x));
        value.map_err(|what| self.wrong(&what))
    }

    pub fn wrong(&self, what: &str) -> ExperimentError {
        ExperimentError::Evaluation(format!("the search `{}`: {what}", self.id))
    }

    /// Checks the numbers and the pattern. The pattern must contain each range in braces, except
    /// the ranges in `beside`, and nothing else in braces.
    fn check_form(&self, beside: &[&str]) -> Result<(), String> {
        if !self.of.is_empty() {
            return Err("`of` chooses variants, but the id has no VARIANT; leave `of` out, or write VARIANT in the id".to_owned());
        }
        if self.runs == 0 || self.quick == Some(0) {
            return Err("`runs` and `quick` are 1 or more".to_owned());
        }
        let mut ranges = self.ranges.iter();
        if let Some((name, _)) = ranges.find(|(_, [least, most])| least > most || *least == 0) {
            return Err(format!("the range `{name}` is empty or begins with 0"));
        }
        if self.around.is_some_and(|of| of == 0 || of > MOST_AROUND) {
            return Err(format!("`around` is not 1 to {MOST_AROUND}"));
        }
        let is_beside = |name: &str| beside.contains(&name);
        let mut names = self.ranges.keys();
        if let Some(name) = names.find(|name| !self.has(name) && !is_beside(name)) {
            return Err(format!("the pattern has no {{{name}}}, which has a range"));
        }
        if self.flood(&self.least()).pattern.contains(['{', '}']) {
            return Err(format!(
                "the pattern `{}` names more than its ranges",
                self.pattern
            ));
        }
        Ok(())
    }

    /// Checks that a flood of this form is possible: the flood with the least numbers, that with
    /// the greatest, or one of the drawn floods.
    fn check_floods<P, E: Display>(
        &self,
        parses: impl Fn(&str) -> Result<P, E>,
    ) -> Result<(), String> {
        let drawn = (0..self.drawn()).map(|number| self.draw(&mut self.random(number)));
        let mut others = std::iter::once(self.most()).chain(drawn);
        let least = self.flood(&self.least()).pattern;
        match parses(&least) {
            Err(what) if !others.any(|numbers| parses(&self.flood(&numbers).pattern).is_ok()) => {
                Err(format!(
                    "no flood of this form is possible; `{least}`: {what}"
                ))
            }
            _ => Ok(()),
        }
    }

    /// The least number of each range.
    fn least(&self) -> Numbers {
        self.ranges.values().map(|[least, _]| *least).collect()
    }

    /// The greatest number of each range.
    fn most(&self) -> Numbers {
        self.ranges.values().map(|[_, most]| *most).collect()
    }

    /// The number of floods that are drawn at random.
    fn drawn(&self) -> u64 {
        (self.runs / DRAWN).max(1)
    }

    /// The random-number generator of a run.
    fn random(&self, number: u64) -> ChaCha12Rng {
        let mut random = ChaCha12Rng::seed_from_u64(self.seed);
        random.set_stream(number);
        random
    }

    /// Whether this is a range that the pattern does not contain.
    pub fn is_beside(&self, name: &str) -> bool {
        self.ranges.contains_key(name) && !self.has(name)
    }

    /// Whether the pattern contains this range.
    fn has(&self, name: &str) -> bool {
        self.pattern.contains(&format!("{{{name}}}"))
    }

    fn flood(&self, numbers: &Numbers) -> FloodTrial {
        let names = || self.ranges.keys().zip(numbers);
        let pattern = names().fold(self.pattern.clone(), |text, (name, number)| {
            text.replace(&format!("{{{name}}}"), &number.to_string())
        });
        let beside = names().filter(|(name, _)| !self.has(name));
        let beside = beside.map(|(name, &number)| (name.clone(), number));
        FloodTrial {
            pattern,
            beside: beside.collect(),
        }
    }

    /// Searches for the worst flood. `measure` gives the value under a flood, or `None` if the
    /// flood is impossible: numbers of a pattern can contradict each other, such as a gap that is
    /// longer than its period.
    fn worst(
        &self,
        measure: &(impl Fn(&Self, &FloodTrial) -> Result<Option<f64>, ExperimentError> + Sync),
        bar: &ProgressBar,
    ) -> Result<Worst, ExperimentError> {
        let drawn = self.drawn();
        let floods = Floods {
            spec: self,
            drawn,
            measure,
            bar,
        };
        let climb = Climb {
            runs: self.runs,
            drawn,
            tries: TRIES,
            rounds_alone: None,
        };
        climb
            .worst(&floods, |_| ())?
            .map(|(value, numbers)| Worst {
                value,
                flood: self.flood(&numbers),
            })
            .filter(|worst| worst.value.is_finite())
            .ok_or_else(|| self.wrong("no flood that was tried is possible"))
    }

    /// The numbers of the flood that run `number` of `of` such runs draws.
    fn begin(&self, number: u64, of: u64) -> Numbers {
        match number {
            0 if of > 1 => self.most(),
            1 if of > 2 => self.least(),
            _ => self.draw(&mut self.random(number)),
        }
    }

    fn draw(&self, random: &mut ChaCha12Rng) -> Numbers {
        let ranges = self.ranges.values();
        ranges
            .map(|&[least, most]| match self.around {
                Some(around) if random.random_bool(0.5) => {
                    let near = around * random.random_range(1..=4);
                    log_uniform(random, near - near / 8, near + near / 8).clamp(least, most)
                }
                _ => log_uniform(random, least, most),
            })
            .collect()
    }

    /// Changes one number, or all of them, by steps of any order of magnitude up to a quarter.
    fn vary(&self, numbers: &Numbers, random: &mut ChaCha12Rng) -> Numbers {
        let one = random
            .random_bool(0.5)
            .then(|| random.random_range(0..numbers.len().max(1)));
        let ranges = self.ranges.values().zip(numbers).enumerate();
        ranges
            .map(|(index, (&[least, most], &number))| {
                if one.is_some_and(|one| one != index) {
                    return number;
                }
                let step = log_uniform(random, 1, (number / 4).max(1));
                let varied = if random.random_bool(0.5) {
                    number.saturating_add(step)
                } else {
                    number.saturating_sub(step)
                };
                varied.clamp(least, most)
            })
            .collect()
    }
}
