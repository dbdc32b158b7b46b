// SPDX-License-Identifier: GPL-3.0-or-later
//! Compares the `fast` flavour of ports/avr with core/, event by event, for strict and bursty. (Its
//! bucket repeatedly postpones instants that are too near by a tick or two; contracts.rs checks the
//! result.)
//!
//! The port reads no clock. Its timer is restarted, and the compare flag tells that an interval has
//! passed. The limiter of core/ gets the ticks since the last restart. Two things differ by design,
//! and each difference is bounded here:

use crate::port::history::{Episode, History, Kind, channel, history};
use crate::port::{Flavour, Limit, build, flood, trace};
use rayon::prelude::*;
use weir_core_sys::{Action, LimitPolicy, LimitTiming, Limiter, W16};

/// The duration of a run: 0.5 s of the board's time, in cycles.
const CYCLES: u64 = 2_000_000;
/// The uncertainty of the port's instants, in ticks.
const TOLERANCE: u64 = 2;

/// Ticks since the reset, derived from the last restart of the timer.
struct Clock {
    anchor: (u64, u64),
    prescaler: u64,
}

impl Clock {
    fn at(&self, cycle: u64) -> u64 {
        self.anchor.1 + cycle.saturating_sub(self.anchor.0) / self.prescaler
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decision {
    served: bool,
    acked: bool,
    enabled: bool,
    /// Whether the interrupt of an expiry is armed. `None` for eager timing, whose timer interrupt
    /// is always enabled.
    armed: Option<bool>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    requests: u64,
    held: u64,
    expiries: u64,
    served_by_expiry: u64,
}

struct Replay<'a> {
    limit: &'a Limit,
    limiter: Limiter<W16>,
    armed: bool,
    clock: Clock,
    counts: Counts,
}

impl Replay<'_> {
    fn decide(
        &self,
        limiter: &Limiter<W16>,
        kind: Kind,
        now: u64,
        elapsed: bool,
        pending: bool,
    ) -> (Limiter<W16>, Decision) {
        let mut limiter = limiter.clone();
        let step = match kind {
            Kind::Request => limiter.request(now, elapsed),
            Kind::Expiry => limiter.expired(now, pending),
            Kind::Call(call) => panic!("no call is made: {call:#x}"),
        };
        let decision = Decision {
            served: step.has(Action::Serve),
            acked: step.has(Action::Ack),
            enabled: limiter.is_on(),
            armed: (self.limit.config.timing == LimitTiming::Lazy)
                .then_some(step.has(Action::Arm) || self.armed && !step.has(Action::Disarm)),
        };
        (limiter, decision)
    }

    fn step(&mut self, episode: &Episode) -> Result<(), String> {
        let lazy = self.limit.config.timing == LimitTiming::Lazy;
        let did = Decision {
            served: !episode.served.is_empty(),
            acked: episode.acked,
            enabled: episode.enabled,
            armed: lazy.then_some(episode.armed),
        };
        let now = self.clock.at(episode
            .restarts
            .first()
            .map_or(episode.begin, |restart| restart.0));
        let elapsed = episode.flag.unwrap_or(false);
        // If the flag is set, the interval is over, and the instant matters only as the start of
        // the next interval. If the flag is not set, the decision depends on the instant, which is
        // known only to TOLERANCE ticks. So each possible instant is tried.
        let instants: Vec<u64> = if elapsed {
            vec![now]
        } else {
            (0..=TOLERANCE)
                .flat_map(|ticks| [now - ticks, now + ticks])
                .collect()
        };
        let pending = match (lazy, episode.acked, episode.pending) {
            (false, _, _) => vec![false],
            (_, true, _) => vec![true],
            (_, _, (first, last)) if first == last => vec![first],
            (_, _, (first, last)) => vec![first, last],
        };
        let mut wanted = Vec::new();
        for &instant in &instants {
            for &pending in &pending {
                let (limiter, decision) =
                    self.decide(&self.limiter, episode.kind, instant, elapsed, pending);
                if decision == did && episode.served.len() <= 1 {
                    self.limiter = limiter;
                    self.armed = decision.armed.unwrap_or(false);
                    return Ok(());
                }
                wanted.push((instant, elapsed, pending, decision));
            }
        }
        Err(format!(
            "the port did {did:?} in {episode:?}\nthe machine, given (now, elapsed, pending): {wanted:?}"
        ))
    }
}

fn replay(limit: &Limit, history: &History) -> Counts {
    let start = &history.episodes[0];
    // The timer starts so that its flag is set within a few ticks.
    let (limiter, _) = Limiter::start(&limit.config, 1000).unwrap();
    let mut replay = Replay {
        limit,
        limiter,
        armed: false,
        clock: Clock {
            anchor: (start.end, 1000),
            prescaler: limit.prescaler,
        },
        counts: Counts::default(),
    };
    for (index, episode) in history.episodes[1..].iter().enumerate() {
        if let Err(difference) = replay.step(episode) {
            let before = &history.episodes[(index + 1).saturating_sub(3)..=index];
            panic!("{limit:?}\n{difference}\nbefore: {before:#?}");
        }
        let served = !episode.served.is_empty();
        if episode.kind == Kind::Request {
            replay.counts.requests += 1;
            replay.counts.held += u64::from(!served);
        } else {
            replay.counts.expiries += 1;
            replay.counts.served_by_expiry += u64::from(served);
        }
        if let Some(&(at, _)) = episode.restarts.first() {
            replay.clock.anchor = (at, replay.clock.at(at));
        }
    }
    replay.counts
}

#[test]
fn the_fast_flavour_decides_as_the_machine_does() {
    let mut limits = Vec::new();
    for (channel, prescaler) in [("TIMER0", 8), ("TIMER0", 32), ("TIMER2", 8), ("TIMER2", 64)] {
        limits.push(Limit::new(
            LimitPolicy::Strict,
            LimitTiming::Eager,
            125,
            1,
            channel,
            prescaler,
        ));
        limits.push(Limit::new(
            LimitPolicy::Strict,
            LimitTiming::Lazy,
            125,
            1,
            channel,
            prescaler,
        ));
        limits.push(Limit::new(
            LimitPolicy::Bursty,
            LimitTiming::Lazy,
            240,
            4,
            channel,
            prescaler,
        ));
        limits.push(Limit::new(
            LimitPolicy::Bursty,
            LimitTiming::Lazy,
            130,
            2,
            channel,
            prescaler,
        ));
    }
    limits.into_par_iter().for_each(|limit| {
        let elf = build(&["limited.c"], Flavour::Fast, &limit.defines());
        let mark = if limit.channel == "TIMER2" {
            0x51
        } else {
            0x43
        };
        let mut all = Counts::default();
        for text in limit.floods() {
            let result = trace(&elf, &[flood(&text)], CYCLES);
            let history = history(&result.events, 0, channel(limit.channel), mark);
            let counts = std::panic::catch_unwind(|| replay(&limit, &history))
                .unwrap_or_else(|_| panic!("{text}"));
            all.requests += counts.requests;
            all.held += counts.held;
            all.expiries += counts.expiries;
            all.served_by_expiry += counts.served_by_expiry;
        }
        assert!(
            all.requests > 500 && all.expiries > 50,
            "little happened: {all:?} in {limit:?}"
        );
        if limit.config.timing == LimitTiming::Lazy {
            assert!(
                all.held > 50 && all.served_by_expiry > 50,
                "little happened: {all:?} in {limit:?}"
            );
        }
    });
}
