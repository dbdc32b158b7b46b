// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can and what cannot be in a busy window (docs/analysis.md, "What a unit sees" and "Blocking"), in numbers that can be checked by hand. The emulated board
//! showed each of them: `weir reproduce regehr2005/bounds`.

use weir_analysis::analyse;
use weir_analysis::units::Part;
use weir_model::{
    Cost, Cpu, EventCosts, Expiry, Level, Limit, Nesting, Origin, Place, Policy, Rate, Rates,
    Receiver, Source, System, TaskModel, Timing,
};

const CLOCK: u64 = 4_000_000;
const COSTS: EventCosts = EventCosts {
    request_served: 10,
    request_refused: 8,
    expiry_served: 20,
    expiry_empty: 15,
};
const OFF: EventCosts = EventCosts {
    request_served: 10,
    request_refused: 0,
    expiry_served: 0,
    expiry_empty: 0,
};

fn cost(cycles: u64) -> Cost {
    Cost {
        cycles,
        origin: Origin::Declared,
    }
}

fn level(order: u32) -> Level {
    Level {
        vector: format!("IRQ{order}"),
        group: 0,
        order,
    }
}

fn source(order: u32, handler: u64, worst_hz: Option<f64>, limit: Limit) -> Source {
    Source {
        name: format!("source{order}"),
        level: level(order),
        handler: cost(handler),
        work: cost(0),
        max_work: Some(1),
        rates: Rates {
            expected: None,
            tolerated: None,
            worst: worst_hz.map(|hertz| Rate::from_hertz(hertz).unwrap()),
            worst_name: None,
        },
        limit,
        deadline: None,
        moderation: None,
        queue: None,
    }
}

fn off() -> Limit {
    Limit {
        policy: Policy::Off,
        timing: Timing::Eager,
        place: Place::Software,
        interval: 1,
        tick: 1,
        bits: 16,
        burst: 1,
        lag: 0,
        expiry: None,
        costs: OFF,
    }
}

/// `burst` requests per `interval` cycles; the timer ranks below every line.
fn bursty(timing: Timing, interval: u64, burst: u32) -> Limit {
    let request_refused = match timing {
        Timing::Lazy => COSTS.request_refused,
        Timing::Eager | Timing::OneShot => 0,
    };
    Limit {
        policy: Policy::Bursty,
        timing,
        interval,
        burst,
        expiry: Some(Expiry::Own {
            channel: "TIMER1A".to_owned(),
            level: level(12),
        }),
        costs: EventCosts {
            request_refused,
            ..COSTS
        },
        ..off()
    }
}

fn system(critical_section: u64, sources: Vec<Source>, task: Option<u64>) -> System {
    System {
        name: "busy".to_owned(),
        sha256: String::new(),
        cpu: Cpu {
            board: None,
            flavour: None,
            clock_hz: CLOCK,
            nesting: Nesting::Flat,
            longest_instruction: 4,
            critical_section: cost(critical_section),
            context_switch: cost(0),
            tasks: TaskModel::Preemptive,
            unlimited: OFF,
            costs_from: String::new(),
            time_slice: None,
        },
        sources,
        timers: Vec::new(),
        receivers: task
            .map(|wcet| Receiver {
                name: "task".to_owned(),
                urgency: 1,
                period: Some(100_000),
                jitter: 0,
                deadline: None,
                wcet: cost(wcet),
                blocking: cost(0),
                critical_section: cost(0),
                backlog: None,
                port: None,
            })
            .into_iter()
            .collect(),
        flows: Vec::new(),
    }
}

fn response(system: &System, part: Part) -> u64 {
    let analysis = analyse(system);
    let outcome = analysis.row(part).map(|row| row.outcome.clone());
    match outcome {
        Some(Ok(solution)) => solution.response,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_critical_section_can_follow_the_interrupt_that_blocked() {
    let sources = vec![
        source(1, 200, Some(500.0), off()),
        source(2, 600, Some(500.0), off()),
    ];
    // What has begun, the section that the one instruction behind it begins, an instruction; and itself.
    let expected = (610 - 1) + 100 + 4 + 210;
    assert_eq!(
        response(&system(100, sources, None), Part::Request(0)),
        expected
    );
}

#[test]
fn an_expiry_is_not_late_before_the_busy_window_begins() {
    let sources = vec![source(1, 300, None, bursty(Timing::Eager, 6000, 4))];
    // Four before and four after the first clearing, four after each of two more; three expiries that serve nobody. The burst, which
    // makes the clearing late, lies in the window. And the rest of the instruction that ran when it came.
    let expected = 9000 + (2 + 2) * 4 * 310 + 3 * 15 + (4 - 1);
    assert_eq!(
        response(&system(0, sources, Some(9000)), Part::Task(0)),
        expected
    );
}

#[test]
fn an_expiry_that_serves_nobody_follows_on_no_refusal() {
    let sources = vec![source(1, 300, None, bursty(Timing::Lazy, 6000, 4))];
    // An expiry that serves costs 10 more than if the line had served, and 8 for the refusal: more than an empty one's 15. One more refusal at the end, and the
    // rest of an instruction at the begin.
    let expected = 1000 + 2 * 4 * 310 + (10 + 8) + 8 + (4 - 1);
    assert_eq!(
        response(&system(0, sources, Some(1000)), Part::Task(0)),
        expected
    );
}

#[test]
fn above_its_timer_a_masked_source_stays_masked() {
    let behind = |timing| {
        let sources = vec![
            source(1, 300, None, bursty(timing, 16_000, 6)),
            source(2, 200, Some(100.0), off()),
        ];
        response(&system(0, sources, None), Part::Request(1))
    };
    // The timer's interrupt has begun, which serves one.
    let blocking = 320 - 1 + 4;
    assert_eq!(behind(Timing::Eager), blocking + 6 * 314 + 210);
    // Lazy limiters look at the clock, too, and refuse once.
    assert_eq!(behind(Timing::Lazy), blocking + 2 * 6 * 314 + 12 + 210);
}
