// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receivers that packets release: their bounds, compared with bounds computed by hand.

use crate::common::{cost, cpu, level, no_limit, source, system, task};
use weir_analysis::analyse;
use weir_analysis::check::{BoundState, Cause, keeps_deadlines, report};
use weir_analysis::units::Part;
use weir_model::{Flow, Nesting, Receiver, Selector, System, TaskModel};

fn flow(from: usize, to: usize, bottom_half: u64) -> Flow {
    Flow {
        name: format!("flow{from}{to}"),
        source: from,
        receiver: to,
        selector: Selector::default(),
        rate: None,
        top_half: cost(0),
        demux: cost(0),
        bottom_half: cost(bottom_half),
        queue: None,
        deadline: None,
    }
}

/// A receiver that works for `wcet` cycles for each packet.
fn server(urgency: u8, wcet: u64) -> Receiver {
    Receiver {
        period: None,
        ..task(urgency, wcet, 1, 0)
    }
}

/// A packet comes every 1000 cycles. Its interrupt takes 10 cycles and its bottom half 20, and a
/// server takes 100 for it. A task below takes 50 every 4000 cycles. A switch takes 3.
fn served() -> System {
    let mut cpu = cpu(Nesting::Flat, TaskModel::Preemptive);
    cpu.context_switch = cost(3);
    let mut system = system(cpu);
    system
        .sources
        .push(source(level(0, 0), 10, Some(1000), no_limit()));
    system.receivers = vec![server(2, 100), task(1, 50, 4000, 0)];
    system.flows = vec![flow(0, 0, 20)];
    system
}

fn response(system: &System, part: Part) -> Option<u64> {
    analyse(system)
        .row(part)
        .and_then(|row| row.outcome.as_ref().ok().map(|of| of.response))
}

#[test]
fn a_server_works_for_each_packet() {
    let system = served();
    let packet = 10 + 23 + 103;
    // The bottom half and the server are equally urgent and may run in either order, so at worst
    // each waits for the other.
    assert_eq!(response(&system, Part::Delivered(0)), Some(packet));
    assert_eq!(response(&system, Part::BottomHalf(0)), Some(packet));
    assert_eq!(response(&system, Part::Task(1)), Some(packet + 53));
    assert_eq!(response(&system, Part::Task(0)), None);
    let analysis = analyse(&system);
    assert_eq!(analysis.response_of(&system, 0), Some(packet));
    assert_eq!(analysis.response_of(&system, 1), Some(packet + 53));
    let report = report(&system, &analysis, &mut |_| {});
    let share = packet as f64 / 1000.0 + 53.0 / 4000.0;
    assert!((report.utilisation.unwrap() - share).abs() < 1e-9);
}

#[test]
fn an_interrupt_may_bring_several_packets() {
    let mut system = served();
    system.sources[0].max_work = Some(3);
    // All three bottom halves run, then all three jobs. The interrupt has no work for each packet.
    let batch = 10 + 3 * 23 + 3 * 103;
    assert_eq!(response(&system, Part::Delivered(0)), Some(batch));
}

#[test]
fn a_server_has_a_deadline_and_blocks_where_tasks_do() {
    let mut system = served();
    system.receivers[0].deadline = Some(136);
    assert!(keeps_deadlines(&system));
    system.receivers[0].blocking = cost(1);
    assert!(!keeps_deadlines(&system));

    let mut cooperative = served();
    cooperative.cpu.tasks = TaskModel::Cooperative;
    cooperative.receivers[1].urgency = 3;
    // The task waits for the server that has just begun, and for the interrupt.
    assert_eq!(response(&cooperative, Part::Task(1)), Some(102 + 10 + 53));
}

#[test]
fn each_flow_of_a_server_asks_for_its_work() {
    let mut system = served();
    system
        .sources
        .push(source(level(0, 1), 10, Some(2000), no_limit()));
    system.flows.push(flow(1, 0, 0));
    let both = (10 + 23 + 103) + (10 + 103);
    for part in [Part::Delivered(0), Part::Delivered(1), Part::BottomHalf(0)] {
        assert_eq!(response(&system, part), Some(both), "{part:?}");
    }
    let analysis = analyse(&system);
    let report = report(&system, &analysis, &mut |_| {});
    let rows = report
        .rows
        .iter()
        .filter(|row| row.name == system.receivers[0].name);
    let flows: Vec<_> = rows.map(|row| row.flow.as_deref()).collect();
    assert_eq!(flows, [Some("flow00"), Some("flow10")]);
}

#[test]
fn a_server_of_a_source_without_bound_has_none() {
    let mut system = served();
    system.sources[0].rates.worst = None;
    let analysis = analyse(&system);
    assert_eq!(analysis.response_of(&system, 0), None);
    let report = report(&system, &analysis, &mut |_| {});
    for row in report.rows {
        let by = vec![system.sources[0].name.clone()];
        assert_eq!(row.bound.state, BoundState::Unbounded);
        assert_eq!(row.bound.cause, Some(Cause::Starved { by, count: 1 }));
    }
}
