// SPDX-License-Identifier: GPL-3.0-or-later
//! Compares the `c` flavour of ports/avr with core/, event by event. All policies and timings are
//! tested, specialised (lean.h) and general, under floods below, at and above the limit.

use crate::port::history::{channel, history};
use crate::port::replay::{Counts, replay};
use crate::port::{Flavour, Limit, build, flood, trace};
use rayon::prelude::*;
use weir_core_sys::{Config, LimitPolicy, LimitTiming};

/// The address of OCR2, to which limited.c writes its marks.
const MARK: u16 = 0x43;
/// The duration of a run: 0.3 s of the board's time, in cycles.
const CYCLES: u64 = 1_200_000;

fn limits() -> Vec<Limit> {
    let mut all = Vec::new();
    for (channel, prescaler, interval) in [
        ("TIMER1A", 1, 1000),
        ("TIMER3B", 8, 40),
        ("TIMER1B", 64, 25),
    ] {
        for policy in [
            LimitPolicy::Strict,
            LimitPolicy::Paced,
            LimitPolicy::Bursty,
            LimitPolicy::Bucket,
        ] {
            for timing in [LimitTiming::Eager, LimitTiming::Lazy, LimitTiming::OneShot] {
                let burst = match policy {
                    LimitPolicy::Bursty | LimitPolicy::Bucket => 4,
                    _ => 1,
                };
                if timing == LimitTiming::OneShot && policy != LimitPolicy::Bursty {
                    continue;
                }
                let interval = if policy == LimitPolicy::Bursty {
                    interval * 3
                } else {
                    interval
                };
                all.push(Limit::new(
                    policy, timing, interval, burst, channel, prescaler,
                ));
            }
        }
    }
    all.push(Limit::new(
        LimitPolicy::Bucket,
        LimitTiming::Lazy,
        1000,
        1,
        "TIMER1A",
        1,
    ));
    all.push(Limit::new(
        LimitPolicy::Bursty,
        LimitTiming::Lazy,
        4000,
        1,
        "TIMER1A",
        1,
    ));
    all.push(Limit::new(
        LimitPolicy::Bursty,
        LimitTiming::Lazy,
        16000,
        16,
        "TIMER1A",
        1,
    ));
    let mut short = Limit::new(
        LimitPolicy::Strict,
        LimitTiming::Eager,
        1000,
        1,
        "TIMER1A",
        1,
    );
    short.config.lag = 30;
    all.push(short);
    short.config.timing = LimitTiming::Lazy;
    all.push(short);
    all
}

fn compare(limit: &Limit, define: &str, record: u8) -> Counts {
    let mut defines = limit.defines();
    defines.push(format!("TEST_LIMIT={define}"));
    defines.push(format!("WEIR_LIMIT_RECORD={record}"));
    let elf = build(&["limited.c"], Flavour::C, &defines);
    let specialised = define == "WEIR_AVR_LIMIT" && record == 0;
    let channel = channel(limit.channel);
    let mut all = Counts::default();
    for text in limit.floods() {
        let result = trace(&elf, &[flood(&text)], CYCLES);
        let history = history(&result.events, 0, channel, MARK);
        let (counts, _) = std::panic::catch_unwind(|| replay(limit, specialised, &[], &history))
            .unwrap_or_else(|_| panic!("{text} {define} record {record}"));
        all += counts;
    }
    all
}

fn every_limit(define: &str, record: u8) {
    let all: Vec<(Limit, Counts)> = limits()
        .into_par_iter()
        .map(|limit| (limit, compare(&limit, define, record)))
        .collect();
    for (limit, counts) in all {
        assert!(
            counts.requests > 500 && counts.served_by_expiry > 100 && counts.expiries > 100,
            "little happened: {counts:?} in {limit:?}"
        );
        assert!(
            limit.config.timing != LimitTiming::Lazy || counts.held > 50,
            "nothing was held: {counts:?} in {limit:?}"
        );
    }
}

#[test]
fn a_specialised_limiter_decides_as_the_machine_does() {
    every_limit("WEIR_AVR_LIMIT", 0);
}

#[test]
fn a_limiter_with_a_record_decides_as_the_machine_does() {
    every_limit("WEIR_AVR_LIMIT", 1);
}

#[test]
fn a_tunable_limiter_decides_as_the_machine_does() {
    every_limit("WEIR_AVR_LIMIT_TUNABLE", 0);
}

fn judge_calls(limit: &Limit, defines: &[&str], specialised: bool, changes: &[Config]) {
    let mut all = limit.defines();
    all.extend(defines.iter().map(ToString::to_string));
    let elf = build(&["limited.c"], Flavour::C, &all);
    let mut counts = Counts::default();
    for text in [
        format!("INT0={:.1}Hz", limit.rate() * 0.8),
        format!("INT0={:.1}Hz", limit.rate() * 3.1),
        format!("INT0=poisson:{:.1}Hz:seed=5", limit.rate()),
        format!(
            "INT0=bursts:12:gap=150cycles:period={}cycles",
            limit.interval_cycles() * 5 + 2000
        ),
    ] {
        let result = trace(&elf, &[flood(&text)], CYCLES);
        let history = history(&result.events, 0, channel(limit.channel), MARK);
        counts += replay(limit, specialised, changes, &history).0;
    }
    assert!(
        counts.calls > 300 && counts.requests > 200,
        "little happened: {counts:?} in {limit:?}"
    );
}

/// Tests the two enable bits of regehr2005 §4, and requests that wait for the user.
#[test]
fn the_users_switching_is_followed_as_the_machine_does() {
    limits().into_par_iter().for_each(|limit| {
        // The specialised bursty and bucket limiters serve a request that waits for the user
        // slightly differently (contracts.rs checks them).
        if limit.config.policy == LimitPolicy::Strict {
            judge_calls(&limit, &["TEST_USER=3"], true, &[]);
        }
        judge_calls(&limit, &["TEST_USER=3", "WEIR_LIMIT_RECORD=1"], false, &[]);
    });
}

/// Tests rates and bursts that change under a flood (regehr2005 §1).
#[test]
fn changes_are_made_as_the_machine_does() {
    limits()
        .into_par_iter()
        .filter(|limit| limit.config.lag == 0)
        .for_each(|limit| {
            let counts = matches!(
                limit.config.policy,
                LimitPolicy::Bursty | LimitPolicy::Bucket
            );
            let more = if counts { limit.config.burst + 2 } else { 1 };
            let less = if counts {
                limit.config.burst.div_ceil(2)
            } else {
                1
            };
            let interval = limit.config.interval;
            let pairs = [
                (interval / 2, limit.config.burst),
                (interval * 2, less),
                (interval / 2, more),
                (interval, more),
            ];
            let usable = |&(interval, burst): &(u64, u8)| {
                let span = if limit.config.policy == LimitPolicy::Bucket {
                    u64::from(burst) + 1
                } else {
                    2
                };
                interval * span < 0x8000
            };
            let pairs: Vec<(u64, u8)> = pairs.into_iter().filter(usable).collect();
            let mut changes = vec![limit.config];
            changes.extend(pairs.iter().map(|&(interval, burst)| Config {
                interval,
                burst,
                ..limit.config
            }));
            let list: Vec<String> = pairs
                .iter()
                .map(|(interval, burst)| format!("{{{interval}, {burst}}}"))
                .collect();
            let list = format!("TEST_CHANGES={}", list.join(", "));
            judge_calls(
                &limit,
                &["TEST_LIMIT=WEIR_AVR_LIMIT_TUNABLE", &list],
                false,
                &changes,
            );
        });
}
