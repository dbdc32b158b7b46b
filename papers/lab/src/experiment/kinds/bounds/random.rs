// SPDX-License-Identifier: GPL-3.0-or-later
//! Randomly drawn cases. The limit has any policy, timing and prescaler, and an interval of any
//! order of magnitude. The user may switch the source off and on, and change the limit between two
//! jobs. Each case depends only on its number, so that a failing case can be examined alone.
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use serde::Deserialize;
use weir_boards::{Board, Channel, Flavour, Policy, Timing};

use super::case::{Case, Recipe, User};
use crate::experiment::bench::Bench;
use crate::experiment::draw::log_uniform;
use crate::experiment::error::ExperimentError;

/// The number of drawn cases and of their runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RandomSpec {
    /// The number of cases.
    pub cases: u64,
    /// The number of runs of each case.
    pub runs: u64,
    /// The seed from which the cases are drawn.
    pub seed: u64,
}

/// The board of the cases.
const BOARD: &str = "atmega128";

/// The least and the greatest interval, in cycles. Longer intervals make runs longer and show
/// nothing new.
const INTERVALS: (u64, u64) = (600, 60_000);
/// An upper bound on the cycles that a request costs in addition to the handler's body.
const COST: u64 = 450;

/// A drawn system.
struct Draw {
    flavour: &'static str,
    /// A short description of the system, for the table of cases.
    what: String,
    text: String,
    user: User,
}

impl RandomSpec {
    /// Draws the cases and compiles their firmware.
    ///
    /// # Errors
    /// Returns an error in the same situations as for a case that the file states.
    pub(super) fn prepare(&self, bench: &Bench) -> Result<Vec<Case>, ExperimentError> {
        (0..self.cases)
            .into_par_iter()
            .map(|number| {
                let mut random = ChaCha12Rng::seed_from_u64(self.seed);
                random.set_stream(number);
                let draw = Draw::new(&mut random);
                let name = format!("random-{number}");
                let system =
                    weir_model::parse(&format!("{name}.toml"), &draw.text).map_err(|error| {
                        ExperimentError::Evaluation(format!("{name}: {error:?}\n{}", draw.text))
                    })?;
                let origin = Recipe {
                    name: &name,
                    drawn: draw.what,
                    of: draw.flavour,
                    watch: "job",
                    user: draw.user,
                };
                origin.prepare(bench, system)
            })
            .collect()
    }
}

fn one_of<T: Copy>(random: &mut ChaCha12Rng, all: &[T]) -> T {
    all[random.random_range(0..all.len())]
}

impl Draw {
    fn new(random: &mut ChaCha12Rng) -> Self {
        let flavour = if random.random_bool(0.25) {
            Flavour::Fast
        } else {
            Flavour::C
        };
        let board = Board::named(BOARD).expect("a board of this program");
        let rules = board.rules(flavour).expect("a flavour of its port");
        let offer = |policy, timing, burst| (rules.offers)(policy, timing, burst, rules.own_bits);
        let paces: Vec<(Policy, Timing)> = Policy::ALL
            .into_iter()
            .filter(|policy| !matches!(policy, Policy::Off | Policy::Poll))
            .flat_map(|policy| Timing::ALL.map(|timing| (policy, timing)))
            .filter(|&(policy, timing)| {
                offer(policy, timing, *(rules.bursts)(policy).start()).is_some()
            })
            .collect();
        let (policy, timing) = one_of(random, &paces);
        let channels: Vec<Channel<'_>> = board
            .channels()
            .filter(|channel| channel.timer.bits == rules.own_bits)
            .collect();
        let channel = one_of(random, &channels);
        let body = log_uniform(random, 14, 500);
        let burst = if policy.counts() {
            log_uniform(random, 2, 12)
        } else {
            1
        };
        // The interval must be long enough to leave the main loop some time, and must not exceed
        // the range of the timer.
        let least = INTERVALS
            .0
            .max((body + COST) * 2 * if policy == Policy::Bursty { burst } else { 1 });
        let most = INTERVALS.1.max(2 * least);
        let range = offer(policy, timing, burst).expect("a burst that is offered");
        let most_ticks = range.most;
        let fitting: Vec<u64> = channel
            .timer
            .divisors
            .iter()
            .copied()
            .filter(|&prescaler| {
                prescaler >= rules.least_divisor && prescaler * most_ticks >= least
            })
            .collect();
        let prescaler = one_of(random, &fitting);
        let least_ticks = least.div_ceil(prescaler).max(range.least);
        let ticks = log_uniform(
            random,
            least_ticks,
            (most / prescaler).clamp(least_ticks, most_ticks),
        );
        let interval = ticks * prescaler;
        let job = log_uniform(random, 20, 20_000);
        let tunable = flavour == Flavour::C && random.random_bool(0.2);
        let user = User {
            off: random.random_bool(0.3).then(|| interval.max(512)),
            changes: if tunable {
                vec![
                    (ticks, u32::try_from(burst).unwrap_or(1)),
                    (
                        (ticks * random.random_range(110..250) / 100).min(most_ticks),
                        u32::try_from(burst.div_ceil(2)).unwrap_or(1),
                    ),
                ]
            } else {
                Vec::new()
            },
        };
        let (flavour, timer) = (flavour.name(), channel.name());
        let (policy, timing) = (policy.name(), timing.name());
        let what = format!(
            "{flavour} {policy} {timing}, {ticks} x {prescaler} cycles, burst {burst}{}{}",
            if user.off.is_some() { ", switched" } else { "" },
            if tunable { ", changed" } else { "" },
        );
        let burst = match policy {
            "bursty" | "bucket" => format!(", burst = {burst}"),
            _ => String::new(),
        };
        let line = random.random_range(0..7);
        let text = format!(
            r#"schema = 1
[cpu]
board = "{BOARD}"
clock = "4MHz"
flavour = "{flavour}"
[[source]]
name = "a"
vector = "INT{line}"
handler = {{ worst = "{body} cycles", measured = true }}
registers = "0 cycles"
max_work = 1
limit = {{ policy = "{policy}", timing = "{timing}", interval = "{interval} cycles", timer = "{timer}", prescaler = {prescaler}{burst} }}
[[receiver]]
name = "job"
urgency = 1
period = "40000000 cycles"
wcet = {{ worst = "{job} cycles", measured = true }}
"#
        );
        Self {
            flavour,
            what,
            text,
            user,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_that_is_drawn_is_one() {
        for number in 0..500 {
            let mut random = ChaCha12Rng::seed_from_u64(3);
            random.set_stream(number);
            let draw = Draw::new(&mut random);
            let system = weir_model::parse("random.toml", &draw.text);
            assert!(system.is_ok(), "{:?}\n{}", system.err(), draw.text);
        }
    }
}
