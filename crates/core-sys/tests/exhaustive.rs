// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests every request pattern over a few ticks, with every latency, for small intervals and
//! bursts.

use crate::board::{Board, Mode, configs};
use crate::is_long;
use rayon::prelude::*;
use weir_core_sys::{Config, LimitPolicy, LimitTiming, Trigger, W16};

/// The start is shortly before the wrap of 16-bit ticks, so that every pattern crosses the wrap.
const START: u64 = 0x1_0000 - 5;

const TRIGGERS: [Trigger; 3] = [Trigger::Edge, Trigger::EdgeUnlatched, Trigger::Level];

/// Runs every pattern of `(before, after)` choices over `ticks`. At each tick at which the timer
/// was armed, all latencies up to `latest` are tried.
fn every_pattern(
    board: &Board<W16>,
    ticks: u32,
    choices: &[(u32, u32)],
    latest: u64,
    end: &mut impl FnMut(Board<W16>),
) {
    if ticks == 0 {
        end(board.clone());
        return;
    }
    for &(before, after) in choices {
        for latency in 0..=latest {
            let mut next = board.clone();
            next.latency = latency;
            let was_armed = next.armed();
            next.tick(before, after);
            let armed_anew = next.armed().is_some() && next.armed() != was_armed;
            every_pattern(&next, ticks - 1, choices, latest, end);
            if !armed_anew {
                break;
            }
        }
    }
}

fn fresh(config: &Config, mode: Mode, latest: u64) -> Board<W16> {
    let mut board = Board::new(config, START, mode);
    board.worst_latency = latest;
    board.exact = latest == 0;
    board
}

/// Returns enough ticks to serve all requests that a source can have waiting.
fn long(config: &Config) -> u64 {
    8 * (config.interval + 2)
}

/// LIMIT-*-1 (curve), LIMIT-*-2 (no request waits that may be served), LIMIT-LIVE-*: requests are
/// served exactly when the model says so.
#[test]
fn serves_exactly_what_the_policy_allows_when_expiries_are_prompt() {
    let all: Vec<Config> = TRIGGERS
        .iter()
        .flat_map(|&trigger| configs(&[1, 2, 3, 4], &[1, 2, 3], trigger))
        .collect();
    all.par_iter().for_each(|config| {
        for (ticks, choices) in [
            (if is_long() { 12 } else { 10 }, &[(0, 0), (0, 1)][..]),
            (
                if is_long() { 7 } else { 6 },
                &[(0, 0), (1, 0), (0, 1), (0, 2)][..],
            ),
        ] {
            every_pattern(
                &fresh(config, Mode::Age, 0),
                ticks,
                choices,
                0,
                &mut |mut board| board.drain(long(config)),
            );
        }
    });
}

/// LIMIT-*-1, LIMIT-LIVE-*: the same patterns, where each expiry is either prompt or one tick late.
#[test]
fn keeps_its_curve_whatever_the_latency_of_each_expiry() {
    let all: Vec<Config> = TRIGGERS
        .iter()
        .flat_map(|&trigger| configs(&[2, 3, 4], &[1, 2, 3], trigger))
        .collect();
    all.par_iter().for_each(|config| {
        for mode in [Mode::Age, Mode::Watch] {
            every_pattern(
                &fresh(config, mode, 1),
                if is_long() { 9 } else { 7 },
                &[(0, 0), (0, 1), (2, 0)],
                1,
                &mut |mut board| board.drain(long(config)),
            );
        }
    });
}

/// Returns whether the requests at these instants are below the limit, as LIMIT-LOSS-1 defines it
/// for a latency of less than `latency`.
fn is_below(config: &Config, edges: &[u64], latency: u64) -> bool {
    let interval = config.interval;
    let apart = |count: usize, least: u64| {
        edges
            .windows(count + 1)
            .all(|window| window[count] - window[0] >= least)
    };
    match (config.policy, config.timing) {
        // A bucket of one token is a strict limiter.
        (LimitPolicy::Strict, LimitTiming::Eager) | (LimitPolicy::Bucket, LimitTiming::Eager)
            if config.burst == 1 =>
        {
            apart(1, interval + latency)
        }
        (LimitPolicy::Strict | LimitPolicy::Paced, _) => apart(1, interval),
        (LimitPolicy::Bursty, LimitTiming::Lazy) => apart(usize::from(config.burst), interval),
        (LimitPolicy::Bursty, _) => apart(usize::from(config.burst), interval + latency),
        _ => edges.iter().enumerate().all(|(i, first)| {
            edges[i..]
                .iter()
                .zip(1..)
                .all(|(last, count)| count <= u64::from(config.burst) + (last - first) / interval)
        }),
    }
}

/// LIMIT-LOSS-1: below the limit, the limiter loses no request that the same handler would take
/// without a limiter. LIMIT-LAZY-1: a lazy limiter then refuses no request and takes no timer
/// interrupt.
#[test]
fn loses_nothing_below_the_limit() {
    // Without a pending bit only a lazy limiter loses no request, because it does not mask the
    // source below the limit.
    let mut all = configs(&[2, 3, 4], &[1, 2, 3], Trigger::EdgeUnlatched);
    all.retain(|config| config.timing == LimitTiming::Lazy);
    all.extend(configs(&[2, 3, 4], &[1, 2, 3], Trigger::Edge));
    let ticks = if is_long() { 14 } else { 11 };
    let tested: u64 = all
        .par_iter()
        .map(|config| {
            let mut tested = 0;
            for latest in [0, 1] {
                for pattern in 0..1_u32 << ticks {
                    for doubled in [false, true] {
                        // At an instant there is either one request or two.
                        let times = (1..=ticks).filter(|tick| pattern & 1 << (tick - 1) != 0);
                        let edges: Vec<u64> = times
                            .flat_map(|tick| std::iter::repeat_n(tick, if doubled { 2 } else { 1 }))
                            .collect();
                        // A request at the instant of an expiry may come just before it.
                        if !is_below(config, &edges, latest + 1) {
                            continue;
                        }
                        tested += 1;
                        let mut board = fresh(config, Mode::Age, latest);
                        board.exact = false;
                        board.latency = latest;
                        for tick in 1..=ticks {
                            board
                                .tick(edges.iter().filter(|&&edge| edge == tick).count() as u32, 0);
                        }
                        board.drain(long(config));
                        assert_eq!(
                            board.served.len(),
                            edges.len(),
                            "LIMIT-LOSS-1: {edges:?} {}",
                            board.story()
                        );
                        if config.timing == LimitTiming::Lazy {
                            assert_eq!(
                                board.refused + board.expiries,
                                0,
                                "LIMIT-LAZY-1: {edges:?} {}",
                                board.story()
                            );
                        }
                    }
                }
            }
            tested
        })
        .sum();
    assert!(tested > 5_000, "only {tested} patterns lay below a limit");
}

/// LIMIT-STRICT-1 with a lag: the one-shot timer is set early by the least latency, and no two
/// requests are served closer than the interval.
#[test]
fn a_lag_of_the_least_latency_keeps_the_curve() {
    for config in configs(&[2, 3, 4], &[1], Trigger::Edge)
        .iter()
        .filter(|config| config.policy == LimitPolicy::Strict)
    {
        let config = Config { lag: 1, ..*config };
        let ticks = if is_long() { 11 } else { 9 };
        for latency in [1, 2] {
            let mut board = fresh(&config, Mode::Age, latency);
            board.latency = latency;
            for pattern in 0..3_u32.pow(ticks) {
                let (mut next, mut rest) = (board.clone(), pattern);
                for _ in 0..ticks {
                    next.tick(0, rest % 3);
                    rest /= 3;
                }
                next.drain(long(&config));
            }
        }
    }
}
