// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests random groups of ports/cortex-m on the board mps2-an385: one to eight sources with any
//! policies under simultaneous random floods. Some groups have a user, changes, or a tick instead
//! of the timer. Each source is compared with its own limiter of core/, event by event
//! (LIMIT-SHARED-1 and -2).

use std::collections::BTreeSet;

use crate::cortex::events::{
    Event, INTERVALS, Kind, LATENCY, judge_curve, judge_expiries, judge_taken, parse, replay, told,
};
use crate::cortex::{DIVISORS, Limit, PER_TICK, can_run, compile, storm};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use weir_core_sys::{Action, Bare, Config, LimitPolicy, W32};
use weir_emulate::run::LineStimulus;

const SOURCE: &str = "ports/cortex-m/tests/limited.c";
/// The number of groups that are tried of each kind.
const SEEDS: u64 = 8;
/// The number of groups of each kind in the short form.
const FEW_SEEDS: u64 = 3;
/// The most instructions for which a call in the thread delays the group.
const CALL: u64 = 600;

/// What else acts on the sources of a group, in addition to their floods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    Nothing,
    User,
    Changes,
    Ticks,
}

#[derive(Debug)]
struct Group {
    limits: Vec<Limit>,
    around: Around,
    /// The iterations of a loop in each handler, with at most eight instructions each.
    work: u64,
    floods: Vec<LineStimulus>,
    /// The number of ticks after which the run ends.
    last: u64,
    /// Whether the timer wraps in the middle of the run (LIMIT-TIME-1).
    wraps: bool,
}

impl Group {
    fn new(around: Around, seed: u64) -> Self {
        let random = &mut ChaCha12Rng::seed_from_u64(seed);
        let (divisor, usual) = DIVISORS[random.random_range(0..DIVISORS.len())];
        let kinds: Vec<Limit> = Limit::all();
        let kinds: Vec<&Limit> = kinds
            .iter()
            .filter(|kind| kind.divisor == divisor)
            .collect();
        let limits: Vec<Limit> = (0..random.random_range(1..=8))
            .map(|_| {
                let config = kinds[random.random_range(0..kinds.len())].config;
                let counts = matches!(config.policy, LimitPolicy::Bursty | LimitPolicy::Bucket);
                Limit {
                    config: Config {
                        interval: random.random_range(usual / 2..=usual * 4),
                        burst: if counts {
                            random.random_range(1..=9)
                        } else {
                            1
                        },
                        ..config
                    },
                    divisor,
                }
            })
            .collect();
        let last = INTERVALS * usual;
        let end = last * divisor * PER_TICK;
        // All lines request at the same instants, or each at its own.
        let alike = random.random_bool(0.3);
        let floods = limits.iter().enumerate().map(|(index, limit)| {
            let seed = if alike {
                seed
            } else {
                100 * seed + index as u64
            };
            let interval = if alike { usual } else { limit.config.interval };
            storm(
                &format!("IRQ{}", 20 + index),
                interval * limit.tick(),
                seed,
                end,
            )
        });
        Self {
            floods: floods.collect(),
            work: [0, 0, 30][random.random_range(0..3)],
            limits,
            around,
            last,
            wraps: random.random_bool(0.5),
        }
    }

    fn defines(&self) -> Vec<String> {
        let count = self.limits.len();
        let join = |prefix: &str| {
            (1..count).fold(format!("{prefix}0"), |text, n| {
                format!("{text},{prefix}{n}")
            })
        };
        let tick = self.limits[0].tick();
        let mut all = vec![
            format!("SOURCES={}", join("")),
            format!("MEMBERS={}", join("source")),
            format!("DIVISOR={}", self.limits[0].divisor),
            format!("LAST={}", self.last),
            format!("WORK={}", self.work),
            "WEIR_LIMIT_RECORD=0".to_owned(),
        ];
        all.extend(
            self.limits
                .iter()
                .enumerate()
                .map(|(index, limit)| limit.initialiser(&format!("LIMIT{index}"))),
        );
        if self.wraps {
            all.push(format!("BEFORE_WRAP={}", self.last / 2));
        }
        let usual = self.last / INTERVALS;
        match self.around {
            Around::Nothing => {}
            Around::User => all.push(format!("USER={}", usual * tick / 40)),
            Around::Changes => {
                // Some policies reject bursts above 1.
                let pairs = format!("CHANGES={{{usual}, 1}}, {{{}, 1}}", usual * 5 / 2);
                all.extend([pairs, format!("PAUSE={}", usual * tick / 40)]);
            }
            Around::Ticks => all.push(format!("TICKED={}", self.period())),
        }
        all
    }

    /// Returns the cycles between two ticks.
    fn period(&self) -> u64 {
        self.last / INTERVALS * self.limits[0].divisor / 5
    }

    /// Returns the greatest lateness of an expiry in ticks. Before it, every source may run its
    /// burst, and an expiry may serve each source.
    fn latest(&self) -> u64 {
        let runs: u64 = self
            .limits
            .iter()
            .map(|limit| u64::from(limit.config.burst) + 1)
            .sum();
        let ticked = match self.around {
            Around::Ticks => self.period() * PER_TICK,
            _ => 0,
        };
        let call = if self.around == Around::Nothing {
            0
        } else {
            CALL
        };
        (runs * (LATENCY + 8 * self.work) + ticked + call).div_ceil(self.limits[0].tick()) + 1
    }

    /// Runs the firmware and checks every event. Returns how often two sources were served in one
    /// interrupt of the timer.
    fn hold(&self, what: &str) -> u64 {
        let elf = compile(SOURCE, &self.defines()).unwrap_or_else(|error| panic!("{error}"));
        let counters: Vec<String> = (0..self.limits.len())
            .map(|n| format!("served{n}"))
            .collect();
        let counters: Vec<&str> = counters.iter().map(String::as_str).collect();
        let cycles = self.last * self.limits[0].tick();
        let result = told(&elf, &self.floods, &counters, cycles);
        let events = parse(&result.said);
        let late = self.latest();
        for (index, limit) in self.limits.iter().enumerate() {
            let what = format!("{what}, source {index} of {self:?}");
            let own = events.iter().filter(|event| event.source == index);
            let own: Vec<Event> = own.copied().collect();
            let config = &limit.config;
            replay::<Bare<W32>>(config, &own, &what);
            // While the user delays a due request, a paced limiter may be late by up to an
            // interval.
            let jitter = match self.around {
                Around::User => config.interval - 1,
                _ => late,
            };
            let served = judge_curve(config, &own, jitter, &what);
            assert_eq!(result.counters[counters[index]], served as u64, "{what}");
            judge_expiries(&own, late, &what);
            judge_taken(&own, &what);
            assert!(served > 5, "{what}: only {served} served");
        }
        together(&events)
    }
}

/// Returns how often an interrupt of the timer served two sources or more.
fn together(events: &[Event]) -> u64 {
    let served = events
        .iter()
        .filter(|event| event.kind == Kind::Tick && event.has(Action::Serve));
    let mut seen = BTreeSet::new();
    served.map(|event| u64::from(!seen.insert(event.now))).sum()
}

#[test]
fn cortex_m_groups_keep_each_source_of_them_under_random_floods() {
    if !can_run() {
        return;
    }
    let all = [
        Around::Nothing,
        Around::User,
        Around::Changes,
        Around::Ticks,
    ];
    let seeds = if crate::is_long() { SEEDS } else { FEW_SEEDS };
    let cases: Vec<(Around, u64)> = all
        .iter()
        .flat_map(|&around| (0..seeds).map(move |seed| (around, seed)))
        .collect();
    let together: u64 = cases
        .into_par_iter()
        .map(|(around, seed)| {
            Group::new(around, 10 * seed + around as u64).hold(&format!("{around:?} {seed}"))
        })
        .sum();
    assert!(
        together > 13 * seeds,
        "expiries of several sources at once: {together}"
    );
}
