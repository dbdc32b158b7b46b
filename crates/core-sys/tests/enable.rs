// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two enable bits (regehr2005 §4): all sequences of requests, races and user actions over a
//! few ticks.

use crate::board::{Board, Mode, configs};
use crate::is_long;
use rayon::prelude::*;
use weir_core_sys::{Config, LimitPolicy, LimitTiming, Limiter, Trigger, W16};

const START: u64 = 0x1_0000 - 3;

#[derive(Clone, Copy, Debug)]
enum Act {
    Nothing,
    Request,
    Disable,
    /// The user disables the source while a request is on its way to the processor.
    DisableInRace,
    Enable,
    /// The user enables and disables the source within one instant.
    EnableAndDisable,
}

const ACTS: [Act; 6] = [
    Act::Nothing,
    Act::Request,
    Act::Disable,
    Act::DisableInRace,
    Act::Enable,
    Act::EnableAndDisable,
];

fn act(board: &mut Board<W16>, act: Act) {
    board.advance(board.now + 1);
    match act {
        Act::Nothing => {}
        Act::Request => board.edge(),
        Act::Disable => board.user_disable(),
        Act::DisableInRace if board.enabled => board.user_disable_in_a_race(),
        Act::DisableInRace => board.user_disable(),
        Act::Enable => board.user_enable(),
        Act::EnableAndDisable => {
            board.user_enable();
            board.user_disable();
        }
    }
    board.expire();
    board.tick_ends();
}

fn every_sequence(board: &Board<W16>, ticks: u32, end: &mut impl FnMut(Board<W16>)) {
    if ticks == 0 {
        end(board.clone());
        return;
    }
    for chosen in ACTS {
        let mut next = board.clone();
        act(&mut next, chosen);
        every_sequence(&next, ticks - 1, end);
    }
}

/// LIMIT-ENABLE-1 to -3: the source is on only while both the user and the limiter want it on.
/// Nothing is served while the user has the source off. Waiting requests are served when the user
/// turns it on again. The curve holds throughout.
#[test]
fn the_limiter_never_overrides_the_user() {
    let triggers = [Trigger::Edge, Trigger::EdgeUnlatched, Trigger::Level];
    let all: Vec<Config> = triggers
        .iter()
        .flat_map(|&trigger| configs(&[2, 3], &[1, 2], trigger))
        .collect();
    all.par_iter().for_each(|config| {
        for latency in [0, 1] {
            for mode in [Mode::Age, Mode::Watch, Mode::Tick(1)] {
                let mut board: Board<W16> = Board::new(config, START, mode);
                board.latency = if mode == Mode::Tick(1) { 0 } else { latency };
                // With paced, a service that the user delays is late by less than one interval.
                board.worst_latency = if config.policy == LimitPolicy::Paced {
                    config.interval - 1
                } else {
                    latency
                };
                let is_modelled = config.policy != LimitPolicy::Paced
                    && (config.policy, config.timing) != (LimitPolicy::Bursty, LimitTiming::Lazy);
                board.exact = board.latency == 0 && is_modelled;
                every_sequence(&board, if is_long() { 6 } else { 5 }, &mut |mut board| {
                    board.advance(board.now + 1);
                    board.user_enable();
                    board.expire();
                    board.drain(8 * (config.interval + 2));
                });
            }
        }
    });
}

/// LIMIT-ENABLE-3: a request that waits for the user longer than a wrap of the ticks is served when
/// the user enables the source. A bucket has been refilled meanwhile.
#[test]
fn a_held_request_survives_a_long_wait_for_the_user() {
    for config in configs(&[100], &[1, 4], Trigger::Edge) {
        for mode in [Mode::Age, Mode::Watch] {
            for away in [
                50_u64, 1_000, 0x7fff, 0x8000, 0x9000, 0xffff, 0x1_8000, 0x2_1234,
            ] {
                let mut board: Board<W16> = Board::new(&config, START, mode);
                board.worst_latency = if config.policy == LimitPolicy::Paced {
                    config.interval - 1
                } else {
                    0
                };
                board.tick(0, u32::from(config.burst));
                board.advance(board.now + 3);
                if board.enabled {
                    board.user_disable_in_a_race();
                } else {
                    board.user_disable();
                    board.race();
                }
                let back = board.now + away;
                board.advance(back);
                board.expire();
                board.user_enable();
                board.expire();
                board.drain(2 * config.interval);
                if away > 1_000 {
                    let last = board.served[board.served.len() - 1];
                    assert_eq!(last.at, back, "{} away {away}", board.story());
                }
                if config.policy == LimitPolicy::Bucket && away > 1_000 && mode == Mode::Age {
                    let before = board.served.len();
                    for _ in 1..config.burst {
                        board.edge();
                    }
                    assert_eq!(
                        board.served.len() - before,
                        usize::from(config.burst) - 1,
                        "the bucket is full: {}",
                        board.story()
                    );
                }
            }
        }
    }
}

/// The failure that regehr2005 §4 warns of: a limiter that owns the enable bit alone sets it from
/// its timer while the user holds the source off.
#[test]
fn a_line_held_off_by_the_user_stays_off_where_the_papers_limiter_enables_it() {
    // The paper's strict scheduler, literally: the prologue clears the enable bit and sets a
    // one-shot timer, whose handler sets the bit (§3.2).
    let mut enable_bit = true;
    let mut one_shot = None;
    let interrupt = |enable_bit: &mut bool, now: u64| {
        *enable_bit = false;
        Some(now + 10)
    };
    one_shot = one_shot.or(interrupt(&mut enable_bit, 1));
    enable_bit = false; // the user's critical section begins at 5
    let mut enabled_under_the_user = false;
    for now in 5..20 {
        if one_shot == Some(now) {
            enable_bit = true;
        }
        enabled_under_the_user |= enable_bit;
    }
    assert!(
        enabled_under_the_user,
        "the literal algorithm shows the race"
    );

    for config in configs(&[10], &[1, 2], Trigger::Edge) {
        let mut board: Board<W16> = Board::new(&config, START, Mode::Age);
        for _ in 0..4 {
            board.tick(0, 3);
        }
        board.user_disable();
        for _ in 0..50 {
            board.tick(0, 1);
            assert!(!board.enabled, "{}", board.story());
        }
        board.user_enable();
        board.drain(40);
    }
}

/// With the policy off, too, a request that is on its way when the user disables the source is
/// kept. The policy limits nothing.
#[test]
fn off_serves_everything_and_obeys_the_user() {
    let config = Config {
        policy: LimitPolicy::Off,
        timing: LimitTiming::Eager,
        trigger: Trigger::Edge,
        interval: 500,
        lag: 0,
        burst: 1,
    };
    let mut board: Board<W16> = Board::new(&config, START, Mode::Age);
    board.tick(0, 3);
    assert_eq!(board.served.len(), 3);
    board.user_disable_in_a_race();
    board.tick(0, 1);
    assert_eq!(board.served.len(), 3, "one held, one pending");
    board.user_enable();
    board.tick(0, 2);
    assert_eq!(
        (board.served.len(), board.enabled),
        (7, true),
        "{}",
        board.story()
    );
    assert_eq!(
        Limiter::<W16>::next(&[&board.limiter], board.now & 0xffff),
        None
    );
}

/// LIMIT-ENABLE-3, LIMIT-TIME-2: the user enables the source, which arms the channel, and disables
/// it before the expiry. The channel then watches again.
#[test]
fn a_users_short_visit_does_not_cost_the_note() {
    for config in configs(&[53], &[1, 11], Trigger::Edge) {
        let mut board: Board<W16> = Board::new(&config, START, Mode::Watch);
        board.worst_latency = if config.policy == LimitPolicy::Paced {
            config.interval - 1
        } else {
            0
        };
        for _ in 0..2 {
            if board.enabled {
                board.user_disable_in_a_race();
            }
            board.user_enable();
            board.advance(board.now + 1);
            board.expire();
        }
        if board.enabled {
            board.user_disable_in_a_race();
        }
        board.user_enable();
        board.user_disable();
        board.advance(board.now + 98_357);
        board.expire();
        board.user_enable();
        board.expire();
        (0..config.burst).for_each(|_| board.edge());
        board.drain(4 * config.interval);
    }
}

/// LIMIT-BURSTY-1: a request that waited for the user, not for the timer, starts a new period,
/// however long ago the last period ended.
#[test]
fn a_request_that_waited_for_the_user_begins_a_whole_period() {
    for config in configs(&[133], &[1, 2], Trigger::Edge) {
        let mut board: Board<W16> = Board::new(&config, START, Mode::Age);
        board.worst_latency = if config.policy == LimitPolicy::Paced {
            config.interval - 1
        } else {
            0
        };
        board.tick(0, 5);
        board.advance(board.now + 540);
        board.expire();
        for _ in 0..config.burst {
            board.edge();
        }
        for _ in 0..200 {
            if board.enabled {
                board.user_disable_in_a_race();
                board.user_enable();
            }
            board.tick(0, 3);
        }
        board.drain(8 * config.interval);
    }
}
