// SPDX-License-Identifier: MIT OR Apache-2.0
//! A platform and systems for tests.

use weir_model::{
    Cost, Cpu, EventCosts, Level, Limit, Linux, Nesting, Origin, Policy, Rate, Rates, Receiver,
    Source, System, TaskModel, Timing,
};

use crate::tune::platform::{Offer, Platform, Range, SharedOffer, TimerChannel, TimerCounter};

/// The largest number of sources in any test.
const SOURCES: usize = 10;

pub(crate) fn cost(cycles: u64) -> Cost {
    Cost {
        cycles,
        origin: Origin::Declared,
    }
}

fn level(vector: &str, order: u32) -> Level {
    Level {
        vector: vector.to_owned(),
        group: 0,
        order,
    }
}

/// The two 16-bit timers of the ATmega128, with costs near the measured ones.
pub(crate) fn atmega128() -> Platform {
    let ranges = |most| {
        let range = |divisor| Range {
            divisor,
            least: 1,
            most,
        };
        [1, 8, 64, 256, 1024].map(range).to_vec()
    };
    let events = |served, refused, expiry, empty| EventCosts {
        request_served: served,
        request_refused: refused,
        expiry_served: expiry,
        expiry_empty: empty,
    };
    let offer = |policy, timing, costs| Offer {
        policy,
        timing,
        costs: vec![costs; SOURCES],
        lag: 0,
        bits: 16,
        ranges: ranges(16_383),
    };
    let channel = |name: &str, counter, order| TimerChannel {
        name: name.to_owned(),
        timer: None,
        counter,
        level: level(name, order),
        limits: 1,
        clock_cycles: 1,
        own: vec![
            offer(Policy::Strict, Timing::Lazy, events(59, 54, 71, 60)),
            offer(Policy::Bursty, Timing::Lazy, events(66, 60, 100, 97)),
            offer(Policy::Bucket, Timing::Lazy, events(80, 109, 102, 101)),
        ],
        shared: Some(SharedOffer {
            costs: vec![events(43, 0, 0, 12); SOURCES],
            base: 44,
            bits: 16,
            ranges: ranges(65_535),
        }),
    };
    let counter = |name: &str| TimerCounter {
        name: name.to_owned(),
        kind: 0,
    };
    Platform {
        counters: vec![counter("TIMER1"), counter("TIMER3")],
        channels: vec![
            channel("TIMER1A", 0, 12),
            channel("TIMER1B", 0, 13),
            channel("TIMER1C", 0, 24),
            channel("TIMER3A", 1, 26),
            channel("TIMER3B", 1, 27),
            channel("TIMER3C", 1, 28),
        ],
    }
}

pub(crate) fn rate(hertz: f64) -> Rate {
    Rate::from_hertz(hertz).unwrap()
}

/// A source on its own line, in the order of the vectors, without a limit and without a bound on
/// its rate.
pub(crate) fn source(
    number: u32,
    expected: Option<f64>,
    tolerated: Option<f64>,
    handler: u64,
) -> Source {
    Source {
        name: format!("source{number}"),
        level: level(&format!("INT{number}"), number + 1),
        handler: cost(handler),
        work: cost(0),
        max_work: Some(1),
        packet_units: 1,
        rates: Rates {
            expected: expected.map(rate),
            tolerated: tolerated.map(rate),
            worst: None,
            worst_name: None,
        },
        limit: off(),
        deadline: None,
        moderation: None,
        queue: None,
    }
}

pub(crate) fn off() -> Limit {
    Limit {
        bits: 16,
        ..Limit::off(EventCosts {
            request_served: 26,
            ..EventCosts::default()
        })
    }
}

/// A task with a period and a deadline in cycles.
pub(crate) fn receiver(number: u8, period: u64, deadline: u64, wcet: u64) -> Receiver {
    Receiver {
        name: format!("task{number}"),
        urgency: number,
        period: Some(period),
        jitter: 0,
        deadline: Some(deadline),
        wcet: cost(wcet),
        blocking: cost(0),
        critical_section: cost(0),
        backlog: None,
        port: None,
    }
}

pub(crate) fn system(clock_hz: u64, sources: Vec<Source>, receivers: Vec<Receiver>) -> System {
    System {
        name: "test".to_owned(),
        sha256: String::new(),
        cpu: Cpu {
            board: None,
            flavour: None,
            clock_hz,
            nesting: Nesting::Flat,
            longest_instruction: 4,
            critical_section: cost(0),
            context_switch: cost(0),
            tasks: TaskModel::Preemptive,
            unlimited: EventCosts {
                request_served: 26,
                ..EventCosts::default()
            },
            costs_from: String::new(),
            time_slice: None,
        },
        silicon: None,
        sources,
        timers: Vec::new(),
        receivers,
        flows: Vec::new(),
        linux: Linux::default(),
        freertos: None,
    }
}
