// SPDX-License-Identifier: GPL-3.0-or-later
//! Searches for the worst trial: draws some trials at random, then varies the worst of them in
//! rounds.
//!
//! Each trial depends only on its number, not on the order in which processors finish. So a
//! repeated search finds the same trial.
use rayon::prelude::*;

use super::error::ExperimentError;

/// The number of trials that are varied in parallel.
const CLIMBERS: usize = 8;

/// The effort of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Climb {
    /// The total number of trials.
    pub runs: u64,
    /// The number of trials that are drawn at random, 1 or more.
    pub drawn: u64,
    /// The number of variations of each climber per round.
    pub tries: usize,
    /// The number of rounds after which the worst climber replaces the mildest. `None` means never.
    pub rounds_alone: Option<u64>,
}

/// A space of candidates that a search can explore.
pub(super) trait Hill: Sync {
    /// A candidate that has not been measured yet.
    type Candidate: Send;
    /// A candidate together with its measurement.
    type Trial: Clone + Send;

    /// Draws the candidate with this number.
    fn draw(&self, number: u64) -> Self::Candidate;
    /// Varies a trial. The number decides the variation.
    fn vary(&self, trial: &Self::Trial, number: u64) -> Self::Candidate;
    /// Measures a candidate.
    fn attempt(&self, candidate: Self::Candidate) -> Result<Self::Trial, ExperimentError>;
    /// The value of a trial. The search looks for the greatest value.
    fn value(trial: &Self::Trial) -> f64;
    /// Whether two trials are so close that both would climb the same hill.
    fn is_near(_: &Self::Trial, _: &Self::Trial) -> bool {
        false
    }
}

impl Climb {
    /// Searches for the worst trial. `note` is called with every trial in the order of the trials'
    /// numbers.
    ///
    /// # Errors
    /// Returns an error if a candidate cannot be measured.
    pub fn worst<H: Hill>(
        self,
        hill: &H,
        mut note: impl FnMut(&H::Trial),
    ) -> Result<Option<H::Trial>, ExperimentError> {
        let mut try_all = |candidates: Vec<H::Candidate>| -> Result<Vec<_>, ExperimentError> {
            let tried = candidates.into_par_iter().map(|of| hill.attempt(of));
            let tried: Vec<H::Trial> = tried.collect::<Result<_, _>>()?;
            tried.iter().for_each(&mut note);
            Ok(tried)
        };
        let worse = |a: &H::Trial, b: &H::Trial| H::value(a).total_cmp(&H::value(b));
        let mut drawn = try_all((0..self.drawn).map(|number| hill.draw(number)).collect())?;
        drawn.sort_by(|a, b| worse(b, a));
        let mut climbers: Vec<H::Trial> = Vec::new();
        for trial in drawn {
            if climbers.len() < CLIMBERS && !climbers.iter().any(|of| H::is_near(of, &trial)) {
                climbers.push(trial);
            }
        }
        let mut number = self.drawn;
        let mut round = 0;
        while number < self.runs {
            let variations: Vec<_> = climbers
                .iter()
                .flat_map(|climber| std::iter::repeat_n(climber, self.tries))
                .zip(number..self.runs)
                .map(|(climber, number)| hill.vary(climber, number))
                .collect();
            number += variations.len() as u64;
            for (index, tried) in try_all(variations)?.into_iter().enumerate() {
                // Accept an equally bad trial, too, so that the search can cross a plateau.
                if let Some(climber) = climbers.get_mut(index / self.tries) {
                    if worse(&tried, climber).is_ge() {
                        *climber = tried;
                    }
                }
            }
            round += 1;
            if self.rounds_alone.is_some_and(|rounds| round % rounds == 0) {
                climbers.sort_by(|a, b| worse(b, a));
                let worst = climbers.first().cloned();
                if let (Some(worst), Some(mildest)) = (worst, climbers.last_mut()) {
                    *mildest = worst;
                }
            }
        }
        Ok(climbers.into_iter().max_by(worse))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A candidate is one number. The worst number is 700, and a lower hill lies at 100.
    struct TwoHills;

    impl Hill for TwoHills {
        type Candidate = u64;
        type Trial = u64;

        fn draw(&self, number: u64) -> u64 {
            number * 120 % 1000
        }
        fn vary(&self, trial: &u64, number: u64) -> u64 {
            // A climber steps up and down by every distance from 1 to 7.
            let (step, is_up) = (1 + number / 16 % 7, number / 112 % 2 == 0);
            if is_up {
                trial + step
            } else {
                trial.saturating_sub(step)
            }
        }
        fn attempt(&self, candidate: u64) -> Result<u64, ExperimentError> {
            Ok(candidate)
        }
        fn value(trial: &u64) -> f64 {
            let from = |top: u64| f64::from(u32::try_from(top.abs_diff(*trial)).unwrap());
            (1000.0 - from(700)).max(900.0 - from(100))
        }
        fn is_near(a: &u64, b: &u64) -> bool {
            a.abs_diff(*b) < 50
        }
    }

    #[test]
    fn the_search_climbs_to_the_top_and_tries_as_often_as_it_may() {
        for (rounds_alone, tries) in [(None, 2), (Some(3), 4)] {
            let climb = Climb {
                runs: 1200,
                drawn: 8,
                tries,
                rounds_alone,
            };
            let mut tried = 0;
            let worst = climb.worst(&TwoHills, |_| tried += 1).unwrap();
            assert_eq!((worst, tried), (Some(700), 1200));
        }
    }
}
