// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows the failures that regehr2005 warns of, and one that the paper overlooks. The paper's
//! algorithms, implemented literally, fail here; the limiter of core/ does not.

use crate::board::{Board, Mode};
use weir_core_sys::{Config, LimitPolicy, LimitTiming, Trigger, W16, W32};

/// The bursty scheduler of §3.3 with its optimisation, implemented literally: the interrupt of a
/// periodic timer is enabled only while the source is masked.
struct Literal {
    burst: u64,
    period: u64,
    /// Whether the timer's pending bit is cleared just before its interrupt is enabled, as §3.3
    /// says is necessary.
    clears_pending_bit: bool,
    count: u64,
    enabled: bool,
    pending: bool,
    timer_enabled: bool,
    timer_pending: bool,
    served: Vec<u64>,
    lost: u64,
}

impl Literal {
    fn new(burst: u64, period: u64, clears_pending_bit: bool) -> Self {
        Literal {
            burst,
            period,
            clears_pending_bit,
            count: 0,
            enabled: true,
            pending: false,
            timer_enabled: false,
            timer_pending: false,
            served: Vec::new(),
            lost: 0,
        }
    }

    fn request(&mut self, now: u64) {
        if self.pending {
            self.lost += 1;
        }
        self.pending = true;
        self.interrupts(now);
    }

    /// The timer sets its pending bit once per period, whether its interrupt is enabled or not.
    fn time(&mut self, now: u64) {
        self.timer_pending |= now % self.period == 0;
        self.interrupts(now);
    }

    fn interrupts(&mut self, now: u64) {
        loop {
            if self.timer_enabled && self.timer_pending {
                self.timer_pending = false;
                self.timer_enabled = false;
                self.count = 0;
                self.enabled = true;
            } else if self.enabled && self.pending {
                self.pending = false;
                self.count += 1;
                self.served.push(now);
                if self.count >= self.burst {
                    self.enabled = false;
                    if self.clears_pending_bit {
                        self.timer_pending = false;
                    }
                    self.timer_enabled = true;
                }
            } else {
                return;
            }
        }
    }
}

fn bursty(timing: LimitTiming, interval: u64, burst: u8) -> Config {
    Config {
        policy: LimitPolicy::Bursty,
        timing,
        trigger: Trigger::Edge,
        interval,
        lag: 0,
        burst,
    }
}

/// Returns the most requests served within `window` ticks.
fn densest(served: &[u64], window: u64) -> usize {
    served
        .iter()
        .enumerate()
        .map(|(i, first)| {
            served[i..]
                .iter()
                .take_while(|&last| last - first <= window)
                .count()
        })
        .max()
        .unwrap_or(0)
}

/// §3.3: "a bad case where three back-to-back bursts of device interrupts could otherwise occur"
/// (LIMIT-BURSTY-1).
#[test]
fn three_bursts_back_to_back_need_the_pending_bit_to_be_left_set() {
    let (burst, period) = (4, 100);
    let flood = |literal: &mut Literal| {
        // The source is idle for some periods. It is then flooded around the end of a period.
        for now in 1..=520 {
            literal.time(now);
            if (496..505).contains(&now) {
                (0..2 * burst).for_each(|_| literal.request(now));
            }
        }
    };
    let mut without = Literal::new(burst, period, false);
    flood(&mut without);
    assert_eq!(
        densest(&without.served, 9),
        12,
        "three bursts without clearing the bit"
    );
    let mut with = Literal::new(burst, period, true);
    flood(&mut with);
    assert_eq!(densest(&with.served, 9), 8, "two with it");

    for timing in [LimitTiming::Eager, LimitTiming::Lazy, LimitTiming::OneShot] {
        for mode in [Mode::Watch, Mode::Age] {
            for from in 1..=300 {
                let mut board: Board<W16> =
                    Board::new(&bursty(timing, period, burst as u8), 0x1_0000 - 250, mode);
                for now in 1..=520 {
                    board.tick(
                        0,
                        if (from..from + 9).contains(&now) || now >= 496 {
                            2 * burst as u32
                        } else {
                            0
                        },
                    );
                }
                let served: Vec<u64> = board.served.iter().map(|served| served.at).collect();
                assert!(densest(&served, 9) <= 8, "{}", board.story());
            }
        }
    }
}

/// The optimisation of §3.3 never clears its count while the count is below the threshold. So each
/// `burst` requests, however far apart, mask the source until the period ends, and requests below
/// the limit are lost. The limiter of core/ loses none (LIMIT-LOSS-1).
#[test]
fn the_papers_optimisation_loses_requests_below_the_limit() {
    // Ticks have 4 MHz. The limit is 16 requests in 4 ms; requests come at 3 kHz for one second.
    let (burst, period, gap, second) = (16, 16_000, 1_333, 4_000_000);
    let mut literal = Literal::new(burst, period, true);
    let mut next = 100;
    for now in 1..=second {
        literal.time(now);
        if now == next {
            literal.request(now);
            next += gap;
        }
    }
    let offered = second / gap;
    assert!(
        literal.lost > offered / 4,
        "the literal algorithm loses a third: {} of {offered}",
        literal.lost
    );

    for timing in [LimitTiming::Eager, LimitTiming::Lazy, LimitTiming::OneShot] {
        let mut board: Board<W32> = Board::new(
            &bursty(timing, period, burst as u8),
            u64::from(u32::MAX) - 1_000_000,
            Mode::Age,
        );
        board.worst_latency = 200;
        board.latency = 200;
        for request in 0..offered {
            board.advance(board.start + 100 + request * gap);
            board.expire();
            board.edge();
        }
        assert_eq!(
            (board.lost, board.served.len() as u64),
            (0, offered),
            "{timing:?}"
        );
        if timing == LimitTiming::Lazy {
            assert_eq!(board.expiries, 0, "LIMIT-LAZY-1");
        }
    }
}

fn flooded(config: &Config, latency: u64, ticks: u64) -> Board<W16> {
    let mut board: Board<W16> = Board::new(config, 0xff00, Mode::Age);
    board.latency = latency;
    board.worst_latency = latency;
    for _ in 0..ticks {
        board.tick(0, 1);
    }
    board
}

/// LIMIT-STRICT-2: in overload at least T/(T+L) of the limit is served. All of it is served if the
/// one-shot timer is set early by the latency.
#[test]
fn a_strict_limiter_loses_only_its_latency_in_overload() {
    for (timing, latency, lag) in [
        (LimitTiming::Eager, 0, 0),
        (LimitTiming::Eager, 7, 0),
        (LimitTiming::Eager, 7, 7),
        (LimitTiming::Lazy, 7, 0),
    ] {
        let config = Config {
            policy: LimitPolicy::Strict,
            timing,
            trigger: Trigger::Edge,
            interval: 100,
            lag,
            burst: 1,
        };
        let board = flooded(&config, latency, 10_700);
        let least = 10_700 / (100 + latency - lag);
        assert!(
            board.served.len() as u64 >= least,
            "{} served, at least {least}",
            board.served.len()
        );
        assert!(
            board
                .served
                .windows(2)
                .all(|pair| pair[1].at - pair[0].at >= 100),
            "LIMIT-STRICT-1"
        );
    }
}

/// LIMIT-PACED-2: in overload the long-run rate is exactly 1/T, whatever the latency.
#[test]
fn a_paced_limiter_keeps_its_exact_rate_in_overload() {
    for timing in [LimitTiming::Eager, LimitTiming::Lazy] {
        let config = Config {
            policy: LimitPolicy::Paced,
            timing,
            trigger: Trigger::Edge,
            interval: 100,
            lag: 0,
            burst: 1,
        };
        for latency in [0, 7, 99] {
            let mut board = flooded(&config, latency, 5_000);
            for late in 0..5_000 {
                board.latency = late % (latency + 1);
                board.tick(0, 1);
            }
            assert_eq!(board.served.len(), 100, "latency {latency}");
        }
    }
}

/// LIMIT-BUCKET-2, LIMIT-BURSTY-3: checks the long-run rate in overload with timer latency.
#[test]
fn a_bucket_and_a_bursty_limiter_keep_their_rate_in_overload() {
    for (policy, timing) in [
        (LimitPolicy::Bucket, LimitTiming::Eager),
        (LimitPolicy::Bucket, LimitTiming::Lazy),
        (LimitPolicy::Bursty, LimitTiming::Eager),
        (LimitPolicy::Bursty, LimitTiming::Lazy),
        (LimitPolicy::Bursty, LimitTiming::OneShot),
    ] {
        for latency in [0, 7, 40] {
            let config = Config {
                policy,
                timing,
                trigger: Trigger::Edge,
                interval: 50,
                lag: 0,
                burst: 4,
            };
            let board = flooded(&config, latency, 9_100);
            let per_interval = if policy == LimitPolicy::Bucket { 1 } else { 4 };
            // The one-shot timer starts at a service. Its period is longer by the latency and,
            // here, by the tick until the next request.
            let period = if timing == LimitTiming::OneShot {
                50 + latency + 1
            } else {
                50
            };
            let least = per_interval * (9_100 / period - 1);
            assert!(
                board.served.len() as u64 >= least,
                "{} served, at least {least}: {policy:?} {timing:?} {latency}",
                board.served.len()
            );
        }
    }
}

/// LIMIT-OVERLOAD-1: a refused request costs nothing while the source is masked. In overload a
/// strict or paced limiter takes one timer interrupt per request served and no interrupt of the
/// source.
#[test]
fn a_refused_request_costs_no_interrupt() {
    for policy in [LimitPolicy::Strict, LimitPolicy::Paced, LimitPolicy::Bucket] {
        for timing in [LimitTiming::Eager, LimitTiming::Lazy] {
            let config = Config {
                policy,
                timing,
                trigger: Trigger::Edge,
                interval: 50,
                lag: 0,
                burst: 1,
            };
            let board = flooded(&config, 0, 5_000);
            assert!(board.refused <= 1, "{}", board.refused);
            assert!(
                board.expiries as usize <= board.served.len(),
                "{} {}",
                board.expiries,
                board.served.len()
            );
            assert!(board.lost > 4_000);
        }
    }
}
