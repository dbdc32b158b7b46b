// SPDX-License-Identifier: GPL-3.0-or-later
//! A search for the worst trial: some are drawn, and the worst of these are varied in rounds.
//!
//! A number decides each trial, and not the order in which processors happen to finish. So the same
//! search finds the same trial again.
use rayon::prelude::*;

use super::error::ExperimentError;

/// The trials that are varied side by side.
const CLIMBERS: usize = 8;

/// The effort of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Climb {
    /// Trials in all.
    pub runs: u64,
    /// The trials that are drawn, 1 or more.
    pub drawn: u64,
    /// The variations of each climber in a round.
    pub tries: usize,
    /// The rounds after which the worst climber takes the place of the mildest.
    pub rounds_alone: Option<u64>,
}

/// What a search varies.
pub(super) trait Hill: Sync {
    /// What is tried.
    type Candidate: Send;
    /// A candidate with what was measured of it.
    type Trial: Clone + Send;

    /// The candidate that is drawn under this number.
    fn draw(&self, number: u64) -> Self::Candidate;
    /// A variation of a trial under this number.
    fn vary(&self, trial: &Self::Trial, number: u64) -> Self::Candidate;
    /// Measures a candidate.
    fn attempt(&self, candidate: Self::Candidate) -> Result<Self::Trial, ExperimentError>;
    /// How bad a trial is: the search wants the greatest.
    fn value(trial: &Self::Trial) -> f64;
    /// Do two trials lie so near to each other that both would climb the same hill?
    fn is_near(_: &Self::Trial, _: &Self::Trial) -> bool {
        false
    }
}

impl Climb {
    /// The worst trial. `note` sees every trial, in the order of their numbers.
    ///
    /// # Errors
    /// A candidate that cannot be measured.
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
                // One that is as bad is accepted, too, so that the search can cross plateaus.
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

    /// One number, worst at 700, and a second hill at 100.
    struct TwoHills;

    impl Hill for TwoHills {
        type Candidate = u64;
        type Trial = u64;

        fn draw(&self, number: u64) -> u64 {
            number * 120 % 1000
        }
        fn vary(&self, trial: &u64, number: u64) -> u64 {
            // Each climber is given steps both ways, of every size from 1 to 7.
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
