// SPDX-License-Identifier: MIT OR Apache-2.0
//! The accuracy of an account: the ratio of compensated to true interrupt time, with random costs,
//! from a few packets a second to saturation.

use crate::is_long;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use rayon::prelude::*;
use weir_core_sys::account::{Account, Config, Mode};

/// The clock of zhang2006 §5 has 100 Hz. At 1 GHz a cycle is a nanosecond.
const TICK: u64 = 10_000_000;
const CPU_BOUND: usize = 0;
const RECEIVER: usize = 1;
/// The most packets that wait for the processor. Further packets are lost.
const BACKLOG: u64 = 64;

#[derive(Clone, Copy, Debug)]
enum Cost {
    Constant,
    /// The cost is uniformly distributed, ±50 %.
    Uniform,
    Exponential,
}

/// The schedule of the processes.
#[derive(Clone, Copy, Debug)]
enum Schedule {
    /// The schedule of zhang2006 §5: the CPU-bound process runs for 100 s, then the receiver for 10
    /// s. The test uses a tenth of these times.
    Paper,
    /// The two processes run in turn. Each slice has a random length of 30 ms on average, and may
    /// end within a tick.
    Sliced,
}

#[derive(Clone, Copy, Debug)]
struct Load {
    /// The rate of a Poisson process, in packets a second.
    rate: f64,
    cost: Cost,
    /// The mean cost in cycles.
    mean: f64,
    schedule: Schedule,
}

fn exponential(rng: &mut TestRng, mean: f64) -> f64 {
    -mean * (1.0 - rng.random::<f64>()).ln()
}

impl Load {
    fn cost(&self, rng: &mut TestRng) -> u64 {
        let cycles = match self.cost {
            Cost::Constant => self.mean,
            Cost::Uniform => self.mean * (0.5 + rng.random::<f64>()),
            Cost::Exponential => exponential(rng, self.mean),
        };
        cycles.round().max(1.0) as u64
    }

    /// The instants of the context switches; the CPU-bound process runs first.
    fn switches(&self, rng: &mut TestRng, end: u64) -> Vec<u64> {
        let (mut at, mut switches) = (0, Vec::new());
        while at < end {
            at += match self.schedule {
                Schedule::Paper if switches.len() % 2 == 0 => 1_000 * TICK,
                Schedule::Paper => 100 * TICK,
                Schedule::Sliced => exponential(rng, 3.0 * TICK as f64) as u64,
            };
            switches.push(at);
        }
        switches
    }

    /// Returns the error of the time given back to the CPU-bound process, divided by the true time
    /// of the interrupts that ran during that process.
    fn error(&self, mode: Mode, ticks: u64) -> f64 {
        let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let config = Config {
            mode,
            cycles_per_tick: TICK,
            gamma: Config::GAMMA,
        };
        let mut account = Account::new(2, 1, &config).expect("valid");
        let switches = self.switches(&mut rng, ticks * TICK);
        // Returns the process that runs in the slice ending at switches[i], and that instant.
        let runs = |i: usize| if i % 2 == 0 { CPU_BOUND } else { RECEIVER };
        let (mut truth, mut slice, mut next_tick) = (0, 0, TICK);
        let (mut arrival, mut free) = (0.0, 0_u64);
        let mut charged_slice = 0;
        loop {
            arrival += exponential(&mut rng, 1e9 / self.rate);
            let begin = (arrival as u64).max(free);
            if begin - arrival as u64 > BACKLOG * self.mean as u64 {
                continue;
            }
            let end = begin + self.cost(&mut rng);
            free = end;
            while next_tick < end.min(ticks * TICK + 1) {
                while switches[charged_slice] < next_tick {
                    charged_slice += 1;
                }
                let _ = account.tick(Some(runs(charged_slice)));
                next_tick += TICK;
            }
            if end > ticks * TICK {
                break;
            }
            account.handled(0, Some(RECEIVER), end - begin);
            let mut from = begin;
            while from < end {
                while switches[slice] <= from {
                    slice += 1;
                }
                let to = end.min(switches[slice]);
                if runs(slice) == CPU_BOUND {
                    truth += to - from;
                }
                from = to;
            }
        }
        let given_back = -account.process(CPU_BOUND).compensated(TICK) as f64;
        (given_back - truth as f64).abs() / truth as f64
    }
}

/// Returns loads with costs from 20 µs to more than a tick, at rates from 10 a second to more than
/// the processor can handle.
fn loads() -> Vec<Load> {
    let costs = [Cost::Constant, Cost::Uniform, Cost::Exponential];
    let mut loads = Vec::new();
    for schedule in [Schedule::Paper, Schedule::Sliced] {
        for cost in costs {
            for (mean, rates) in [
                (9_000.0, &[10.0, 100.0, 1e3, 1e4, 1e5, 2e5][..]),
                (20_000.0, &[10.0, 50.0, 300.0, 3e3, 3e4, 1e5][..]),
                (4_000_000.0, &[10.0, 100.0, 200.0][..]),
                (15_000_000.0, &[10.0, 40.0][..]),
            ] {
                let of = |&rate| Load {
                    rate,
                    cost,
                    mean,
                    schedule,
                };
                // The highest rates take most of the test's time. The short form contains only one
                // of them, which is more than the processor can handle.
                let is_chosen = |load: &Load| {
                    let is_overload = load.rate * load.mean >= 2e9;
                    is_long() || load.rate <= 1e4 || is_overload && matches!(cost, Cost::Uniform)
                };
                loads.extend(rates.iter().map(of).filter(is_chosen));
            }
        }
    }
    loads
}

/// Returns a test length with many packets, many slices, and at least two periods of the paper's
/// schedule.
fn ticks(load: &Load) -> u64 {
    let packets = if is_long() { 300_000.0 } else { 100_000.0 };
    let packets = packets / load.rate * 100.0;
    (packets as u64).clamp(2_200, 110_000)
}

/// ACCOUNT-ERROR-1: the error is below the 5 % that issue 4 claims.
#[test]
fn the_measured_account_is_true_at_every_rate() {
    loads().par_iter().for_each(|load| {
        let error = load.error(Mode::Measured, ticks(load));
        let most = match load.schedule {
            // The only error comes from the packet during which the slice ends.
            Schedule::Paper => 0.005,
            // A tick is charged to only one of the two processes that ran in it, and chance decides
            // which.
            Schedule::Sliced => 0.05,
        };
        assert!(error <= most, "{error} with {load:?}");
    });
}

/// ACCOUNT-COUNTED-2: shows the loads at which the paper's rounding and its average of T/cost cause
/// errors, and the loads at which they do not.
#[test]
fn the_counted_account_is_wrong_where_it_says() {
    loads().par_iter().for_each(|load| {
        let per_tick = load.rate * TICK as f64 / 1e9;
        let chance = match load.schedule {
            Schedule::Paper => 0.005,
            Schedule::Sliced => 0.05,
        };
        let (least, most) = match (load.cost, TICK as f64 / load.mean) {
            // N is 2.5 or 0.67, which is rounded to 2 or 1.
            (Cost::Constant, n) if n < 3.0 => (0.2, 0.4),
            // N is a whole number, or so large that the rounding does not matter.
            (Cost::Constant, _) => (0.0, chance),
            // The average of T/cost is greater than T divided by the average cost. With few
            // packets, chance decides the result.
            (_, n) if n > 100.0 && (0.5..=1.0).contains(&per_tick) => (0.03, f64::INFINITY),
            (_, n) if n > 100.0 && per_tick >= 100.0 => (0.0, 0.01 + chance),
            _ => return,
        };
        let error = load.error(Mode::Counted, ticks(load));
        assert!(least <= error && error <= most, "{error} with {load:?}");
    });
}
