// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests LIMIT-TIME-2 on the board mps2-an385: a source of ports/cortex-m that is idle for up to
//! three wraps of its timer then serves its whole burst at once, and no more. All tests need QEMU
//! and the compiler for Arm.

use crate::cortex::events::{Event, Kind, defines, judge, parse, replay, told};
use crate::cortex::{Limit, can_run, compile, requests};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use weir_core_sys::{Action, Bare, LimitPolicy, LimitTiming, W32};

/// The firmware that reports its events. IRQ28 ends it.
const SOURCE: &str = "ports/cortex-m/tests/limited.c";
/// The number of idle periods in a run.
const RESTS: usize = 24;
/// The number of idle periods in the short form.
const FEW_RESTS: usize = 8;
/// The ticks after which the timer wraps.
const WRAP: u64 = 1 << 32;
/// The distance in ticks from which on two events belong to different storms.
const APART: u64 = WRAP / 16;

/// Returns the starts of the storms, in ticks. Every other storm starts within two intervals of a
/// whole number of wraps after the previous one. At that time, an old instant looks like one that
/// has just passed.
fn beginnings(interval: u64, seed: u64) -> Vec<u64> {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let mut now = 100 * interval;
    let mut all = vec![now];
    let rests = if crate::is_long() { RESTS } else { FEW_RESTS };
    for index in 0..rests {
        now += if index % 2 == 0 {
            random.random_range(1..=2) * WRAP + random.random_range(0..interval * 4) - interval * 2
        } else {
            random.random_range(WRAP / 4..WRAP * 3)
        };
        all.push(now);
    }
    all
}

#[test]
fn cortex_m_serves_a_whole_burst_at_once_after_any_rest() {
    if !can_run() {
        return;
    }
    // A bursty eager limiter is never idle, because its periods continue without requests.
    let rests = |limit: &Limit| {
        (limit.config.policy, limit.config.timing) != (LimitPolicy::Bursty, LimitTiming::Eager)
    };
    let limits: Vec<Limit> = Limit::tried().into_iter().filter(rests).collect();
    limits
        .into_par_iter()
        .enumerate()
        .for_each(|(seed, limit)| {
            let what = format!("{limit:?}");
            let (interval, burst) = (limit.config.interval, u64::from(limit.config.burst));
            let begins = beginnings(interval, seed as u64);
            // Each storm has three requests more than may be served at once, within half an
            // interval.
            let gap = interval * limit.tick() / (2 * (burst + 3));
            let times: Vec<u64> = begins
                .iter()
                .flat_map(|begin| (0..burst + 3).map(move |n| begin * limit.tick() + n * gap))
                .collect();
            let over = times.last().unwrap() + 100 * interval * limit.tick();
            let elf = compile(SOURCE, &defines(&limit, &["WEIR_LIMIT_RECORD=0", "RESTS"])).unwrap();
            let floods = [requests("IRQ20", times), requests("IRQ28", vec![over])];
            let result = told(&elf, &floods, &["served0"], over);
            let events = parse(&result.said);
            replay::<Bare<W32>>(&limit.config, &events, &what);
            let served = judge(&limit, &events, 0, &what);
            assert_eq!(result.counters["served0"], served as u64, "{what}");
            let taken: Vec<&Event> = events
                .iter()
                .filter(|event| matches!(event.kind, Kind::Request | Kind::Refused))
                .collect();
            let storms: Vec<&[&Event]> = taken
                .chunk_by(|one, next| next.now - one.now < APART)
                .collect();
            assert_eq!(storms.len(), begins.len(), "{what}: storms");
            for (storm, begin) in storms.iter().zip(&begins) {
                let at_once = storm
                    .iter()
                    .take_while(|event| event.has(Action::Serve))
                    .count();
                // With bursty, a storm may cover the end of one period and the start of the next.
                let most = match limit.config.policy {
                    LimitPolicy::Bursty => 2 * burst,
                    _ => burst,
                };
                assert!(
                    (burst..=most).contains(&(at_once as u64)),
                    "{what}: {at_once} served at once of the storm at tick {begin}: {storm:?}"
                );
            }
        });
}
