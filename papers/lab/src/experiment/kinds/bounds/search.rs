// SPDX-License-Identifier: GPL-3.0-or-later
//! Searches for the worst attack on a firmware: tries patterns with random phases, then varies the
//! best attacks by many small changes.
//!
//! The board and the search are deterministic. Each random number depends on the case's seed and on
//! the number of the run, not on the order in which processors finish.
use indicatif::ProgressBar;
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;

use super::attack::{Attack, Field};
use super::case::begin;
use super::observe::{Response, ResponseWatch, longest_run, worst};
use crate::experiment::batch::run_one;
use crate::experiment::bench::edges;
use crate::experiment::climb::{Climb, Hill};
use crate::experiment::error::ExperimentError;
use weir_emulate::line::Line;
use weir_emulate::run::RunSpec;

/// A firmware under attack.
#[derive(Debug)]
pub(super) struct Arena<'a> {
    /// The name of the case, for messages.
    pub name: &'a str,
    /// A run of the right length, with a trace and without edges.
    pub spec: RunSpec,
    /// The attacked lines, in the order of the attack's constraints.
    pub lines: Vec<Line>,
    pub field: Field<'a>,
    pub watch: ResponseWatch,
    /// The vectors whose longest interrupts are measured.
    pub vectors: [u8; 2],
}

/// How much a search may try.
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

/// The number of variations of each attack per round.
const TRIES: usize = 4;
/// The number of rounds after which the attack with the longest response replaces the one with the
/// shortest.
const ROUNDS_ALONE: u64 = 12;
/// One in this many runs tries a new pattern instead of a variation.
const PATTERNS: u64 = 3;

fn longer(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
    [a[0].max(b[0]), a[1].max(b[1])]
}

impl Arena<'_> {
    /// Runs one attack, and measures the response and the longest interrupts.
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

    /// Finds the worst attack within `effort`. At least one attack is tried.
    pub fn search(&self, effort: Effort, bar: &ProgressBar) -> Result<Finding, ExperimentError> {
        let climb = Climb {
            runs: effort.runs,
            drawn: (effort.runs / PATTERNS).max(1),
            tries: TRIES,
            rounds_alone: Some(ROUNDS_ALONE),
        };
        let attacks = Attacks {
            arena: self,
            seed: effort.seed,
            bar,
        };
        let mut longest = [0; 2];
        let worst = climb.worst(&attacks, |found| longest = longer(longest, found.longest))?;
        worst
            .map(|found| Finding { longest, ..found })
            .ok_or_else(|| {
                ExperimentError::Evaluation(format!("`{}`: nothing was tried", self.name))
            })
    }
}

/// The attacks on an arena, as a space that [`Climb`] explores.
struct Attacks<'a> {
    arena: &'a Arena<'a>,
    seed: u64,
    bar: &'a ProgressBar,
}

impl Attacks<'_> {
    fn random(&self, number: u64) -> ChaCha12Rng {
        let mut random = ChaCha12Rng::seed_from_u64(self.seed);
        random.set_stream(number);
        random
    }
}

impl Hill for Attacks<'_> {
    type Candidate = Attack;
    type Trial = Finding;

    fn draw(&self, number: u64) -> Attack {
        Attack::new(&self.arena.field, &mut self.random(number))
    }

    fn vary(&self, found: &Finding, number: u64) -> Attack {
        let aim = &found.worst.aim;
        found
            .attack
            .varied(aim, &self.arena.field, &mut self.random(number))
    }

    fn attempt(&self, attack: Attack) -> Result<Finding, ExperimentError> {
        let found = self.arena.fight(attack)?;
        self.bar.inc(1);
        Ok(found)
    }

    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 cycles")]
    fn value(found: &Finding) -> f64 {
        found.worst.cycles as f64
    }
}
