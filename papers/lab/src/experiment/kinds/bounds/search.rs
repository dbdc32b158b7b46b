// SPDX-License-Identifier: GPL-3.0-or-later
//! The search for the worst attack on one firmware: patterns with random phases, then many small
//! changes of the best ones.
//!
//! The board is deterministic, and so is the search: every random number depends on the case's seed
//! and the number of the run, not on the order in which processors happen to finish.
use indicatif::ProgressBar;
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;

use super::attack::{Attack, Field};
use super::case::begin;
use super::observe::{Response, ResponseWatch, longest_run, worst};
use crate::experiment::batch::run_one;
use crate::experiment::bench::edges;
use crate::experiment::error::ExperimentError;
use weir_emulate::line::Line;
use weir_emulate::run::RunSpec;

/// A firmware under attack.
#[derive(Debug)]
pub(super) struct Arena<'a> {
    /// The name of the case, for messages.
    pub name: &'a str,
    /// A run of the right length with a trace and without a flood.
    pub spec: RunSpec,
    /// The attacked lines, in the order of the field's limits.
    pub lines: Vec<Line>,
    pub field: Field<'a>,
    pub watch: ResponseWatch,
    /// The vectors whose longest interrupts are measured.
    pub vectors: [u8; 2],
}

/// The effort of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// The total number of runs.
    pub runs: u64,
    pub seed: u64,
}

/// The worst attack that a search found.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub worst: Response,
    pub attack: Attack,
    /// The longest interrupt of each of the arena's vectors, in cycles, over all runs.
    pub longest: [u64; 2],
}

/// The number of attacks that are varied in parallel.
const CLIMBERS: usize = 8;
/// The number of variations of each attack in a round.
const TRIES: usize = 4;
/// The number of rounds after which the worst of these attacks is replaced by the best.
const ROUNDS_ALONE: u64 = 12;
/// Patterns are tried in one of this many runs.
const PATTERNS: u64 = 3;

fn longer(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
    [a[0].max(b[0]), a[1].max(b[1])]
}

fn longest_of(all: &[Finding]) -> [u64; 2] {
    all.iter().map(|found| found.longest).fold([0; 2], longer)
}

impl Arena<'_> {
    /// Runs one attack and measures the response.
    fn fight(&self, attack: Attack) -> Result<Finding, ExperimentError> {
        let mut spec = self.spec.clone();
        spec.floods = self
            .lines
            .iter()
            .enumerate()
            .map(|(index, line)| edges(self.name, *line, attack.edges(index, &self.field)))
            .collect();
        spec.floods.push(begin(self.name, attack.begin));
        let result = run_one(self.name, &spec)?;
        Ok(Finding {
            worst: worst(&result.events, self.watch),
            longest: self
                .vectors
                .map(|vector| longest_run(&result.events, vector)),
            attack,
        })
    }

    fn try_all(
        &self,
        attacks: Vec<Attack>,
        bar: &ProgressBar,
    ) -> Result<Vec<Finding>, ExperimentError> {
        attacks
            .into_par_iter()
            .map(|attack| {
                let found = self.fight(attack)?;
                bar.inc(1);
                Ok(found)
            })
            .collect()
    }

    /// Finds the worst attack that `effort` allows; tries at least one.
    pub fn search(&self, effort: Effort, bar: &ProgressBar) -> Result<Finding, ExperimentError> {
        let random = |number: u64| {
            let mut random = ChaCha12Rng::seed_from_u64(effort.seed);
            random.set_stream(number);
            random
        };
        let patterns = (effort.runs / PATTERNS).max(1);
        let first = (0..patterns)
            .map(|number| Attack::new(&self.field, &mut random(number)))
            .collect();
        let mut climbers = self.try_all(first, bar)?;
        let mut longest = longest_of(&climbers);
        climbers.sort_by_key(|found| std::cmp::Reverse(found.worst.cycles));
        climbers.truncate(CLIMBERS);

        let mut number = patterns;
        let mut round = 0;
        while number < effort.runs {
            let variations: Vec<Attack> = climbers
                .iter()
                .flat_map(|found| std::iter::repeat_n(found, TRIES))
                .zip(number..effort.runs)
                .map(|(found, number)| {
                    found
                        .attack
                        .varied(&found.worst.aim, &self.field, &mut random(number))
                })
                .collect();
            number += variations.len() as u64;
            let tried = self.try_all(variations, bar)?;
            longest = longer(longest, longest_of(&tried));
            for (index, found) in tried.into_iter().enumerate() {
                // An equally bad attack is accepted, too, so that the search can cross plateaus.
                if let Some(climber) = climbers.get_mut(index / TRIES) {
                    if found.worst.cycles >= climber.worst.cycles {
                        *climber = found;
                    }
                }
            }
            round += 1;
            if round % ROUNDS_ALONE == 0 {
                climbers.sort_by_key(|found| std::cmp::Reverse(found.worst.cycles));
                let best = climbers.first().cloned();
                if let (Some(best), Some(least)) = (best, climbers.last_mut()) {
                    *least = best;
                }
            }
        }
        climbers
            .into_iter()
            .max_by_key(|found| found.worst.cycles)
            .map(|found| Finding { longest, ..found })
            .ok_or_else(|| {
                ExperimentError::Evaluation(format!("`{}`: nothing was tried", self.name))
            })
    }
}
