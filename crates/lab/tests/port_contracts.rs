// SPDX-License-Identifier: GPL-3.0-or-later
//! What core/ promises, seen on the board: from the instants at which handlers ran, whatever the limiter thinks.
mod port;

use std::sync::Arc;

use port::history::{History, Kind, channel, history};
use port::{Elf, Flavour, Limit, build, flood, mark, trace};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use weir_core_sys::{Policy, Timing};
use weir_lab::line::Line;
use weir_lab::run::{Flood, Stimulus};

/// 0.5 s.
const CYCLES: u64 = 2_000_000;

fn c_limits() -> Vec<Limit> {
    vec![
        Limit::new(Policy::Strict, Timing::Eager, 1000, 1, "TIMER1A", 1),
        Limit::new(Policy::Strict, Timing::Lazy, 1000, 1, "TIMER1A", 1),
        Limit::new(Policy::Paced, Timing::Eager, 1000, 1, "TIMER1A", 1),
        Limit::new(Policy::Paced, Timing::Lazy, 1000, 1, "TIMER1A", 1),
        Limit::new(Policy::Bursty, Timing::Eager, 4000, 4, "TIMER1A", 1),
        Limit::new(Policy::Bursty, Timing::Lazy, 4000, 4, "TIMER1A", 1),
        Limit::new(Policy::Bursty, Timing::OneShot, 4000, 4, "TIMER1A", 1),
        Limit::new(Policy::Bucket, Timing::Eager, 1000, 4, "TIMER1A", 1),
        Limit::new(Policy::Bucket, Timing::Lazy, 1000, 4, "TIMER1A", 1),
        Limit::new(Policy::Bucket, Timing::Lazy, 40, 4, "TIMER1A", 8),
        Limit::new(Policy::Bursty, Timing::Lazy, 60, 4, "TIMER1A", 64),
    ]
}

fn fast_limits() -> Vec<Limit> {
    let mut all = Vec::new();
    for (channel, prescaler) in [("TIMER0", 8), ("TIMER2", 64)] {
        all.push(Limit::new(
            Policy::Strict,
            Timing::Eager,
            125,
            1,
            channel,
            prescaler,
        ));
        all.push(Limit::new(
            Policy::Strict,
            Timing::Lazy,
            125,
            1,
            channel,
            prescaler,
        ));
        all.push(Limit::new(
            Policy::Bursty,
            Timing::Lazy,
            240,
            4,
            channel,
            prescaler,
        ));
        all.push(Limit::new(
            Policy::Bucket,
            Timing::Lazy,
            50,
            4,
            channel,
            prescaler,
        ));
    }
    all
}

fn firmware(limit: &Limit, flavour: Flavour, defines: &[&str]) -> Elf {
    let mut all = limit.defines();
    all.extend(defines.iter().map(ToString::to_string));
    build(&["limited.c"], flavour, &all)
}

fn watch(elf: &Elf, limit: &Limit, floods: &[Flood], cycles: u64) -> History {
    let result = trace(elf, floods, cycles);
    let mark = if limit.channel == "TIMER2" {
        0x51
    } else {
        0x43
    };
    history(&result.events, 0, channel(limit.channel), mark)
}

/// Cycles by which the instant of service may wander: the way through the entry, the expiry and the handler, and the tick.
fn jitter(limit: &Limit) -> u64 {
    let margin = if limit.config.interval * u64::from(limit.config.burst) <= 240 {
        3
    } else {
        16
    };
    400 + limit.prescaler * margin
}

/// LIMIT-*-1: in every window of t cycles at most so many, with the jitter J of the instant of service.
fn judge_curve(limit: &Limit, served: &[u64], what: &str) {
    let (interval, burst, j) = (
        limit.interval_cycles(),
        u64::from(limit.config.burst),
        jitter(limit),
    );
    for (first, &from) in served.iter().enumerate() {
        for (more, &to) in served[first..].iter().enumerate().take(200) {
            let count = more as u64 + 1;
            let span = to - from + j;
            let most = match limit.config.policy {
                Policy::Strict | Policy::Paced => 1 + span / interval,
                Policy::Bursty => burst * (span / interval + 2),
                Policy::Bucket => burst + span / interval,
                Policy::Off => u64::MAX,
            };
            assert!(
                count <= most,
                "{count} served from cycle {from} to {to}, the curve allows {most}: {limit:?} {what}"
            );
        }
    }
}

/// Bursts and pauses of every length, in step with the interval and not: 60 % of the gaps short, some near multiples of the interval.
fn storm(limit: &Limit, seed: u64, cycles: u64) -> Flood {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let interval = limit.interval_cycles();
    let mut times = Vec::new();
    let mut now = 3000;
    while now < cycles {
        times.push(now);
        now += match random.random_range(0..20) {
            0..12 => random.random_range(60..400),
            12..16 => random.random_range(interval / 8..interval),
            16..19 => {
                interval * random.random_range(1..4) - random.random_range(0..300.min(interval))
            }
            _ => random.random_range(interval..interval * 12),
        };
    }
    Flood {
        line: Line::INT0,
        stimulus: Stimulus::Trace {
            name: "storm".to_owned(),
            times: Arc::from(times),
        },
    }
}

fn all_limits() -> Vec<(Limit, Flavour)> {
    let c = c_limits().into_iter().map(|limit| (limit, Flavour::C));
    c.chain(
        fast_limits()
            .into_iter()
            .map(|limit| (limit, Flavour::Fast)),
    )
    .collect()
}

fn instants(history: &History) -> Vec<u64> {
    history.served.iter().map(|&(at, _)| at).collect()
}

#[test]
fn no_window_holds_more_than_the_curve() {
    all_limits().into_par_iter().for_each(|(limit, flavour)| {
        let elf = firmware(&limit, flavour, &[]);
        for text in limit.floods() {
            let history = watch(&elf, &limit, &[flood(&text)], CYCLES);
            judge_curve(&limit, &instants(&history), &text);
        }
        for seed in 0..6 {
            let history = watch(&elf, &limit, &[storm(&limit, seed, CYCLES)], CYCLES);
            assert!(history.served.len() > 50);
            judge_curve(&limit, &instants(&history), &format!("storm {seed}"));
        }
    });
}
