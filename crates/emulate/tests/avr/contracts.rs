// SPDX-License-Identifier: GPL-3.0-or-later
//! Checks the contracts of core/ on the board, using only the instants at which handlers ran.

use std::sync::Arc;

use crate::port::history::{History, Kind, channel, history};
use crate::port::{CLOCK, Elf, Flavour, Limit, build, flood, mark, storm, trace};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use weir_core_sys::{LimitPolicy, LimitTiming};
use weir_emulate::line::Line;
use weir_emulate::run::{LineStimulus, Stimulus};

/// The duration of a run: 0.5 s of the board's time, in cycles.
const CYCLES: u64 = 2_000_000;

fn c_limits() -> Vec<Limit> {
    vec![
        Limit::new(
            LimitPolicy::Strict,
            LimitTiming::Eager,
            1000,
            1,
            "TIMER1A",
            1,
        ),
        Limit::new(
            LimitPolicy::Strict,
            LimitTiming::Lazy,
            1000,
            1,
            "TIMER1A",
            1,
        ),
        Limit::new(
            LimitPolicy::Paced,
            LimitTiming::Eager,
            1000,
            1,
            "TIMER1A",
            1,
        ),
        Limit::new(LimitPolicy::Paced, LimitTiming::Lazy, 1000, 1, "TIMER1A", 1),
        Limit::new(
            LimitPolicy::Bursty,
            LimitTiming::Eager,
            4000,
            4,
            "TIMER1A",
            1,
        ),
        Limit::new(
            LimitPolicy::Bursty,
            LimitTiming::Lazy,
            4000,
            4,
            "TIMER1A",
            1,
        ),
        Limit::new(
            LimitPolicy::Bursty,
            LimitTiming::OneShot,
            4000,
            4,
            "TIMER1A",
            1,
        ),
        Limit::new(
            LimitPolicy::Bucket,
            LimitTiming::Eager,
            1000,
            4,
            "TIMER1A",
            1,
        ),
        Limit::new(
            LimitPolicy::Bucket,
            LimitTiming::Lazy,
            1000,
            4,
            "TIMER1A",
            1,
        ),
        Limit::new(LimitPolicy::Bucket, LimitTiming::Lazy, 40, 4, "TIMER1A", 8),
        Limit::new(LimitPolicy::Bursty, LimitTiming::Lazy, 60, 4, "TIMER1A", 64),
    ]
}

fn fast_limits() -> Vec<Limit> {
    let mut all = Vec::new();
    for (channel, prescaler) in [("TIMER0", 8), ("TIMER2", 64)] {
        all.push(Limit::new(
            LimitPolicy::Strict,
            LimitTiming::Eager,
            125,
            1,
            channel,
            prescaler,
        ));
        all.push(Limit::new(
            LimitPolicy::Strict,
            LimitTiming::Lazy,
            125,
            1,
            channel,
            prescaler,
        ));
        all.push(Limit::new(
            LimitPolicy::Bursty,
            LimitTiming::Lazy,
            240,
            4,
            channel,
            prescaler,
        ));
        all.push(Limit::new(
            LimitPolicy::Bucket,
            LimitTiming::Lazy,
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

fn watch(elf: &Elf, limit: &Limit, floods: &[LineStimulus], cycles: u64) -> History {
    let result = trace(elf, floods, cycles);
    let mark = if limit.channel == "TIMER2" {
        0x51
    } else {
        0x43
    };
    history(&result.events, 0, channel(limit.channel), mark)
}

/// Returns the cycles by which the instant of service may vary: the execution of the entry, the
/// expiry and the handler, and a tick.
fn jitter(limit: &Limit) -> u64 {
    let margin = if limit.config.interval * u64::from(limit.config.burst) <= 240 {
        3
    } else {
        16
    };
    400 + limit.prescaler * margin
}

/// Checks LIMIT-*-1: the most requests in every window of t cycles, where the instant of service
/// has the jitter J.
fn judge_curve(limit: &Limit, history: &History, what: &str) {
    let served = &instants(history);
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
                LimitPolicy::Strict | LimitPolicy::Paced => 1 + span / interval,
                LimitPolicy::Bursty => burst * (span / interval + 2),
                LimitPolicy::Bucket => burst + span / interval,
                LimitPolicy::Off => u64::MAX,
            };
            assert!(
                count <= most,
                "{count} served from cycle {from} to {to}, the curve allows {most}: {limit:?} {what}"
            );
        }
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
            judge_curve(&limit, &history, &text);
        }
        for seed in 0..if crate::is_long() { 6 } else { 2 } {
            let history = watch(&elf, &limit, &[storm(&limit, seed, CYCLES)], CYCLES);
            assert!(history.served.len() > 50);
            judge_curve(&limit, &history, &format!("storm {seed}"));
        }
    });
}

/// Builds a handler that counts, without a limiter. It serves all requests that the pending bit
/// keeps.
fn unprotected() -> Elf {
    build(&["unprotected.c"], Flavour::C, &[])
}

/// Returns requests with random gaps that always stay within the limit.
fn below_the_limit(limit: &Limit, seed: u64, cycles: u64) -> LineStimulus {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let (interval, burst) = (
        limit.interval_cycles() + limit.prescaler * 4,
        u64::from(limit.config.burst),
    );
    let mut times: Vec<u64> = Vec::new();
    let mut now = 3000;
    while now < cycles {
        let in_burst = random.random_range(1..=burst);
        for request in 0..in_burst {
            times.push(now + request * random.random_range(150..300));
        }
        times.sort_unstable();
        // The pause keeps the requests within the limit. With bursty, at most N requests come in
        // any period. A bucket is full again before the next burst.
        let pause = match limit.config.policy {
            LimitPolicy::Strict | LimitPolicy::Paced => interval,
            LimitPolicy::Bursty => 2 * interval,
            _ => (interval + 1) * burst,
        };
        now = times[times.len() - 1]
            + pause
            + random.random_range(0..interval) * random.random_range(0..3);
    }
    times.dedup_by(|later, earlier| *later < *earlier + 150);
    LineStimulus {
        line: Line::INT0,
        stimulus: Stimulus::Trace {
            name: "below the limit".to_owned(),
            times: Arc::from(times),
        },
    }
}

#[test]
fn below_the_limit_no_request_is_lost() {
    let bare = unprotected();
    all_limits().into_par_iter().for_each(|(limit, flavour)| {
        let elf = firmware(&limit, flavour, &[]);
        let mut floods: Vec<LineStimulus> = (0..4)
            .map(|seed| below_the_limit(&limit, seed, CYCLES - 400_000))
            .collect();
        floods.push(flood(&format!("INT0={:.3}Hz", limit.rate() * 0.97)));
        for one in floods {
            // The run is long enough to serve the last request.
            let served = watch(&elf, &limit, std::slice::from_ref(&one), CYCLES)
                .served
                .len();
            let result = trace(&bare, std::slice::from_ref(&one), CYCLES);
            let without = history(&result.events, 0, channel("TIMER1A"), 0x43)
                .served
                .len();
            assert!(without > 10);
            // Requests in the last interval of the run may still wait.
            assert!(
                served + 1 >= without && served <= without,
                "{served} of {without} served: {limit:?} {one}"
            );
        }
    });
}

#[test]
fn a_source_comes_back_after_an_overload() {
    all_limits().into_par_iter().for_each(|(limit, flavour)| {
        let elf = firmware(&limit, flavour, &[]);
        let interval = limit.interval_cycles();
        let pause = interval * 12;
        for phase in 0..8 {
            // The flood is followed by silence, and then by single requests.
            let end = 200_000 + interval * phase / 8;
            let mut times: Vec<u64> = (0..)
                .map(|k| 3000 + k * 171)
                .take_while(|&at| at < end)
                .collect();
            let alone: Vec<u64> = (1..=5).map(|k| end + k * pause).collect();
            times.extend(&alone);
            let flood = LineStimulus {
                line: Line::INT0,
                stimulus: Stimulus::Trace {
                    name: "storm and silence".to_owned(),
                    times: Arc::from(times),
                },
            };
            let served = instants(&watch(&elf, &limit, &[flood], end + 6 * pause));
            for at in alone {
                let soon = served
                    .iter()
                    .filter(|&&instant| instant >= at && instant < at + 400)
                    .count();
                assert_eq!(
                    soon,
                    1,
                    "the request at {at} after silence: {limit:?} {flavour:?}, served {:?}",
                    &served[served.len() - 8..]
                );
            }
        }
    });
}

/// Checks LIMIT-*-3: at least T/(T + L) of the limit is served, where L is the latency from the end
/// of an interval to the start of the next one.
#[test]
fn in_overload_nearly_the_whole_limit_is_served() {
    all_limits().into_par_iter().for_each(|(limit, flavour)| {
        let elf = firmware(&limit, flavour, &[]);
        // The cycles of an expiry in the general limiter, plus two ticks: one until the flag is
        // set, and one for the timer's phase at the start.
        let latency = 60.0 + 2.0 * limit.prescaler as f64;
        let share = limit.interval_cycles() as f64 / (limit.interval_cycles() as f64 + latency);
        for factor in [3.0, 5.13] {
            let flood = flood(&format!("INT0={:.3}Hz", limit.rate() * factor));
            let served = watch(&elf, &limit, &[flood], CYCLES).served.len() as f64;
            let allowed = limit.rate() * CYCLES as f64 / CLOCK as f64;
            assert!(
                served >= share * (allowed - 1.0),
                "{served} of {allowed}: {limit:?} {flavour:?}"
            );
        }
    });
}

/// Checks the two enable bits of regehr2005 §4. The firmware contains the calls by which the user
/// switches the line on and off.
fn judge_user(limit: &Limit, history: &History, what: &str) {
    let mut on = true;
    let mut switched = 0;
    for episode in &history.episodes {
        match episode.kind {
            Kind::Call(mark::DISABLE) => {
                on = false;
                switched += 1;
                assert!(
                    !episode.enabled,
                    "LIMIT-ENABLE-1: disabled, and the enable bit is set: {episode:?}"
                );
            }
            Kind::Call(mark::ENABLE) => on = true,
            Kind::Request => assert!(
                on,
                "the line fires while the user has it off: {episode:?} {limit:?} {what}"
            ),
            Kind::Expiry => {
                assert!(
                    on || !episode.enabled,
                    "the limiter switches on what the user has off: {episode:?} {limit:?} {what}"
                );
                assert!(
                    on || episode.served.is_empty(),
                    "served while the user has it off: {episode:?} {limit:?} {what}"
                );
            }
            Kind::Call(_) => {}
        }
    }
    assert!(switched > 50, "only {switched} times switched off");
}

#[test]
fn a_line_never_fires_while_the_user_holds_it_off() {
    all_limits().into_par_iter().for_each(|(limit, flavour)| {
        for user in 1..=3 {
            let elf = firmware(&limit, flavour, &[&format!("TEST_USER={user}")]);
            for text in [
                format!("INT0={:.1}Hz", limit.rate() * 3.1),
                format!("INT0=poisson:{:.1}Hz:seed=5", limit.rate()),
            ] {
                let history = watch(&elf, &limit, &[flood(&text)], CYCLES);
                judge_user(&limit, &history, &text);
                judge_curve(&limit, &history, &text);
                assert!(
                    history.served.len() > 30,
                    "{} served: {limit:?} {text}",
                    history.served.len()
                );
            }
        }
    });
}
