// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests sources without a bound, demands that exceed the processor, polling, and systems with
//! extreme numbers.

use crate::common::{cost, cpu, every, level, no_limit, source, system, task};
use proptest::prelude::*;
use weir_analysis::rta::NoBound;
use weir_analysis::units::Part;
use weir_analysis::{Analysis, BoundFailure, analyse, units_hold};
use weir_model::{
    Cpu, EventCosts, Expiry, Flow, Interval, Level, Limit, Moderation, Nesting, Place, Policy,
    Rate, Rates, Receiver, Selector, SiliconLimit, Source, System, TaskModel, Timer, Timing,
};

fn outcome(analysis: &Analysis, part: Part) -> Result<u64, BoundFailure> {
    let row = analysis.row(part).expect("a row");
    row.outcome.clone().map(|solution| solution.response)
}

fn starved_by(source: usize) -> Result<u64, BoundFailure> {
    Err(BoundFailure::Starved(vec![Part::Request(source)]))
}

/// A system of interrupts of 30, 20 and 40 cycles, of which the second has no bound, and a task.
fn three(nesting: Nesting, levels: [Level; 3]) -> System {
    let mut system = system(cpu(nesting, TaskModel::Preemptive));
    let [first, second, third] = levels;
    system
        .sources
        .push(source(first, 30, Some(1_000), no_limit()));
    system.sources.push(source(second, 20, None, no_limit()));
    system
        .sources
        .push(source(third, 40, Some(1_000), no_limit()));
    system.receivers.push(task(1, 100, 10_000, 0));
    system
}

/// regehr2005 §5.2: a pure interrupt starves everything below it, and delays work above it by at
/// most one run.
#[test]
fn an_unlimited_source_starves_what_is_below_it_and_nothing_above() {
    let levels = [level(0, 1), level(0, 2), level(0, 3)];
    let analysis = analyse(&three(Nesting::Flat, levels));
    // Less urgent interrupts block for the longest of their runs, of which one cycle is already
    // over.
    assert_eq!(outcome(&analysis, Part::Request(0)), Ok(39 + 30));
    assert_eq!(outcome(&analysis, Part::Request(1)), starved_by(1));
    assert_eq!(outcome(&analysis, Part::Request(2)), starved_by(1));
    assert_eq!(outcome(&analysis, Part::Task(0)), starved_by(1));
}

#[test]
fn a_preemptive_source_above_does_not_even_wait() {
    let levels = [level(3, 0), level(2, 0), level(1, 0)];
    let analysis = analyse(&three(Nesting::Grouped, levels));
    assert_eq!(outcome(&analysis, Part::Request(0)), Ok(30));
    assert_eq!(outcome(&analysis, Part::Request(2)), starved_by(1));
    assert_eq!(outcome(&analysis, Part::Task(0)), starved_by(1));
}

#[test]
fn every_starving_source_is_named() {
    let mut system = three(Nesting::Flat, [level(0, 1), level(0, 2), level(0, 3)]);
    system.sources[0].rates.worst = None;
    let analysis = analyse(&system);
    let both = vec![Part::Request(0), Part::Request(1)];
    assert_eq!(
        outcome(&analysis, Part::Task(0)),
        Err(BoundFailure::Starved(both))
    );
}

/// The same source with a strict limit: the task has a bound, and so do the sources below.
#[test]
fn a_limit_ends_the_starvation() {
    let mut system = three(Nesting::Flat, [level(0, 1), level(0, 2), level(0, 3)]);
    system.sources[1].limit = Limit {
        policy: Policy::Strict,
        interval: Interval::of_cycles(500),
        expiry: Some(Expiry::Own {
            channel: "TIMER".into(),
            level: level(0, 9),
        }),
        costs: EventCosts {
            request_served: 5,
            expiry_served: 6,
            expiry_empty: 4,
            ..EventCosts::default()
        },
        ..no_limit()
    };
    system.receivers[0].deadline = Some(300);
    assert!(units_hold(&system));
    let analysis = analyse(&system);
    // The response is 30 + 40 of the others, and S + W + E of the limited source, which is not
    // served a second time within 500 - σ.
    assert_eq!(
        outcome(&analysis, Part::Task(0)),
        Ok(100 + 30 + 40 + 5 + 20 + 4)
    );
    system.sources[1].limit = no_limit();
    assert!(!units_hold(&system));
}

/// A limit that polls every 200 cycles.
fn polled(costs: EventCosts) -> Limit {
    Limit {
        policy: Policy::Poll,
        interval: Interval::of_cycles(200),
        expiry: Some(Expiry::Own {
            channel: "TIMER".into(),
            level: level(0, 1),
        }),
        costs,
        ..no_limit()
    }
}

/// regehr2005 §5.2: polling is a periodic task, independent of the line.
#[test]
fn pure_polling_is_a_periodic_task() {
    let mut system = system(cpu(Nesting::Flat, TaskModel::Preemptive));
    let polled = polled(EventCosts {
        expiry_served: 12,
        expiry_empty: 7,
        ..EventCosts::default()
    });
    system.sources.push(source(level(0, 0), 18, None, polled));
    system.receivers.push(task(1, 340, 1_000, 0));
    let analysis = analyse(&system);
    assert!(
        analysis.row(Part::Request(0)).is_none(),
        "a polled line never interrupts"
    );
    assert_eq!(outcome(&analysis, Part::Expiry(0)), Ok(30));
    // The demand is 340 + 30 per 200, which makes 400 in a window of 400.
    assert_eq!(outcome(&analysis, Part::Task(0)), Ok(400));
}

/// The timer's interrupt serves a polled source, even if the interrupt costs nothing except the
/// handler.
#[test]
fn polling_that_costs_nothing_still_runs_the_handler() {
    let mut system = system(cpu(Nesting::Flat, TaskModel::Preemptive));
    system.cpu.longest_instruction = 4;
    let polled = polled(EventCosts::default());
    system.sources.push(source(level(0, 0), 18, None, polled));
    system
        .sources
        .push(source(level(0, 2), 10, Some(1_000), no_limit()));
    system.receivers.push(task(1, 340, 1_000, 0));
    let analysis = analyse(&system);
    // The row of the polled source waits for the other interrupt, except for its first cycle, and
    // for an instruction.
    assert_eq!(outcome(&analysis, Part::Expiry(0)), Ok(9 + 4 + 18));
    // The other interrupt waits for the polled source, for the instruction between them, and for an
    // instruction that blocks interrupts.
    assert_eq!(outcome(&analysis, Part::Request(1)), Ok(4 + 18 + 4 + 10));
    // The demand is 340 + 10 + 18 per 200, which makes 396 in a window of 396. The task is also
    // blocked by the rest of an instruction.
    assert_eq!(outcome(&analysis, Part::Task(0)), Ok(3 + 340 + 10 + 2 * 18));
    system.sources[0].deadline = Some(30);
    assert!(!units_hold(&system));
    system.sources[0].deadline = Some(31);
    assert!(units_hold(&system));
}

#[test]
fn more_than_the_processor_has_is_a_verdict() {
    let mut system = system(cpu(Nesting::Flat, TaskModel::Preemptive));
    system
        .sources
        .push(source(level(0, 1), 60, Some(100), no_limit()));
    system.receivers.push(task(2, 10, 1_000, 0));
    system.receivers.push(task(1, 500, 1_000, 0));
    // A task that needs more than its period has the same result.
    system.receivers.push(task(0, 2_000, 1_000, 0));
    system.receivers[1].deadline = Some(1_000);
    let analysis = analyse(&system);
    assert_eq!(outcome(&analysis, Part::Request(0)), Ok(60));
    assert_eq!(outcome(&analysis, Part::Task(0)), Ok(70));
    for task in [1, 2] {
        let overload = Err(BoundFailure::NoBound(NoBound::Overload));
        assert_eq!(outcome(&analysis, Part::Task(task)), overload);
    }
    assert!(!analysis.holds());
    assert!(!units_hold(&system));
}

/// Small numbers, large numbers, and the largest that the model accepts.
fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..5_u64,
        1..100_000_u64,
        Just(1 << 32),
        Just(u64::from(u32::MAX)),
        (1_u64 << 40)..(1 << 62),
        Just(1 << 62),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![
        Just(1e12),
        Just(1e-300),
        Just(f64::MIN_POSITIVE),
        1e-6..1e9_f64
    ]
    .prop_map(|hertz| Rate::from_hertz(hertz).expect("a positive rate"))
}

fn any_level() -> impl Strategy<Value = Level> {
    (
        prop_oneof![0..3_u32, Just(u32::MAX)],
        prop_oneof![0..4_u32, Just(u32::MAX)],
    )
        .prop_map(|(group, order)| level(group, order))
}

fn any_limit() -> impl Strategy<Value = Limit> {
    use Policy::{Bucket, Bursty, Off, Paced, Poll, Strict};
    let policy = proptest::sample::select(vec![Off, Strict, Paced, Bursty, Bucket, Poll]);
    let timing = proptest::sample::select(vec![Timing::Eager, Timing::Lazy, Timing::OneShot]);
    let place = prop_oneof![Just(Place::Software), Just(Place::Hardware)];
    let expiry = prop_oneof![
        Just(None),
        any_level().prop_map(|level| Some(Expiry::Own {
            channel: "TIMER".into(),
            level
        })),
        (0..2_usize).prop_map(|timer| Some(Expiry::Shared(timer))),
    ];
    let burst = prop_oneof![1..5_u32, Just(u32::MAX)];
    let numbers = (
        extreme(),
        extreme(),
        burst,
        prop_oneof![0..3_u32, Just(u32::MAX)],
    );
    let costs = (extreme(), extreme(), extreme(), extreme());
    ((policy, timing, place), expiry, numbers, costs).prop_map(
        |((policy, timing, place), expiry, (interval, tick, burst, lag), costs)| Limit {
            policy,
            timing,
            place,
            interval: whole(interval, tick),
            bits: 16,
            burst,
            lag,
            silicon: (place == Place::Hardware).then_some(SiliconLimit {
                asked: interval,
                rate: 1,
                delay: costs.3,
                is_level: false,
            }),
            expiry,
            costs: EventCosts {
                request_served: costs.0,
                request_refused: costs.1,
                expiry_served: costs.2,
                expiry_empty: costs.3,
            },
        },
    )
}

fn any_source() -> impl Strategy<Value = Source> {
    let moderation = (
        extreme(),
        proptest::option::of(extreme()),
        proptest::option::of(extreme()),
        proptest::option::of(extreme()),
    );
    let moderation = proptest::option::of(moderation.prop_map(
        |(absolute, packet, count, tick)| Moderation {
            absolute,
            packet,
            count,
            tick,
        },
    ));
    let numbers = (extreme(), extreme(), proptest::option::of(extreme()));
    let options = (
        proptest::option::of(rate()),
        proptest::option::of(extreme()),
        moderation,
    );
    (any_level(), any_limit(), numbers, options).prop_map(
        |(level, limit, (handler, work, max_work), (worst, deadline, moderation))| Source {
            handler: cost(handler),
            work: cost(work),
            max_work,
            rates: Rates {
                expected: None,
                tolerated: None,
                worst,
                worst_name: None,
            },
            deadline,
            moderation,
            ..source(level, 0, None, limit)
        },
    )
}

fn any_receiver() -> impl Strategy<Value = Receiver> {
    let options = (
        proptest::option::of(extreme()),
        proptest::option::of(extreme()),
    );
    (
        any::<u8>(),
        (extreme(), extreme(), extreme(), extreme()),
        options,
    )
        .prop_map(
            |(urgency, (wcet, jitter, blocking, section), (period, deadline))| Receiver {
                period: period.map(|period| period.max(1)),
                deadline,
                blocking: cost(blocking),
                critical_section: cost(section),
                ..task(urgency, wcet, 1, jitter)
            },
        )
}

fn any_flow() -> impl Strategy<Value = Flow> {
    let numbers = (extreme(), extreme(), extreme());
    let options = (
        proptest::option::of(rate()),
        proptest::option::of(extreme()),
        proptest::option::of(extreme()),
    );
    ((0..3_usize, 0..3_usize), numbers, options).prop_map(
        |((source, receiver), (top, demux, bottom), (rate, queue, deadline))| Flow {
            name: "flow".into(),
            source,
            receiver,
            rate,
            top_half: cost(top),
            demux: cost(demux),
            bottom_half: cost(bottom),
            queue,
            deadline,
            selector: Selector::default(),
        },
    )
}

/// An interval of at least `cycles` cycles, in ticks of `tick` cycles.
fn whole(cycles: u64, tick: u64) -> Interval {
    let tick = tick.max(1);
    Interval {
        ticks: cycles.div_ceil(tick).max(1),
        tick,
    }
}

fn any_timer() -> impl Strategy<Value = Timer> {
    (any_level(), extreme(), extreme(), extreme()).prop_map(|(level, tick, period, base)| Timer {
        name: "timer".into(),
        channel: "TIMER".into(),
        level,
        period: whole(period, tick),
        base,
    })
}

fn any_cpu() -> impl Strategy<Value = Cpu> {
    let nesting = prop_oneof![Just(Nesting::Flat), Just(Nesting::Grouped)];
    let tasks = prop_oneof![Just(TaskModel::Preemptive), Just(TaskModel::Cooperative)];
    let clock = prop_oneof![Just(1_u64), Just(16_000_000), Just(1 << 40)];
    let slice = proptest::option::of(extreme());
    let costs = (extreme(), extreme(), extreme());
    (nesting, tasks, clock, costs, slice).prop_map(
        |(nesting, tasks, clock_hz, (instruction, section, switch), slice)| Cpu {
            time_slice: slice.map(|slice| slice.max(1)),
            clock_hz,
            longest_instruction: instruction,
            critical_section: cost(section),
            context_switch: cost(switch),
            ..cpu(nesting, tasks)
        },
    )
}

proptest! {
    #![proptest_config(crate::cases(300, 2000))]

    /// Any system that the model can hold gets rows, and no bound comes from a sum that overflowed.
    #[test]
    fn no_system_makes_it_panic(
        cpu in any_cpu(),
        sources in proptest::collection::vec(any_source(), 0..4),
        timers in proptest::collection::vec(any_timer(), 0..3),
        receivers in proptest::collection::vec(any_receiver(), 0..4),
        flows in proptest::collection::vec(any_flow(), 0..3),
    ) {
        let system = System { sources, timers, receivers, flows, ..system(cpu) };
        let analysis = analyse(&system);
        prop_assert_eq!(analysis.holds(), units_hold(&system));
        for row in &analysis.rows {
            if let (Ok(solution), Some(own)) = (&row.outcome, &row.unit.own) {
                // A source whose work is zero brings no packets.
                prop_assert!(solution.jobs.is_empty() || solution.response >= own.cost, "{row:?}");
                prop_assert!(solution.busy_window >= row.blocking, "{row:?}");
            }
        }
    }

    /// A rate can be converted back to its period, so that the systems of other tests have the
    /// periods that they state.
    #[test]
    fn a_period_is_its_rates(period in 1..1_000_000_u64) {
        prop_assert_eq!(every(period).period_cycles(crate::common::CLOCK).floor() as u64, period);
    }
}
