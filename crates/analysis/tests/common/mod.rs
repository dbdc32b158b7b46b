// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small systems for tests. All times are in cycles, and the parts that a test does not need are
//! zero or empty.

use weir_model::{
    Cost, Cpu, EventCosts, Interval, Level, Limit, Linux, Nesting, Origin, Rate, Rates, Receiver,
    Source, System, TaskModel,
};

/// Cycles per second: a rate of `CLOCK / n` is a period of `n` cycles.
pub const CLOCK: u64 = 16_000_000;

/// A cost that the file states.
pub fn cost(cycles: u64) -> Cost {
    Cost {
        cycles,
        origin: Origin::Declared,
    }
}

/// A processor on which no instruction runs between two interrupts.
pub fn cpu(nesting: Nesting, tasks: TaskModel) -> Cpu {
    Cpu {
        board: None,
        flavour: None,
        clock_hz: CLOCK,
        nesting,
        longest_instruction: 0,
        critical_section: cost(0),
        context_switch: cost(0),
        tasks,
        unlimited: EventCosts::default(),
        costs_from: String::new(),
        time_slice: None,
    }
}

/// A system without sources, timers, receivers and flows.
pub fn system(cpu: Cpu) -> System {
    System {
        name: "test".into(),
        sha256: String::new(),
        cpu,
        silicon: None,
        sources: Vec::new(),
        timers: Vec::new(),
        receivers: Vec::new(),
        flows: Vec::new(),
        linux: Linux::default(),
        freertos: None,
    }
}

/// The rank of an interrupt; the lowest order is served first.
pub fn level(group: u32, order: u32) -> Level {
    Level {
        vector: format!("IRQ{group}.{order}"),
        group,
        order,
    }
}

/// The rate of one event per `cycles`. The same number of cycles results when the period is rounded
/// down.
pub fn every(cycles: u64) -> Rate {
    let rate = |hertz| Rate::from_hertz(hertz).expect("a positive rate");
    let exact = CLOCK as f64 / cycles as f64;
    let candidates = [exact, f64::from_bits(exact.to_bits() - 1)].map(rate);
    *candidates
        .iter()
        .find(|rate| rate.period_cycles(CLOCK).floor() as u64 == cycles)
        .expect("one of two neighbours is rounded to the period")
}

/// A limit with the policy off.
pub fn no_limit() -> Limit {
    Limit {
        interval: Interval::of_cycles(1),
        ..Limit::off(EventCosts::default())
    }
}

/// A source whose handler takes `handler` cycles. It requests at most every `interarrival` cycles;
/// `None` means without a bound.
pub fn source(level: Level, handler: u64, interarrival: Option<u64>, limit: Limit) -> Source {
    Source {
        name: level.vector.clone(),
        level,
        handler: cost(handler),
        work: cost(0),
        max_work: Some(1),
        packet_units: 1,
        rates: Rates {
            expected: None,
            tolerated: None,
            worst: interarrival.map(every),
            worst_name: None,
        },
        limit,
        deadline: None,
        moderation: None,
        queue: None,
    }
}

/// A sporadic task that has no deadline.
pub fn task(urgency: u8, wcet: u64, period: u64, jitter: u64) -> Receiver {
    Receiver {
        name: format!("task{urgency}"),
        urgency,
        period: Some(period),
        jitter,
        deadline: None,
        wcet: cost(wcet),
        blocking: cost(0),
        critical_section: cost(0),
        backlog: None,
        port: None,
    }
}
