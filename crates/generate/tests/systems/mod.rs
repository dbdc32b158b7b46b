// SPDX-License-Identifier: MIT OR Apache-2.0
//! Systems made in code, for tests: what a system file cannot say (because reading it would refuse
//! it) can be said here.
#![allow(dead_code, reason = "the tests of crates/emulate use a part")]

use weir_model::{
    Cost, Cpu, EventCosts, Expiry, Interval, Level, Limit, Linux, Nesting, Origin, Policy, Rate,
    Rates, Source, System, TaskModel, Timer, Timing,
};

/// A system for the ATmega128 at 4 MHz without sources.
pub fn system(flavour: &str) -> System {
    System {
        name: "test".to_owned(),
        sha256: "0123456789abcdef".repeat(4),
        cpu: Cpu {
            board: Some("atmega128".to_owned()),
            flavour: Some(flavour.to_owned()),
            clock_hz: 4_000_000,
            nesting: Nesting::Flat,
            longest_instruction: 4,
            critical_section: cost(0),
            context_switch: cost(0),
            tasks: TaskModel::Preemptive,
            unlimited: EventCosts::default(),
            costs_from: "a test".to_owned(),
            time_slice: None,
        },
        silicon: None,
        sources: Vec::new(),
        timers: Vec::new(),
        receivers: Vec::new(),
        flows: Vec::new(),
        linux: Linux::default(),
        freertos: None,
    }
}

/// A source at a vector, without a limit.
pub fn source(name: &str, vector: &str) -> Source {
    Source {
        name: name.to_owned(),
        level: level(vector),
        handler: cost(100),
        work: cost(0),
        max_work: Some(1),
        packet_units: 1,
        rates: Rates {
            expected: Rate::from_hertz(100.0).ok(),
            tolerated: Rate::from_hertz(4000.0).ok(),
            worst: None,
            worst_name: None,
        },
        limit: Limit {
            bits: 16,
            ..Limit::off(EventCosts::default())
        },
        deadline: None,
        moderation: None,
        queue: None,
    }
}

/// A source with a limit of so many ticks on a channel of its own.
pub fn limited(
    name: &str,
    vector: &str,
    (policy, timing): (Policy, Timing),
    (channel, tick): (&str, u64),
    ticks: u64,
    burst: u32,
) -> Source {
    let mut source = source(name, vector);
    source.limit = Limit {
        policy,
        timing,
        interval: Interval { ticks, tick },
        burst,
        expiry: Some(Expiry::Own {
            channel: channel.to_owned(),
            level: level(channel),
        }),
        ..source.limit
    };
    source
}

/// Adds a shared timer of so many ticks, and a source for each name, line and burst.
pub fn share(
    system: &mut System,
    (channel, tick): (&str, u64),
    ticks: u64,
    sources: &[(&str, &str, u32)],
) {
    let index = system.timers.len();
    system.timers.push(Timer {
        name: format!("slow{index}"),
        channel: channel.to_owned(),
        level: level(channel),
        period: Interval { ticks, tick },
        base: 0,
    });
    for (name, vector, burst) in sources {
        let mut source = source(name, vector);
        source.limit = Limit {
            policy: Policy::Bursty,
            timing: Timing::Eager,
            interval: Interval { ticks, tick },
            burst: *burst,
            expiry: Some(Expiry::Shared(index)),
            ..source.limit
        };
        system.sources.push(source);
    }
}

fn level(vector: &str) -> Level {
    Level {
        vector: vector.to_owned(),
        group: 0,
        order: 0,
    }
}

fn cost(cycles: u64) -> Cost {
    Cost {
        cycles,
        origin: Origin::Declared,
    }
}
