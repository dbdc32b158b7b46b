// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests the contracts of core/ on the board with random limits: each policy and timing at each
//! prescaler of each timer, and intervals of every order of magnitude. The main loop may mask
//! interrupts, the user may switch the line, and limits may change. Seeds are fixed, and a failure
//! states its seed.

use crate::port::curve::curve;
use crate::port::history::{History, channel, history};
use crate::port::{CLOCK, Elf, Flavour, Limit, build, flood, storm, trace};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use weir_core_sys::{LimitPolicy, LimitTiming};
use weir_emulate::run::LineStimulus;

/// The number of seeds per flavour in the long form.
const ALL: u64 = 200;
/// The number of consecutive seeds in the short form. Further seeds are those with which the port
/// failed before decision 0015.
const FIRST: u64 = 8;
const FAILED_ONCE: [u64; 5] = [70, 121, 150, 155, 184];

fn seeds() -> Vec<u64> {
    if crate::is_long() {
        (0..ALL).collect()
    } else {
        (0..FIRST).chain(FAILED_ONCE).collect()
    }
}

/// The implementation of the limiter in the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Machine {
    /// The limiter of fast.h.
    Fast,
    /// The limiter of lean.h, which supports constant limits of some policies.
    Constant,
    /// The general limiter, with a record.
    Recorded,
    /// The general limiter, with its configuration in RAM.
    Tunable,
}

impl Machine {
    /// Returns the most cycles from the instant of a decision to the handler.
    fn way(self) -> u64 {
        match self {
            Self::Fast => 60,
            Self::Constant | Self::Recorded | Self::Tunable => 450,
        }
    }
}

#[derive(Debug, Clone)]
struct Case {
    machine: Machine,
    limit: Limit,
    /// The contexts in which the user switches the line, as bits of TEST_USER.
    user: u8,
    /// The cycles for which the main loop masks interrupts, and for which it unmasks them.
    off: u64,
    on: u64,
    /// Whether `off` grows with each iteration of the main loop, by up to SWEEP.
    sweep: bool,
    /// The cycles of the handler's work.
    work: u64,
    /// The intervals and bursts to which the limit changes. Empty if it does not change.
    changes: Vec<(u64, u8)>,
}

/// Returns a random number with a log-uniform distribution: all orders of magnitude from `least` to
/// `most` are equally likely.
fn log_uniform(random: &mut ChaCha12Rng, least: u64, most: u64) -> u64 {
    let span = (most as f64 / least as f64).ln();
    let value = least as f64 * (span * random.random::<f64>()).exp();
    (value.round() as u64).clamp(least, most)
}

fn one_of<T: Copy>(random: &mut ChaCha12Rng, all: &[T]) -> T {
    all[random.random_range(0..all.len())]
}

const PACES: [(LimitPolicy, LimitTiming); 9] = [
    (LimitPolicy::Strict, LimitTiming::Eager),
    (LimitPolicy::Strict, LimitTiming::Lazy),
    (LimitPolicy::Paced, LimitTiming::Eager),
    (LimitPolicy::Paced, LimitTiming::Lazy),
    (LimitPolicy::Bursty, LimitTiming::Eager),
    (LimitPolicy::Bursty, LimitTiming::Lazy),
    (LimitPolicy::Bursty, LimitTiming::OneShot),
    (LimitPolicy::Bucket, LimitTiming::Eager),
    (LimitPolicy::Bucket, LimitTiming::Lazy),
];

const FAST_PACES: [(LimitPolicy, LimitTiming); 4] = [
    (LimitPolicy::Strict, LimitTiming::Eager),
    (LimitPolicy::Strict, LimitTiming::Lazy),
    (LimitPolicy::Bursty, LimitTiming::Lazy),
    (LimitPolicy::Bucket, LimitTiming::Lazy),
];

/// The most cycles by which TEST_OFF_SWEEP of limited.c extends the time for which interrupts are
/// masked.
const SWEEP: u64 = 3 * 255;

/// The longest interval that is tried, in cycles. A run lasts dozens of intervals.
const LONGEST: u64 = 200_000;

fn c_limit(random: &mut ChaCha12Rng) -> Limit {
    let (policy, timing) = one_of(random, &PACES);
    let channel = one_of(random, &["TIMER1A", "TIMER1B", "TIMER3A", "TIMER3B"]);
    let prescaler = one_of(random, &[1, 8, 64, 256, 1024]);
    let counts = matches!(policy, LimitPolicy::Bursty | LimitPolicy::Bucket);
    let burst = if counts {
        log_uniform(random, 1, 20) as u8
    } else {
        1
    };
    let most = match policy {
        LimitPolicy::Bucket => 32_767 / (u64::from(burst) + 1),
        _ => 16_383,
    };
    let interval = (log_uniform(random, 60, LONGEST) / prescaler).clamp(1, most);
    let mut limit = Limit::new(policy, timing, interval, burst, channel, prescaler);
    let lag = 16 / prescaler;
    if policy == LimitPolicy::Strict && lag < interval && random.random_bool(0.3) {
        limit.config.lag = lag;
    }
    limit
}

fn fast_limit(random: &mut ChaCha12Rng) -> Limit {
    let (policy, timing) = one_of(random, &FAST_PACES);
    let (channel, prescalers): (_, &[u64]) = one_of(
        random,
        &[
            ("TIMER0", &[8, 32, 64, 128, 256, 1024]),
            ("TIMER2", &[8, 64, 256, 1024]),
        ],
    );
    let prescaler = one_of(random, prescalers);
    let burst = match policy {
        LimitPolicy::Strict => 1,
        LimitPolicy::Bucket => log_uniform(random, 2, 20) as u8,
        _ => log_uniform(random, 2, 40) as u8,
    };
    let most = match policy {
        LimitPolicy::Bucket => 240 / u64::from(burst),
        _ => 250,
    };
    let interval = log_uniform(random, 4, most);
    Limit::new(policy, timing, interval, burst, channel, prescaler)
}

impl Case {
    fn new(flavour: Flavour, seed: u64) -> Self {
        let random = &mut ChaCha12Rng::seed_from_u64(seed);
        let (machine, limit) = if flavour == Flavour::Fast {
            (Machine::Fast, fast_limit(random))
        } else {
            let machine = one_of(
                random,
                &[
                    Machine::Constant,
                    Machine::Constant,
                    Machine::Recorded,
                    Machine::Tunable,
                ],
            );
            (machine, c_limit(random))
        };
        let user = one_of(random, &[0, 0, 0, 1, 2, 3]);
        let (off, on) = if random.random_bool(0.5) {
            // The length is of any order of magnitude, or about that of the interval.
            let interval = limit.interval_cycles();
            let off = if random.random_bool(0.5) {
                log_uniform(random, 100, 20_000)
            } else {
                log_uniform(random, (interval / 4).max(50), interval * 4).min(200_000)
            };
            (off, off / 2 + 300)
        } else {
            (0, 0)
        };
        let work = one_of(random, &[0, 0, 30, 300]);
        let changes = if machine == Machine::Tunable && random.random_bool(0.6) {
            let config = limit.config;
            let burst = match config.policy {
                LimitPolicy::Bursty | LimitPolicy::Bucket => config.burst.div_ceil(2),
                _ => 1,
            };
            // One curve lies above the other, so that changes do not starve the source
            // (CONTRACTS.md, "Changes at run time").
            vec![
                (
                    config.interval.div_ceil(2).max(config.lag + 1),
                    config.burst,
                ),
                (config.interval, burst),
            ]
        } else {
            Vec::new()
        };
        Self {
            machine,
            limit,
            user,
            off,
            on,
            sweep: false,
            work,
            changes,
        }
    }

    /// Returns a case whose main loop masks interrupts for about as long as its timer takes to
    /// wrap. An expiry then comes so late that the compare register matches again.
    fn a_wrap_late(flavour: Flavour, seed: u64) -> Self {
        let mut case = Self::new(flavour, seed);
        let random = &mut ChaCha12Rng::seed_from_u64(seed ^ 0x0ff);
        let wrap = if flavour == Flavour::Fast {
            256 * case.limit.prescaler
        } else {
            // With a larger prescaler a case would take a second.
            case.limit.prescaler = 1;
            case.limit.config.interval = log_uniform(random, 200, 2_000);
            case.changes.clear();
            65_536
        };
        let since = random.random_range(0..case.interval());
        case.off = if random.random_bool(0.7) {
            wrap - SWEEP / 2 + since
        } else {
            log_uniform(random, wrap / 3, wrap * 2)
        };
        case.on = case.off / 2 + 300;
        let lag = 16 / case.limit.prescaler;
        if case.limit.config.policy == LimitPolicy::Strict && lag < case.limit.config.interval {
            case.limit.config.lag = one_of(random, &[0, lag]);
        }
        case.sweep = true;
        case
    }

    /// Returns a case whose burst is the largest that its limiter can count, or nearly.
    fn largest_burst(flavour: Flavour, seed: u64) -> Self {
        let mut case = Self::new(flavour, seed);
        let random = &mut ChaCha12Rng::seed_from_u64(seed ^ 0xb5);
        let (policy, bursts): (_, &[u8]) = match (flavour, random.random_bool(0.6)) {
            (Flavour::Fast, true) => (LimitPolicy::Bursty, &[127, 128]),
            (Flavour::Fast, false) => (LimitPolicy::Bucket, &[59, 60]),
            (_, true) => (LimitPolicy::Bursty, &[127, 128, 129, 254, 255]),
            (_, false) => (LimitPolicy::Bucket, &[127, 128, 254, 255]),
        };
        let burst = one_of(random, bursts);
        let config = &mut case.limit.config;
        config.policy = policy;
        config.burst = burst;
        config.lag = 0;
        config.timing = match (flavour, policy) {
            (Flavour::Fast, _) => LimitTiming::Lazy,
            (_, LimitPolicy::Bursty) => one_of(
                random,
                &[LimitTiming::Lazy, LimitTiming::Eager, LimitTiming::OneShot],
            ),
            _ => one_of(random, &[LimitTiming::Lazy, LimitTiming::Eager]),
        };
        // The period of bursty is long enough for its requests.
        (case.limit.prescaler, config.interval) = match (flavour, policy) {
            (Flavour::Fast, LimitPolicy::Bursty) => (1024, 200),
            (Flavour::Fast, _) => (64, 4),
            (_, LimitPolicy::Bursty) => (64, 4_000),
            _ => (64, 32_767 / (u64::from(burst) + 1)),
        };
        case.changes.clear();
        (case.off, case.on, case.work) = (0, 0, 0);
        case
    }

    fn firmware(&self) -> Elf {
        let mut defines = self.limit.defines();
        defines.push(format!("TEST_USER={}", self.user));
        defines.push(format!("TEST_OFF={}", self.off));
        defines.push(format!("TEST_ON={}", self.on));
        if self.sweep {
            defines.push("TEST_OFF_SWEEP".to_owned());
        }
        defines.push(format!("TEST_WORK={}", self.work));
        if !self.changes.is_empty() {
            let pairs = self.changes.iter();
            let pairs: Vec<String> = pairs
                .map(|(interval, burst)| format!("{{{interval}, {burst}}}"))
                .collect();
            defines.push(format!("TEST_CHANGES={}", pairs.join(", ")));
        }
        let flavour = match self.machine {
            Machine::Fast => Flavour::Fast,
            Machine::Constant => Flavour::C,
            Machine::Recorded => {
                defines.push("WEIR_LIMIT_RECORD=1".to_owned());
                Flavour::C
            }
            Machine::Tunable => {
                defines.push("TEST_LIMIT=WEIR_AVR_LIMIT_TUNABLE".to_owned());
                Flavour::C
            }
        };
        build(&["limited.c"], flavour, &defines)
    }

    fn run(&self, elf: &Elf, flood: LineStimulus, cycles: u64) -> History {
        let result = trace(elf, &[flood], cycles);
        let mark = if self.limit.channel == "TIMER2" {
            0x51
        } else {
            0x43
        };
        history(&result.events, 0, channel(self.limit.channel), mark)
    }

    /// Returns the most cycles that a request costs with its limiter, without the handler's work.
    fn cost(&self) -> u64 {
        match self.machine {
            Machine::Fast => 150,
            Machine::Constant => 250,
            Machine::Recorded | Machine::Tunable => 700,
        }
    }

    fn interval(&self) -> u64 {
        self.limit.interval_cycles()
    }

    /// Returns the cycles by which an instant that is too near may be postponed and a flag may be
    /// late.
    fn ticks(&self) -> u64 {
        4 * self.limit.prescaler
    }

    /// Returns L in cycles: the greatest delay of an expiry.
    fn latency(&self) -> u64 {
        // The most cycles of a step of the general limiter, and of a call by the user.
        let steps = if self.machine == Machine::Fast {
            150
        } else {
            900
        };
        let calls = if self.changes.is_empty() { 0 } else { 2_500 };
        let sweep = if self.sweep { SWEEP } else { 0 };
        self.off + sweep + self.work + steps + calls + self.ticks()
    }

    /// Checks LIMIT-*-1 and LIMIT-CHANGE-2: no window exceeds the curve of the shortest interval
    /// with the largest burst.
    fn judge_curve(&self, served: &[u64], what: &str) {
        let config = self.limit.config;
        let shortest = self.changes.iter().map(|change| change.0);
        let interval = shortest.fold(config.interval, u64::min) * self.limit.prescaler;
        let burst = u64::from(config.burst);
        let late = match config.policy {
            LimitPolicy::Paced | LimitPolicy::Bursty if self.user != 0 => interval - 1,
            LimitPolicy::Paced | LimitPolicy::Bursty if config.timing != LimitTiming::OneShot => {
                self.latency().min(interval - 1)
            }
            _ => 0,
        };
        // The phase of an instant within its tick is unknown, so a tick is added.
        let slop = self.machine.way() + self.limit.prescaler + config.lag * self.limit.prescaler;
        let most = 200.max(4 * config.burst as usize);
        for (first, &from) in served.iter().enumerate() {
            for (more, &to) in served[first..].iter().enumerate().take(most) {
                let count = more as u64 + 1;
                let most = curve(config.policy, interval, burst, to - from + late + slop);
                assert!(
                    count <= most,
                    "{count} served from cycle {from} to {to}, the curve allows {most}: {what}"
                );
            }
        }
    }

    /// Checks LIMIT-LIVE-1: in a flood the next service comes within T + L of the previous one.
    fn judge_liveness(&self, history: &History, gap: u64, what: &str) {
        let most = self.interval() + 2 * self.latency() + gap;
        for pair in history.served.windows(2) {
            let waited = pair[1].0 - pair[0].0;
            assert!(
                waited <= most,
                "nothing served for {waited} cycles from cycle {} on, {most} at most: {what}",
                pair[0].0
            );
        }
    }

    /// Checks LIMIT-STRICT-2, -PACED-2, -BUCKET-2, -BURSTY-3: the fraction of the limit that is
    /// served in a flood.
    fn judge_rate(&self, history: &History, cycles: u64, what: &str) {
        let config = self.limit.config;
        let (interval, latency) = (self.interval() as f64, self.latency() as f64);
        let burst = f64::from(config.burst);
        let (share, together) = match (config.policy, config.timing) {
            (LimitPolicy::Strict, _) => (interval / (interval + latency), 1.0),
            (LimitPolicy::Paced, _) if latency < interval => (1.0, 1.0),
            (LimitPolicy::Bucket, _) if latency <= (burst - 1.0) * interval => (1.0, 1.0),
            (LimitPolicy::Bucket, _) if config.burst == 1 => (interval / (interval + latency), 1.0),
            (LimitPolicy::Bursty, LimitTiming::OneShot) => {
                (interval / (interval + 2.0 * latency), burst)
            }
            (LimitPolicy::Bursty, _) if latency < interval => (1.0, burst),
            _ => return,
        };
        let allowed = cycles as f64 / interval * together * share;
        let served = history.served.len() as f64;
        // The tolerance covers requests in progress at both ends, a tick if an instant was too
        // near, and the start-up.
        let least = allowed * 0.998 - 2.0 * together - 2.0 - 3_000.0 / interval * together;
        assert!(
            served >= least,
            "{served} served, {allowed:.1} allowed: {what}"
        );
    }
}

fn judge(case: &Case, seed: u64) {
    let elf = case.firmware();
    let interval = case.interval();
    let cycles = if case.sweep {
        (100 * (case.off + case.on)).clamp(1_000_000, 8_000_000)
    } else {
        (40 * interval).clamp(400_000, 3_000_000)
    };
    let random = &mut ChaCha12Rng::seed_from_u64(seed ^ 0x5eed);
    let mut served = 0;

    // Returns a flood that leaves no interval unused.
    let burst = match case.limit.config.policy {
        LimitPolicy::Bursty => u64::from(case.limit.config.burst),
        _ => 1,
    };
    let gap = (interval / burst / 8).clamp(60, 4_000);
    let text = format!("INT0={:.3}Hz", CLOCK as f64 / gap as f64);
    let what = format!("seed {seed}, {text}, {case:?}");
    let history = case.run(&elf, flood(&text), cycles);
    let instants: Vec<u64> = history.served.iter().map(|&(at, _)| at).collect();
    served += instants.len();
    case.judge_curve(&instants, &what);
    if case.user == 0 && case.changes.is_empty() {
        case.judge_liveness(&history, gap, &what);
        if interval / burst >= 3 * (case.cost() + case.work) && gap <= interval / burst / 7 {
            case.judge_rate(&history, cycles, &what);
        }
    }

    let rate = case.limit.rate().min(30_000.0);
    let factor = log_uniform(random, 300, 5_000) as f64 / 1000.0;
    for one in [
        flood(&format!("INT0=poisson:{:.3}Hz:seed={seed}", rate * factor)),
        flood(&format!("INT0={:.3}Hz", rate * factor)),
        storm(&case.limit, seed, cycles),
    ] {
        let what = format!("seed {seed}, {one}, {case:?}");
        let history = case.run(&elf, one, cycles);
        let instants: Vec<u64> = history.served.iter().map(|&(at, _)| at).collect();
        served += instants.len();
        case.judge_curve(&instants, &what);
    }
    assert!(served > 20, "little happened: seed {seed}, {case:?}");
}

/// Runs all seeds and reports every failure.
fn every_seed(case: fn(u64) -> Case) {
    let seeds = seeds();
    let failed: Vec<String> = seeds
        .par_iter()
        .copied()
        .filter_map(|seed| {
            let result = std::panic::catch_unwind(|| judge(&case(seed), seed));
            let cause = result.err()?;
            let text = cause.downcast_ref::<String>().cloned();
            Some(text.unwrap_or_else(|| format!("seed {seed}: a panic without a text")))
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {} cases:\n{}",
        failed.len(),
        seeds.len(),
        failed.join("\n")
    );
}

#[test]
fn limits_of_the_c_flavour_keep_their_contracts_whatever_they_are() {
    every_seed(|seed| Case::new(Flavour::C, seed));
}

#[test]
fn limits_of_the_fast_flavour_keep_their_contracts_whatever_they_are() {
    every_seed(|seed| Case::new(Flavour::Fast, seed));
}

#[test]
fn limits_of_the_c_flavour_keep_their_contracts_a_wrap_late() {
    every_seed(|seed| Case::a_wrap_late(Flavour::C, seed));
}

#[test]
fn limits_of_the_fast_flavour_keep_their_contracts_a_wrap_late() {
    every_seed(|seed| Case::a_wrap_late(Flavour::Fast, seed));
}

#[test]
fn limits_of_the_c_flavour_keep_their_contracts_with_the_largest_bursts() {
    every_seed(|seed| Case::largest_burst(Flavour::C, seed));
}

#[test]
fn limits_of_the_fast_flavour_keep_their_contracts_with_the_largest_bursts() {
    every_seed(|seed| Case::largest_burst(Flavour::Fast, seed));
}
