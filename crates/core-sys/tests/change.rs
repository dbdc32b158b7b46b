// SPDX-License-Identifier: MIT OR Apache-2.0
//! LIMIT-CHANGE-*: changes of rate and burst at run time (regehr2005 §1), for all pairs of small
//! configurations at every instant.

use crate::board::{Board, Mode, configs};
use crate::is_long;
use rayon::prelude::*;
use weir_core_sys::{Config, ConfigError, LimitPolicy, LimitTiming, Limiter, Trigger, W16, W32};

const START: u64 = 0x1_0000 - 7;

/// The number of requests per tick in a flood, which is as many as may be served.
const FLOOD: u32 = 4;

/// Returns all pairs of configurations with the same policy and timing.
fn pairs(all: &[Config]) -> Vec<(Config, Config)> {
    let same = |a: &Config, b: &Config| (a.policy, a.timing) == (b.policy, b.timing);
    all.iter()
        .flat_map(|a| all.iter().filter(|b| same(a, b)).map(|b| (*a, *b)))
        .collect()
}

/// A run of `ticks` ticks. Requests flood the source in [first, quiet) and from `again` on. The
/// configuration changes at `at`, before or after the requests of that instant.
struct Script {
    first: u64,
    quiet: u64,
    again: u64,
    at: u64,
    ticks: u64,
}

fn play(board: &mut Board<W16>, script: &Script, to: &Config) {
    for tick in 1..=script.ticks {
        let flood = if (script.first..script.quiet).contains(&tick) || tick >= script.again {
            FLOOD
        } else {
            0
        };
        if tick == script.at {
            board.advance(board.now + 1);
            board.expire();
            for _ in 0..flood {
                board.edge();
            }
            board.reconfigure(to);
            for _ in 0..flood {
                board.edge();
            }
            board.expire();
        } else {
            board.tick(0, flood);
        }
    }
}

/// LIMIT-CHANGE-1: a window with one change serves no more than the larger of the two curves
/// allows. After the change the source is still served.
#[test]
fn a_change_never_lets_through_more_than_the_larger_curve() {
    let (intervals, bursts) = if is_long() {
        (&[1, 2, 3, 4][..], &[1, 2, 3][..])
    } else {
        (&[1, 2, 4][..], &[1, 3][..])
    };
    let pairs = pairs(&configs(intervals, bursts, Trigger::Edge));
    pairs.par_iter().for_each(|(from, to)| {
        for latency in [0, 1] {
            for mode in [Mode::Age, Mode::Watch] {
                for at in 1..=8 {
                    for first in 1..=at {
                        for quiet in [first, first + 1, first + 3, 100] {
                            for again in [at, at + 1, at + 3] {
                                let mut board: Board<W16> = Board::new(from, START, mode);
                                board.latency = latency;
                                board.worst_latency = latency;
                                play(
                                    &mut board,
                                    &Script {
                                        first,
                                        quiet,
                                        again,
                                        at,
                                        ticks: 22,
                                    },
                                    to,
                                );
                                board.drain(80);
                            }
                        }
                    }
                }
            }
        }
    });
}

/// LIMIT-CHANGE-1 in a subtle case: bursty policies of nearly the same rate, whose curves cross
/// late, under a long flood.
#[test]
fn crossing_curves_of_nearly_one_rate_hold_in_long_windows() {
    let mut tested = 0;
    for timing in [LimitTiming::Eager, LimitTiming::Lazy, LimitTiming::OneShot] {
        for (from, to) in [
            ((10, 100), (6, 59)),
            ((6, 59), (10, 100)),
            ((5, 100), (6, 119)),
            ((6, 119), (5, 100)),
            ((2, 10), (3, 14)),
            ((4, 9), (1, 2)),
        ] {
            let config = |(burst, interval)| Config {
                policy: LimitPolicy::Bursty,
                timing,
                trigger: Trigger::Edge,
                interval,
                lag: 0,
                burst,
            };
            let (from, to) = (config(from), config(to));
            for at in (1..=3 * from.interval).step_by(1 + from.interval as usize / 8) {
                for first in [1, at.saturating_sub(from.interval).max(1), at] {
                    let mut board: Board<W32> = Board::new(&from, START, Mode::Age);
                    for tick in 1..=40 * from.interval {
                        if tick == at {
                            board.advance(board.now + 1);
                            board.expire();
                            (0..20).for_each(|_| board.edge());
                            board.reconfigure(&to);
                            board.expire();
                        } else {
                            board.tick(0, if tick >= first { 20 } else { 0 });
                        }
                    }
                    tested += board.served.len();
                }
            }
        }
    }
    assert!(tested > 10_000);
}

/// LIMIT-CHANGE-2: with any number of changes, the services stay below the curve of the shortest
/// interval with the largest burst. LIMIT-CHANGE-3: afterwards the source is still served.
#[test]
fn several_changes_stay_below_the_loosest_of_them() {
    let all = configs(&[1, 3, 4], &[1, 3], Trigger::Edge);
    all.par_iter().for_each(|from| {
        let same: Vec<&Config> = all
            .iter()
            .filter(|c| (c.policy, c.timing) == (from.policy, from.timing))
            .collect();
        for second in &same {
            for third in &same {
                for gaps in 0..36_u64 {
                    for latency in [0, 1] {
                        let (first_change, second_change) = (1 + gaps / 6, 1 + gaps / 6 + gaps % 6);
                        let mut board: Board<W16> = Board::new(from, START, Mode::Age);
                        board.latency = latency;
                        board.worst_latency = latency;
                        for tick in 1..=20 {
                            board.advance(board.now + 1);
                            board.expire();
                            (0..FLOOD).for_each(|_| board.edge());
                            if tick == first_change {
                                board.reconfigure(second);
                            }
                            if tick == second_change {
                                board.reconfigure(third);
                            }
                            (0..FLOOD).for_each(|_| board.edge());
                            board.expire();
                        }
                        board.drain(80);
                    }
                }
            }
        }
    });
}

/// LIMIT-CHANGE-3: a change at every tick, to the same or to a looser or tighter policy and back,
/// does not starve the source.
#[test]
fn changes_faster_than_the_interval_do_not_starve_the_source() {
    let ticks = if is_long() { 1_000 } else { 300 };
    for config in configs(&[10], &[1, 4], Trigger::Edge) {
        let burst = if config.burst == 1 {
            1
        } else {
            config.burst + 2
        };
        // In each pair one of the two curves lies above the other.
        let others = [
            config,
            Config {
                interval: 13,
                ..config
            },
            Config { burst, ..config },
            Config {
                interval: 7,
                burst,
                ..config
            },
        ];
        for other in others {
            let mut board: Board<W16> = Board::new(&config, START, Mode::Age);
            for tick in 0..ticks {
                board.tick(0, FLOOD);
                board.reconfigure(if tick % 2 == 0 { &other } else { &config });
                board.expire();
            }
            let least = ticks / config.interval.max(other.interval);
            assert!(
                board.served.len() as u64 >= least,
                "{} served, at least {least}: {}",
                board.served.len(),
                board.story()
            );
        }
    }
}

/// LIMIT-CHANGE-4: an invalid change is rejected and changes nothing. The same holds for a change
/// of policy, timing or trigger.
#[test]
fn a_bad_change_changes_nothing() {
    let config = Config {
        policy: LimitPolicy::Bucket,
        timing: LimitTiming::Lazy,
        trigger: Trigger::Edge,
        interval: 100,
        lag: 0,
        burst: 4,
    };
    let bad = [
        (
            Config {
                interval: 0,
                ..config
            },
            ConfigError::Interval,
        ),
        (
            Config {
                interval: 0x8000 / 4,
                ..config
            },
            ConfigError::Interval,
        ),
        (
            Config {
                interval: 0x1_0000 + 100,
                ..config
            },
            ConfigError::Interval,
        ),
        (Config { burst: 0, ..config }, ConfigError::Burst),
        (Config { lag: 1, ..config }, ConfigError::Lag),
        (
            Config {
                timing: LimitTiming::OneShot,
                ..config
            },
            ConfigError::Policy,
        ),
        (
            Config {
                timing: LimitTiming::Eager,
                ..config
            },
            ConfigError::Change,
        ),
        (
            Config {
                trigger: Trigger::Level,
                ..config
            },
            ConfigError::Change,
        ),
        (
            Config {
                policy: LimitPolicy::Strict,
                burst: 1,
                ..config
            },
            ConfigError::Change,
        ),
    ];
    for (to, error) in bad {
        let (mut limiter, _) = Limiter::<W16>::start(&config, 7).expect("valid");
        let mut same = limiter.clone();
        assert_eq!(limiter.reconfigure(&to, 8), Err(error), "{to:?}");
        for now in [8, 9, 10, 11, 12, 13] {
            assert_eq!(limiter.request(now, false), same.request(now, false));
        }
    }
}

/// LIMIT-CHANGE-3: however many tokens the old bucket lacked, the next request is served within
/// half a wrap, at 16 bits.
#[test]
fn a_large_debt_does_not_overflow_narrow_ticks() {
    let bucket = |interval, burst| Config {
        policy: LimitPolicy::Bucket,
        timing: LimitTiming::Eager,
        trigger: Trigger::Edge,
        interval,
        lag: 0,
        burst,
    };
    for (from, to) in [
        (bucket(1, 255), bucket(10_000, 1)),
        (bucket(100, 255), bucket(16_000, 1)),
        (bucket(120, 255), bucket(119, 1)),
        (bucket(2, 200), bucket(1, 199)),
    ] {
        let mut board: Board<W16> = Board::new(&from, START, Mode::Age);
        board.tick(0, 400);
        board.reconfigure(&to);
        let changed = board.now;
        board.edge();
        board.drain(0x8000);
        board.advance(changed + 0x8000);
        board.expire();
        board.edge();
        board.drain(0x8000);
    }
}

/// LIMIT-CHANGE-3: a token debt that is too large for the tick width is capped and does not wrap. A
/// wrapped value would serve a request at once.
#[test]
fn a_debt_that_the_ticks_cannot_tell_still_is_a_debt() {
    let bucket = |interval, burst| Config {
        policy: LimitPolicy::Bucket,
        timing: LimitTiming::Eager,
        trigger: Trigger::Edge,
        interval,
        lag: 0,
        burst,
    };
    for interval in (1_000..16_000).step_by(77) {
        let mut board: Board<W16> = Board::new(&bucket(120, 255), START, Mode::Age);
        board.tick(0, 300);
        board.reconfigure(&bucket(119, 1));
        board.reconfigure(&bucket(interval, 1));
        let served = board.served.len();
        board.edge();
        board.expire();
        assert_eq!(board.served.len(), served, "{}", board.story());
        board.drain(0x8000);
    }
}

/// LIMIT-CHANGE-1, LIMIT-TIME-2: the port records that the old bucket is full while a request waits
/// for the user. This record must not fill the new bucket.
#[test]
fn a_note_about_the_old_bucket_does_not_fill_the_new_one() {
    for timing in [LimitTiming::Eager, LimitTiming::Lazy] {
        let bucket = |interval, burst| Config {
            policy: LimitPolicy::Bucket,
            timing,
            trigger: Trigger::Edge,
            interval,
            lag: 0,
            burst,
        };
        let mut board: Board<W16> = Board::new(&bucket(47, 7), START, Mode::Watch);
        board.tick(0, 1);
        board.user_disable_in_a_race();
        board.advance(board.now + 1_000);
        board.expire();
        board.reconfigure(&bucket(199, 15));
        board.user_enable();
        board.expire();
        (0..20).for_each(|_| board.edge());
        assert_eq!(board.served.len(), 1 + 7, "{}", board.story());
        board.drain(20 * 199);
    }
}
