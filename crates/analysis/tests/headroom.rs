// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the results of `headroom`. At the factor every deadline holds, and if the factor is exact,
//! a deadline breaks just above it.

use crate::common::{CLOCK, cost, cpu, level, no_limit, task};
use proptest::prelude::*;
use weir_analysis::{Headroom, analyse, headroom, headroom_at_least, units_hold};
use weir_model::{
    EventCosts, Expiry, Flow, Interval, Limit, Nesting, Policy, Rate, Receiver, Selector, Source,
    System, TaskModel, Timing,
};

fn limit(policy: Policy, timing: Timing, interval: u64, burst: u32) -> Limit {
    Limit {
        policy,
        timing,
        interval: Interval {
            ticks: interval.div_ceil(8),
            tick: 8,
        },
        burst,
        costs: EventCosts {
            request_served: 60,
            request_refused: 45,
            expiry_served: 90,
            expiry_empty: 40,
        },
        ..no_limit()
    }
}

/// A limit, the handler's cost, the least cycles between two requests, and a deadline.
fn source() -> impl Strategy<Value = (Limit, u64, u64, Option<u64>)> {
    let limit = prop_oneof![
        (10_000..200_000_u64).prop_map(|t| limit(Policy::Strict, Timing::Lazy, t, 1)),
        (10_000..200_000_u64).prop_map(|t| limit(Policy::Paced, Timing::Eager, t, 1)),
        (20_000..400_000_u64, 1..6_u32).prop_map(|(t, n)| limit(
            Policy::Bursty,
            Timing::Lazy,
            t,
            n
        )),
        (10_000..200_000_u64, 1..6_u32).prop_map(|(t, n)| limit(
            Policy::Bucket,
            Timing::Eager,
            t,
            n
        )),
        Just(limit(Policy::Off, Timing::Eager, 1, 1)),
    ];
    (
        limit,
        50..800_u64,
        500..100_000_u64,
        proptest::option::of(20_000..100_000_u64),
    )
}

fn build(sources: Vec<(Limit, u64, u64, Option<u64>)>, tasks: Vec<(u64, u64)>) -> System {
    let mut system = crate::common::system(cpu(Nesting::Flat, TaskModel::Preemptive));
    system.cpu.longest_instruction = 4;
    system.cpu.critical_section = cost(20);
    for (order, (limit, handler, interarrival, deadline)) in (0..).zip(sources) {
        let limit = Limit {
            expiry: (limit.policy != Policy::Off).then(|| Expiry::Own {
                channel: format!("TIMER{order}"),
                level: level(0, 1000 + order),
            }),
            ..limit
        };
        system.sources.push(Source {
            deadline,
            ..crate::common::source(level(0, order), handler, Some(interarrival), limit)
        });
    }
    for (urgency, (wcet, period)) in (0..).zip(tasks) {
        system.receivers.push(Receiver {
            deadline: Some(period),
            ..task(urgency, wcet, period, 0)
        });
    }
    system
}

fn system() -> impl Strategy<Value = System> {
    let tasks = proptest::collection::vec((1_000..40_000_u64, 100_000..900_000_u64), 1..5);
    (proptest::collection::vec(source(), 1..4), tasks)
        .prop_map(|(sources, tasks)| build(sources, tasks))
}

/// A system whose first source brings packets, for a task and for a server that they release.
fn system_of_packets() -> impl Strategy<Value = System> {
    let costs = (0..2_000_u64, 0..2_000_u64, 1..3_000_u64, 1..4_u64);
    (system(), costs).prop_map(|(mut system, (first, second, wcet, max_work))| {
        system.sources[0].max_work = Some(max_work);
        system.receivers.push(Receiver {
            period: None,
            ..task(1, wcet, 1, 0)
        });
        for (receiver, bottom_half) in [(0, first), (system.receivers.len() - 1, second)] {
            system.flows.push(Flow {
                name: format!("flow{receiver}"),
                source: 0,
                receiver,
                selector: Selector::default(),
                rate: None,
                top_half: cost(0),
                demux: cost(0),
                bottom_half: cost(bottom_half),
                queue: None,
                deadline: None,
            });
        }
        system
    })
}

/// The setting of a source to which its factor applies: the cycles between two requests.
fn interval(system: &System, source: usize) -> f64 {
    let of = &system.sources[source];
    match of.limit.policy {
        Policy::Off => of.rates.worst.unwrap().period_cycles(CLOCK).floor(),
        _ => of.limit.interval.cycles() as f64,
    }
}

/// The system with `interval` cycles between two requests of a source.
fn with_interval(system: &System, source: usize, interval: f64) -> System {
    let mut system = system.clone();
    let of = &mut system.sources[source];
    let interval = interval.round().max(1.0);
    if of.limit.policy == Policy::Off {
        of.rates.worst = Rate::from_hertz(CLOCK as f64 / interval).ok();
    } else {
        // The limiter's resolution of 8 cycles stays the same for any interval.
        of.limit.interval = Interval::of_cycles(interval as u64);
        of.limit.lag = 7;
    }
    system
}

fn is_safe(system: &System, found: &Headroom) -> bool {
    let now = interval(system, found.source);
    match found.factor {
        Some(factor) if factor > 0.0 => {
            units_hold(&with_interval(system, found.source, now / factor))
        }
        Some(_) => !found.exact || !units_hold(system),
        None => units_hold(&with_interval(system, found.source, 1.0)),
    }
}

proptest! {
    #![proptest_config(crate::cases(60, 200))]

    #[test]
    fn the_factor_is_safe_and_no_larger_one_is(system in system()) {
        for found in headroom(&system, &analyse(&system)) {
            prop_assert!(found.exact);
            prop_assert!(is_safe(&system, &found), "{found:?}");
            if let Some(factor) = found.factor.filter(|&factor| factor > 0.0) {
                let tighter = (interval(&system, found.source) / factor).round() - 1.0;
                prop_assert!(!units_hold(&with_interval(&system, found.source, tighter)), "{found:?}");
                prop_assert!(found.binding.is_some());
            }
        }
    }

    #[test]
    fn the_lower_bound_is_safe(system in prop_oneof![system(), system_of_packets()]) {
        let analysis = analyse(&system);
        prop_assume!(analysis.holds());
        let exact = headroom(&system, &analysis);
        for (bound, exact) in headroom_at_least(&system, &analysis).iter().zip(&exact) {
            prop_assert!(!bound.exact);
            prop_assert!(is_safe(&system, bound), "{bound:?}");
            match (bound.factor, exact.factor) {
                (Some(bound), Some(exact)) => prop_assert!((1.0..=exact).contains(&bound), "{bound} {exact}"),
                (None, exact) => prop_assert_eq!(exact, None),
                (Some(_), None) => {}
            }
        }
    }
}
