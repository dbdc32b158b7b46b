// SPDX-License-Identifier: MIT OR Apache-2.0
//! A system with a thousand sources and a thousand tasks.
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::systems::{CLOCK, cost, level, rate};
use weir_model::{
    Cpu, EventCosts, Expiry, Interval, Limit, Linux, Nesting, Place, Policy, Rates, Receiver,
    Source, System, TaskModel, Timing,
};
use weir_verify::verify;

const COUNT: u32 = 1000;

fn source(index: u32) -> Source {
    let is_bursty = index % 2 == 0;
    Source {
        name: format!("source{index}"),
        level: level(0, index),
        handler: cost(100 + u64::from(index % 7) * 10),
        work: cost(0),
        max_work: Some(1),
        packet_units: 1,
        rates: Rates {
            expected: None,
            tolerated: None,
            worst: Some(rate(160)),
            worst_name: None,
        },
        limit: Limit {
            policy: if is_bursty {
                Policy::Bursty
            } else {
                Policy::Strict
            },
            timing: Timing::Lazy,
            place: Place::Software,
            interval: Interval {
                ticks: u64::from(COUNT) * 1500 * u64::from(1 + index % 5) / 8,
                tick: 8,
            },
            burst: if is_bursty { 4 } else { 1 },
            bits: 16,
            lag: 0,
            expiry: Some(Expiry::Own {
                channel: String::new(),
                level: level(0, COUNT + index),
            }),
            silicon: None,
            costs: EventCosts {
                request_served: 60,
                request_refused: 50,
                expiry_served: 90,
                expiry_empty: 40,
            },
        },
        deadline: None,
        moderation: None,
        queue: None,
    }
}

fn receiver(index: u32) -> Receiver {
    let period = 20_000_000 + 1_000_003 * u64::from(index % 97);
    Receiver {
        name: format!("task{index}"),
        urgency: 255 - u8::try_from(index * 255 / COUNT).unwrap(),
        period: Some(period),
        jitter: 0,
        deadline: Some(period),
        wcet: cost(20_000_000 / u64::from(COUNT) / 3),
        blocking: cost(0),
        critical_section: cost(0),
        backlog: None,
        port: None,
    }
}

/// Returns the processor time of this thread, which does not depend on other programs.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .unwrap()
        .into()
}

#[test]
fn a_thousand_sources_and_a_thousand_tasks_take_seconds_at_most() {
    let system = System {
        name: "large".to_owned(),
        sha256: "0".repeat(64),
        cpu: Cpu {
            board: None,
            flavour: None,
            clock_hz: CLOCK,
            nesting: Nesting::Flat,
            longest_instruction: 4,
            critical_section: cost(0),
            context_switch: cost(0),
            tasks: TaskModel::Preemptive,
            unlimited: EventCosts::default(),
            costs_from: String::new(),
            time_slice: None,
        },
        sources: (0..COUNT).map(source).collect(),
        timers: Vec::new(),
        receivers: (0..COUNT).map(receiver).collect(),
        silicon: None,
        flows: Vec::new(),
        linux: Linux::default(),
        freertos: None,
    };
    let analysis = weir_analysis::analyse(&system);
    let text = serde_json::to_string(&weir_analysis::certificate(&system, &analysis)).unwrap();
    let begin = processor_time();
    let report = verify(text.as_bytes()).unwrap();
    let time = processor_time() - begin;
    println!(
        "{} bytes, {} units, {} fixed points: {time:?}",
        text.len(),
        report.units,
        report.fixed_points
    );
    assert!(report.is_valid(), "{:?}", report.rejections.first());
    assert_eq!(report.units, 3 * 1000);
    // The limit is far above the usual time, for slow machines.
    assert!(time < Duration::from_secs(20), "{time:?}");
}
