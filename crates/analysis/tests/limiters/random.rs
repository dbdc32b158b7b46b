// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random systems of limited sources.

use std::ops::RangeInclusive;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use weir_core_sys::Trigger;
use weir_model::{
    EventCosts, Expiry, Interval, Limit, Nesting, Place, Policy, Source, System, TaskModel, Timer,
    Timing,
};

use super::processor::Habits;
use crate::common::{cost, cpu, level, no_limit, source, system, task};

/// Every limiter that core/ has, and polling.
pub const LIMITERS: [(Policy, Timing); 10] = [
    (Policy::Strict, Timing::Eager),
    (Policy::Strict, Timing::Lazy),
    (Policy::Paced, Timing::Eager),
    (Policy::Paced, Timing::Lazy),
    (Policy::Bursty, Timing::Eager),
    (Policy::Bursty, Timing::Lazy),
    (Policy::Bursty, Timing::OneShot),
    (Policy::Bucket, Timing::Eager),
    (Policy::Bucket, Timing::Lazy),
    (Policy::Poll, Timing::Eager),
];

/// A system, the behaviour of its parts, and the least cycles between two requests of each source.
#[derive(Debug)]
pub struct Case {
    pub system: System,
    pub habits: Habits,
    pub interarrival: Vec<u64>,
}

/// The sources of a system. One or two tasks are added to them.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// One source with this limiter, and sometimes one without a limit.
    Alone(Policy, Timing),
    /// Several sources, each with any limiter.
    Mixed,
    /// Several bursty sources that one timer clears.
    Shared,
}

/// The ranges of a system's numbers, in cycles.
pub struct Sizes {
    /// The cost of an interrupt without the handler's body.
    pub event: RangeInclusive<u64>,
    /// The cost of a handler's body.
    pub body: RangeInclusive<u64>,
    /// The interval of a limit, per request that the limit allows.
    pub interval: RangeInclusive<u64>,
    /// The ticks that a limit's timer can have.
    pub ticks: &'static [u64],
    /// The longest instruction of the main program.
    pub instruction: RangeInclusive<u64>,
    /// The longest time for which the main program disables interrupts.
    pub section: RangeInclusive<u64>,
    /// The cost of a task, and its period.
    pub task: RangeInclusive<u64>,
    pub period: RangeInclusive<u64>,
}

/// Numbers that are small enough for a random search to find the worst case.
pub const SMALL: Sizes = Sizes {
    event: 1..=5,
    body: 1..=8,
    interval: 16..=60,
    ticks: &[1, 1, 2, 4],
    instruction: 0..=3,
    section: 0..=8,
    task: 5..=40,
    period: 200..=800,
};

/// Bursts and bodies that are so large that an interval passes while an interrupt waits.
pub const CROWDED: Sizes = Sizes {
    event: 1..=2,
    body: 2..=14,
    interval: 18..=30,
    ticks: &[1],
    instruction: 0..=1,
    section: 0..=2,
    task: 1..=5,
    period: 2000..=4000,
};

/// Numbers like those of the ATmega128 (boards/atmega128/costs.toml).
pub const BOARD: Sizes = Sizes {
    event: 25..=180,
    body: 50..=400,
    interval: 4_000..=20_000,
    ticks: &[8, 64],
    instruction: 4..=4,
    section: 0..=60,
    task: 2_000..=20_000,
    period: 60_000..=150_000,
};

fn limit(rng: &mut ChaCha8Rng, (policy, timing): (Policy, Timing), sizes: &Sizes) -> Limit {
    let counts = matches!(policy, Policy::Bursty | Policy::Bucket);
    let tick = sizes.ticks[rng.random_range(0..sizes.ticks.len())];
    let burst = if counts { rng.random_range(1..=3) } else { 1 };
    let mut event = || rng.random_range(sizes.event.clone());
    let polls = policy == Policy::Poll;
    let costs = EventCosts {
        request_served: if polls { 0 } else { event() },
        request_refused: if timing == Timing::Lazy { event() } else { 0 },
        expiry_served: event(),
        expiry_empty: event(),
    };
    let periods = if policy == Policy::Bursty {
        u64::from(burst)
    } else {
        1
    };
    let interval = periods * rng.random_range(sizes.interval.clone());
    Limit {
        policy,
        timing,
        place: Place::Software,
        interval: Interval {
            ticks: interval.div_ceil(tick),
            tick,
        },
        bits: 16,
        burst,
        lag: 0,
        expiry: None,
        silicon: None,
        costs,
    }
}

fn limited(
    rng: &mut ChaCha8Rng,
    kind: (Policy, Timing),
    orders: &mut Vec<u32>,
    sizes: &Sizes,
) -> Source {
    let mut limit = limit(rng, kind, sizes);
    let mut order = || orders.swap_remove(rng.random_range(0..orders.len()));
    let (line, timer) = (order(), order());
    limit.expiry = Some(Expiry::Own {
        channel: "TIMER".into(),
        level: level(0, timer),
    });
    let interarrival = match rng.random_range(0..4) {
        0 => None,
        1 => Some(rng.random_range(1..=limit.interval.cycles())),
        2 => Some(rng.random_range(limit.interval.cycles()..=limit.interval.cycles() + 30)),
        _ => Some(rng.random_range(1..=10)),
    };
    source(
        level(0, line),
        rng.random_range(sizes.body.clone()),
        interarrival,
        limit,
    )
}

fn unlimited(rng: &mut ChaCha8Rng, orders: &mut Vec<u32>, sizes: &Sizes) -> Source {
    let order = orders.swap_remove(rng.random_range(0..orders.len()));
    let limit = Limit {
        costs: EventCosts {
            request_served: rng.random_range(sizes.event.clone()),
            ..EventCosts::default()
        },
        ..no_limit()
    };
    let interarrival = rng.random_range(*sizes.interval.end()..=4 * sizes.interval.end());
    source(
        level(0, order),
        rng.random_range(sizes.body.clone()),
        Some(interarrival),
        limit,
    )
}

fn share(rng: &mut ChaCha8Rng, system: &mut System, orders: &mut Vec<u32>, sizes: &Sizes) {
    let order = orders.swap_remove(rng.random_range(0..orders.len()));
    let tick = sizes.ticks[rng.random_range(0..sizes.ticks.len())];
    let period = 3 * rng.random_range(sizes.interval.clone());
    let period = Interval {
        ticks: period.div_ceil(tick),
        tick,
    };
    // The port's lean flavour only unmasks in the timer's interrupt; the general flavour also
    // serves there.
    let serves = rng.random_bool(0.5);
    for source in &mut system.sources {
        source.limit.expiry = Some(Expiry::Shared(0));
        source.limit.interval = period;
        if !serves {
            source.limit.costs.expiry_served = 0;
        }
    }
    system.timers.push(Timer {
        name: "shared".into(),
        channel: "TIMER".into(),
        level: level(0, order),
        period,
        base: rng.random_range(sizes.event.clone()),
    });
}

/// The cycle of its interrupts in which the source's limiter reads its timer, and the cycle in
/// which a one-shot that is set short may already be served.
fn reads(rng: &mut ChaCha8Rng, limit: &mut Limit) -> (u64, u64) {
    let costs = limit.costs;
    let least = |a: u64, b: u64| if a == 0 || b == 0 { a.max(b) } else { a.min(b) };
    let request = rng.random_range(0..=least(costs.request_served, costs.request_refused));
    let expiry = rng.random_range(0..=least(costs.expiry_served, costs.expiry_empty));
    if limit.policy == Policy::Strict && limit.timing == Timing::Eager && rng.random_bool(0.5) {
        limit.lag = u32::try_from(expiry / limit.interval.tick).expect("small");
    }
    (request, expiry)
}

/// A random case.
pub fn case(rng: &mut ChaCha8Rng, shape: Shape, sizes: &Sizes) -> Case {
    let mut orders: Vec<u32> = (0..20).collect();
    let mut system = system(cpu(Nesting::Flat, TaskModel::Preemptive));
    system.cpu.longest_instruction = rng.random_range(sizes.instruction.clone());
    system.cpu.critical_section = cost(rng.random_range(sizes.section.clone()));
    match shape {
        Shape::Alone(policy, timing) => {
            system
                .sources
                .push(limited(rng, (policy, timing), &mut orders, sizes));
        }
        Shape::Mixed => {
            for _ in 0..rng.random_range(2..=3) {
                let kind = LIMITERS[rng.random_range(0..LIMITERS.len())];
                system.sources.push(limited(rng, kind, &mut orders, sizes));
            }
        }
        Shape::Shared => {
            for _ in 0..rng.random_range(1..=3) {
                let kind = (Policy::Bursty, Timing::Eager);
                system.sources.push(limited(rng, kind, &mut orders, sizes));
            }
            share(rng, &mut system, &mut orders, sizes);
        }
    }
    if rng.random_bool(0.4) {
        system.sources.push(unlimited(rng, &mut orders, sizes));
    }
    for urgency in 0..rng.random_range(1..=2) {
        let wcet = rng.random_range(sizes.task.clone());
        let period = rng.random_range(sizes.period.clone());
        system.receivers.push(task(urgency, wcet, period, 0));
    }
    let reads = system
        .sources
        .iter_mut()
        .map(|of| reads(rng, &mut of.limit));
    let reads = reads.collect();
    let count = system.sources.len();
    let triggers = [
        Trigger::Edge,
        Trigger::Edge,
        Trigger::EdgeUnlatched,
        Trigger::Level,
    ];
    let habits = Habits {
        reads,
        triggers: (0..count)
            .map(|source| {
                if system.sources[source].limit.policy == Policy::Poll {
                    Trigger::Edge
                } else {
                    triggers[rng.random_range(0..triggers.len())]
                }
            })
            .collect(),
        starts: (0..count).map(|_| rng.random_range(1..=40)).collect(),
        instruction: rng.random_range(0..=system.cpu.longest_instruction),
    };
    let interarrival = system
        .sources
        .iter()
        .map(|of| {
            of.rates.worst.map_or(1, |rate| {
                rate.period_cycles(system.cpu.clock_hz).floor() as u64
            })
        })
        .collect();
    Case {
        system,
        habits,
        interarrival,
    }
}
