// SPDX-License-Identifier: GPL-3.0-or-later
//! Replays the requests, expiries and calls in the limiter of core/, which must make the same
//! decisions.
use weir_core_sys::{Action, Config, LimitPolicy, LimitTiming, Limiter, W16};

use super::history::{Episode, History, Kind};
use super::{Limit, mark};

/// The ticks of the port's free-running timer, derived from the values that the port itself read.
struct Clock {
    known: (u64, u16),
    prescaler: u64,
}

impl Clock {
    fn at(&self, cycle: u64) -> u16 {
        let (since, value) = self.known;
        let ticks = if cycle >= since {
            (cycle - since) / self.prescaler
        } else {
            0_u64.wrapping_sub((since - cycle).div_ceil(self.prescaler))
        };
        value.wrapping_add(ticks as u16)
    }

    /// Completes a value of which only the low byte was read.
    fn read(&mut self, (cycle, value): (u64, u16), whole: bool) -> u16 {
        let about = self.at(cycle);
        let value = if whole {
            value
        } else {
            // Among the values with this low byte, the one nearest to the clock's estimate is
            // taken. The estimate is wrong by at most a tick.
            let low = value as u8;
            about.wrapping_add(i16::from(low.wrapping_sub(about as u8) as i8) as u16)
        };
        self.known = (cycle, value);
        value
    }
}

/// The visible effects of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decision {
    served: bool,
    acked: bool,
    enabled: bool,
    armed: bool,
    /// The value that the compare register must hold. `None` if the step does not set it.
    at: Option<u16>,
}

/// Counts of a replay, by which a test ensures that it has covered the relevant cases.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub requests: u64,
    pub held: u64,
    pub expiries: u64,
    pub served_by_expiry: u64,
    pub calls: u64,
    /// How often the compare register was set later than the limiter demands, because the instant
    /// was too near.
    pub soon: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.requests += more.requests;
        self.held += more.held;
        self.expiries += more.expiries;
        self.served_by_expiry += more.served_by_expiry;
        self.calls += more.calls;
        self.soon += more.soon;
    }
}

/// The limiter of core/ that runs beside the port.
struct Replay<'a> {
    limit: &'a Limit,
    /// The configuration in force.
    config: Config,
    changes: &'a [Config],
    limiter: Limiter<W16>,
    armed: bool,
    /// The value of the compare register.
    compare: u16,
    /// The accumulated lag of the port's instants behind the limiter's, as found by Self::is_near.
    /// It is used only if the port stores its instants in the compare register alone.
    frame: u16,
    due_in_register: bool,
    clock: Clock,
    counts: Counts,
}

/// Returns the least number of ticks between now and the instant of an armed compare register
/// (lean.h, WEIR_AVR_AT_ONCE).
fn ahead(config: &Config) -> u16 {
    if u64::from(config.burst) * config.interval <= 240 {
        3
    } else {
        16
    }
}

impl Replay<'_> {
    /// Returns the decisions of the limiter for everything that the port may have observed.
    fn decide(
        &self,
        kind: Kind,
        now: u16,
        elapsed: bool,
        pending: bool,
    ) -> (Limiter<W16>, Decision) {
        let mut limiter = self.limiter.clone();
        let now = u64::from(now.wrapping_sub(self.frame));
        let step = match kind {
            Kind::Request => limiter.request(now, elapsed),
            Kind::Expiry => limiter.expired(now, pending),
            Kind::Call(mark::DISABLE) => limiter.user_disable(),
            Kind::Call(mark::ENABLE) => {
                if elapsed {
                    limiter.elapsed();
                }
                limiter.user_enable(now)
            }
            Kind::Call(change @ mark::CHANGE..) => {
                if elapsed {
                    limiter.elapsed();
                }
                let to = &self.changes[usize::from(change - mark::CHANGE)];
                limiter.reconfigure(to, now).unwrap()
            }
            Kind::Call(call) => panic!("no such call: {call:#x}"),
        };
        let decision = Decision {
            served: step.has(Action::Serve),
            acked: step.has(Action::Ack),
            enabled: limiter.is_on(),
            armed: step.has(Action::Arm) || self.armed && !step.has(Action::Disarm),
            at: (step.has(Action::Arm) || step.has(Action::Watch))
                .then_some((step.at as u16).wrapping_add(self.frame)),
        };
        (limiter, decision)
    }

    /// Returns the instants at which the port may have decided: the values that it read, or the
    /// time of the episode if it read none.
    fn instants(&mut self, episode: &Episode) -> Vec<u16> {
        let mut all: Vec<u16> = Vec::new();
        for &count in &episode.counts {
            let whole = count.1 > 0xff || !self.reads_low_bytes_only();
            all.push(self.clock.read(count, whole));
        }
        if self.limit.config.policy == LimitPolicy::Bucket && episode.flag == Some(false) {
            // The bucket became full between the two reads. That instant counts; it is at most this
            // many ticks before the read.
            let most = (30 / self.limit.prescaler + 1) as u16;
            if all
                .first()
                .is_some_and(|read| read.wrapping_sub(self.compare) <= most)
            {
                all.push(self.compare);
            }
        }
        if all.is_empty() {
            let (first, last) = (self.clock.at(episode.begin), self.clock.at(episode.end));
            all.extend([first, last]);
            if episode.flag == Some(false) {
                // The compare flag is set one tick after the match (ATmega128 data sheet,
                // "Timer/Counter Timing Diagrams").
                all.push(first.wrapping_sub(1));
            }
        }
        all.dedup();
        all
    }

    /// Returns whether an instant was too near (or past) to be written in time. The port then used
    /// an instant one margin after a value that it read or, for an expiry of a bursty limiter, one
    /// period later. The limiter's later instants are shifted by the same lag.
    fn is_near(&self, at: u16, episode: &Episode, instants: &[u16]) -> bool {
        let config = &self.config;
        // A thread first tries three ticks, which suffice at any prescaler except 1.
        let margins: &[u16] = match episode.kind {
            Kind::Call(_) => &[3, 16],
            _ => &[ahead(config)],
        };
        let margin = margins[margins.len() - 1];
        // The user enabled the line again before the expiry that the previous call had armed. That
        // expiry is still to come.
        if self.due_in_register && episode.kind == Kind::Call(mark::ENABLE) {
            let most = (200 / self.limit.prescaler) as u16 + margin;
            return (at.wrapping_sub(episode.compare) as i16).unsigned_abs() <= most;
        }
        // An expiry that comes soon, or that came during the call, is not changed (c.h,
        // WEIR_AVR_IS_COMING). Its flag may have been set after it was first read.
        let after = |instant: u16, cycle: u64| instant.wrapping_sub(self.clock.at(cycle)) as i16;
        if matches!(episode.kind, Kind::Call(_))
            && (after(episode.compare, episode.begin) >= -2 || episode.flag == Some(true))
            && after(episode.compare, episode.end) <= 16
            && after(at, episode.end) <= 0
        {
            return true;
        }
        instants.iter().any(|&read| {
            let is_after = |ticks: u16| episode.compare == read.wrapping_add(ticks);
            let is_instead = match (config.policy, episode.kind) {
                (LimitPolicy::Bursty, Kind::Expiry) if self.due_in_register => {
                    is_after(config.interval as u16)
                }
                _ => margins.iter().any(|&ticks| is_after(ticks)),
            };
            is_instead && (at.wrapping_sub(read) as i16) < margin as i16
        })
    }

    /// lean.h reads one byte of the counter if that is enough, and both bytes otherwise. The cycles
    /// of the reads would tell which, but the values suffice.
    fn reads_low_bytes_only(&self) -> bool {
        self.due_in_register && u64::from(self.config.burst) * self.config.interval <= 240
    }

    fn step(&mut self, episode: &Episode) -> Result<(), String> {
        let instants = self.instants(episode);
        let flags = match episode.flag {
            Some(flag) => vec![flag],
            None => vec![false],
        };
        let pending = if episode.pending.0 == episode.pending.1 || episode.acked {
            vec![episode.acked || episode.pending.0]
        } else {
            vec![episode.pending.0, episode.pending.1]
        };
        let did = Decision {
            served: !episode.served.is_empty(),
            acked: episode.acked,
            enabled: episode.enabled,
            armed: episode.armed,
            at: Some(episode.compare),
        };
        let mut wanted = Vec::new();
        for &now in &instants {
            for &flag in &flags {
                for &pending in &pending {
                    let (limiter, decision) = self.decide(episode.kind, now, flag, pending);
                    let soon = decision.at.is_some_and(|at| {
                        at != episode.compare && self.is_near(at, episode, &instants)
                    });
                    let same = Decision {
                        at: did.at,
                        ..decision
                    } == did
                        && (decision.at.is_none() || decision.at == did.at || soon)
                        && episode.served.len() <= 1;
                    if same {
                        if let Kind::Call(change @ mark::CHANGE..) = episode.kind {
                            self.config = self.changes[usize::from(change - mark::CHANGE)];
                        }
                        if let Some(at) = decision.at.filter(|_| soon) {
                            self.counts.soon += 1;
                            if self.due_in_register {
                                self.frame =
                                    self.frame.wrapping_add(episode.compare.wrapping_sub(at));
                            }
                        }
                        self.limiter = limiter;
                        self.armed = decision.armed;
                        return Ok(());
                    }
                    wanted.push((now, flag, pending, decision));
                }
            }
        }
        Err(format!(
            "the port did {did:?} in {episode:?}\nthe machine, given (now, elapsed, pending): {wanted:?}"
        ))
    }
}

/// Returns whether lean.h supports the policy (WEIR_AVR_IS_LEAN).
fn is_lean(config: &Config) -> bool {
    matches!(
        (config.policy, config.timing),
        (LimitPolicy::Strict, _)
            | (
                LimitPolicy::Paced | LimitPolicy::Bursty | LimitPolicy::Bucket,
                LimitTiming::Lazy
            )
    )
}

/// Replays a history. `specialised` is true for a constant limit without a record. `changes` are
/// the limits that TEST_CHANGES lists, from number 0 on.
pub fn replay(
    limit: &Limit,
    specialised: bool,
    changes: &[Config],
    history: &History,
) -> (Counts, Limiter<W16>) {
    let start = &history.episodes[0];
    assert_eq!(
        start.kind,
        Kind::Call(mark::START),
        "the firmware begins with weir_avr_start()"
    );
    let last_count = *start
        .counts
        .last()
        .expect("weir_avr_start() reads the counter");
    // The first clearing by a bursty limiter reveals the starting instant. For other policies that
    // instant does not matter.
    let now = if limit.config.policy == LimitPolicy::Bursty
        && limit.config.timing != LimitTiming::OneShot
    {
        start.compare.wrapping_sub(limit.config.interval as u16)
    } else {
        last_count.1
    };
    assert!(start.enabled, "weir_avr_start() enables the line");
    let (limiter, step) = Limiter::start(&limit.config, u64::from(now)).unwrap();
    assert_eq!(start.armed, step.has(Action::Arm));
    let mut replay = Replay {
        limit,
        config: limit.config,
        changes,
        limiter,
        armed: start.armed,
        compare: start.compare,
        frame: 0,
        due_in_register: specialised && is_lean(&limit.config),
        clock: Clock {
            known: (last_count.0, now),
            prescaler: limit.prescaler,
        },
        counts: Counts::default(),
    };
    for (index, episode) in history.episodes[1..].iter().enumerate() {
        if let Err(difference) = replay.step(episode) {
            let before = &history.episodes[(index + 1).saturating_sub(3)..=index];
            panic!("{limit:?}\n{difference}\nbefore: {before:#?}");
        }
        replay.compare = episode.compare;
        let served = !episode.served.is_empty();
        match episode.kind {
            Kind::Request => {
                replay.counts.requests += 1;
                replay.counts.held += u64::from(!served);
            }
            Kind::Expiry => {
                replay.counts.expiries += 1;
                replay.counts.served_by_expiry += u64::from(served);
            }
            Kind::Call(_) => replay.counts.calls += 1,
        }
    }
    (replay.counts, replay.limiter)
}
