// SPDX-License-Identifier: GPL-3.0-or-later
//! Checks the requests that pass while the limit changes under a flood, on the board.

use crate::port::curve::curve;
use crate::port::history::{Episode, History, Kind, channel, history};
use crate::port::{Flavour, Limit, build, flood, mark, trace};
use rayon::prelude::*;
use weir_core_sys::{LimitPolicy, LimitTiming};

/// The duration of a run: 1.5 s of the board's time, in cycles.
const CYCLES: u64 = 6_000_000;

/// The address of OCR2, to which the firmware writes its marks.
const MARK: u16 = 0x43;

/// The cycles by which the instant of service may vary, without the calls that change the limit.
const WANDER: u64 = 400;

/// A limit, and the interval and the burst to which it changes and from which it returns.
type Change = (Limit, u64, u8);

fn changes() -> Vec<Change> {
    let of =
        |policy, timing, interval, burst| Limit::new(policy, timing, interval, burst, "TIMER1A", 1);
    let mut all = Vec::new();
    for timing in [LimitTiming::Eager, LimitTiming::Lazy] {
        all.push((of(LimitPolicy::Strict, timing, 4000, 1), 9000, 1));
        all.push((of(LimitPolicy::Strict, timing, 2500, 1), 12000, 1));
        // In some pairs one curve lies above the other; in others the curves cross.
        all.push((of(LimitPolicy::Bucket, timing, 4000, 4), 9000, 2));
        all.push((of(LimitPolicy::Bucket, timing, 4000, 2), 5300, 5));
        all.push((of(LimitPolicy::Bucket, timing, 3600, 3), 3600, 6));
    }
    for timing in [LimitTiming::Eager, LimitTiming::Lazy, LimitTiming::OneShot] {
        all.push((of(LimitPolicy::Bursty, timing, 6000, 4), 9800, 2));
        all.push((of(LimitPolicy::Bursty, timing, 6000, 2), 9800, 5));
        all.push((of(LimitPolicy::Bursty, timing, 6000, 3), 6000, 6));
    }
    all
}

/// LIMIT-CHANGE-1: every window with at most one change stays below the larger of the curves before
/// and after it.
#[test]
fn around_a_change_no_window_holds_more_than_the_larger_curve() {
    changes().into_par_iter().for_each(|change| {
        let (limit, interval, burst) = change;
        let mut defines = limit.defines();
        defines.push(format!("TEST_OTHER_INTERVAL={interval}"));
        defines.push(format!("TEST_OTHER_BURST={burst}"));
        let floods = [
            "31kHz",
            "poisson:5kHz:seed=1",
            "bursts:14:gap=190cycles:period=17003cycles",
            "3.9kHz",
            "poisson:1.5kHz:seed=2",
        ];
        let tried = if crate::is_long() { floods.len() } else { 3 };
        // The pauses between changes range from less than the longer interval to several times its
        // length.
        for pause in [1100, 3300] {
            let pause = format!("TEST_PAUSE={pause}");
            let defines = [&defines[..], std::slice::from_ref(&pause)].concat();
            let elf = build(&["changed.c"], Flavour::C, &defines);
            for kind in &floods[..tried] {
                let result = trace(&elf, &[flood(&format!("INT0={kind}"))], CYCLES);
                let history = history(&result.events, 0, channel("TIMER1A"), MARK);
                judge(&change, &history, &format!("{kind} {pause}"));
            }
        }
    });
}

/// Returns the cycle of each call that changes the limit, and which of the two limits it sets.
fn calls(history: &History) -> Vec<(u64, u8)> {
    let call = |one: &Episode| match one.kind {
        Kind::Call(number) if number >= mark::CHANGE => Some((one.begin, number - mark::CHANGE)),
        _ => None,
    };
    history.episodes.iter().filter_map(call).collect()
}

fn judge(change: &Change, history: &History, what: &str) {
    let (limit, other_interval, other_burst) = *change;
    let served: Vec<u64> = history.served.iter().map(|&(at, _)| at).collect();
    let calls = calls(history);
    assert!(
        calls.len() > 25 && served.len() > 200,
        "{} changes, {} served: {change:?} {what}",
        calls.len(),
        served.len()
    );
    // Interrupts are masked while a change is computed, for less than any of the intervals.
    let longest_call = history
        .episodes
        .iter()
        .filter(|one| matches!(one.kind, Kind::Call(_)))
        .map(|one| one.end - one.begin)
        .max();
    let j = WANDER + longest_call.unwrap();
    assert!(
        j < 2000,
        "a change takes too long for the curves to tell anything: {j}"
    );
    let policy = limit.config.policy;
    let curves = [
        (limit.interval_cycles(), u64::from(limit.config.burst)),
        (other_interval, u64::from(other_burst)),
    ];
    // The changes alternate, so the number of changes before a service tells which limit holds.
    let before = |at: u64| calls.partition_point(|&(when, _)| when < at);
    let mut across = 0;
    for (first, &from) in served.iter().enumerate() {
        let changes = before(from);
        for (more, &to) in served[first..].iter().enumerate() {
            let span = to - from + j;
            let most_of = |(interval, burst)| curve(policy, interval, burst, span);
            let most = match before(to) - changes {
                0 => most_of(curves[changes % 2]),
                1 => {
                    across += 1;
                    most_of(curves[0]).max(most_of(curves[1]))
                }
                _ => break,
            };
            let count = more as u64 + 1;
            assert!(
                count <= most,
                "{count} served from cycle {from} to {to}, after {changes} changes, the curves allow {most}: {change:?} {what}"
            );
        }
    }
    assert!(
        across > 200,
        "only {across} windows with a change: {change:?} {what}"
    );
}
