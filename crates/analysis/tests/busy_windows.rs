// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests which work can and cannot be in a busy window (docs/analysis.md, "What a unit sees" and
//! "Blocking"), with numbers that can be checked by hand. The emulated board showed each of these
//! cases: `weir reproduce regehr2005/bounds`.

use crate::common::{cost, cpu, level, no_limit, source, task};
use weir_analysis::analyse;
use weir_analysis::units::Part;
use weir_model::{
    EventCosts, Expiry, Interval, Limit, Nesting, Policy, Source, System, TaskModel, Timing,
};

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

fn off() -> Limit {
    Limit {
        costs: OFF,
        ..no_limit()
    }
}

/// A limit of `burst` requests per `interval` cycles. Its timer ranks below every line.
fn bursty(timing: Timing, interval: u64, burst: u32) -> Limit {
    let request_refused = match timing {
        Timing::Lazy => COSTS.request_refused,
        Timing::Eager | Timing::OneShot => 0,
    };
    Limit {
        policy: Policy::Bursty,
        timing,
        interval: Interval::of_cycles(interval),
        burst,
        expiry: Some(Expiry::Own {
            channel: "TIMER1A".to_owned(),
            level: level(0, 12),
        }),
        costs: EventCosts {
            request_refused,
            ..COSTS
        },
        ..off()
    }
}

/// A system of sources and a task of this WCET. The longest instruction takes 4 cycles.
fn system(critical_section: u64, sources: Vec<Source>, wcet: Option<u64>) -> System {
    let mut system = crate::common::system(cpu(Nesting::Flat, TaskModel::Preemptive));
    system.cpu.longest_instruction = 4;
    system.cpu.critical_section = cost(critical_section);
    system.cpu.unlimited = OFF;
    system.sources = sources;
    system.receivers = wcet
        .map(|wcet| task(1, wcet, 100_000, 0))
        .into_iter()
        .collect();
    system
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
        source(level(0, 1), 200, Some(8_000), off()),
        source(level(0, 2), 600, Some(8_000), off()),
    ];
    // The terms are the rest of the interrupt that has begun, the critical section that the one
    // instruction after it begins, an instruction, and the interrupt itself.
    let expected = (610 - 1) + 100 + 4 + 210;
    assert_eq!(
        response(&system(100, sources, None), Part::Request(0)),
        expected
    );
}

#[test]
fn an_expiry_is_not_late_before_the_busy_window_begins() {
    let sources = vec![source(
        level(0, 1),
        300,
        None,
        bursty(Timing::Eager, 6000, 4),
    )];
    // The terms are four requests before and four after the first clearing, four after each of two
    // more, and three expiries that serve nothing. The burst, which makes the clearing late, lies
    // in the window. The rest of the instruction that was running is added.
    let expected = 9000 + (2 + 2) * 4 * 310 + 3 * 15 + (4 - 1);
    assert_eq!(
        response(&system(0, sources, Some(9000)), Part::Task(0)),
        expected
    );
}

#[test]
fn an_expiry_that_serves_nobody_follows_on_no_refusal() {
    let sources = vec![source(
        level(0, 1),
        300,
        None,
        bursty(Timing::Lazy, 6000, 4),
    )];
    // An expiry that serves costs 10 more than if the line had served, and 8 for the refusal. That
    // is more than the 15 of an empty expiry. One more refusal comes at the end, and the rest of an
    // instruction at the start.
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
            source(level(0, 1), 300, None, bursty(timing, 16_000, 6)),
            source(level(0, 2), 200, Some(40_000), off()),
        ];
        response(&system(0, sources, None), Part::Request(1))
    };
    // The timer's interrupt, which serves one request, has already begun.
    let blocking = 320 - 1 + 4;
    assert_eq!(behind(Timing::Eager), blocking + 6 * 314 + 210);
    // Lazy limiters also look at the clock, and refuse once.
    assert_eq!(behind(Timing::Lazy), blocking + 2 * 6 * 314 + 12 + 210);
}
