// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the cost of time slices, with which tasks of the same urgency take turns.

use std::collections::VecDeque;

use crate::common::{cost, cpu, system, task};
use proptest::prelude::*;
use weir_analysis::analyse;
use weir_analysis::units::Part;
use weir_model::{Nesting, System, TaskModel};

/// A system of tasks with the urgencies, WCETs and periods `tasks`, and with switches of `switch`
/// cycles after each `slice`.
fn sliced(slice: Option<u64>, switch: u64, tasks: &[(u8, u64, u64)]) -> System {
    let mut system = system(cpu(Nesting::Flat, TaskModel::Preemptive));
    system.cpu.time_slice = slice;
    system.cpu.context_switch = cost(switch);
    let task = |&(urgency, wcet, period): &(u8, u64, u64)| task(urgency, wcet, period, 0);
    system.receivers = tasks.iter().map(task).collect();
    system
}

fn responses(system: &System) -> Vec<Option<u64>> {
    let analysis = analyse(system);
    let response = |index| {
        let row = analysis.row(Part::Task(index)).expect("a row");
        row.outcome.as_ref().ok().map(|of| of.response)
    };
    (0..system.receivers.len()).map(response).collect()
}

/// Two tasks that take turns, one task above them and one below them.
const FOUR: [(u8, u64, u64); 4] = [
    (3, 50, 10_000),
    (2, 90, 10_000),
    (2, 140, 10_000),
    (1, 40, 10_000),
];

#[test]
fn each_slice_of_those_that_take_turns_costs_a_switch() {
    let without = sliced(None, 10, &FOUR);
    assert_eq!(
        responses(&without),
        [60, 310, 310, 360].map(Some),
        "one switch per release"
    );
    // The equations are w = 310 + 10·(1 + ⌊(w - 1)/30⌋) and w = 360 + 10·(1 + ⌊(w - 1)/30⌋).
    let with = sliced(Some(30), 10, &FOUR);
    assert_eq!(responses(&with), [60, 470, 470, 540].map(Some));
}

#[test]
fn who_has_no_equal_or_a_switch_for_nothing_loses_nothing_by_slices() {
    let alone: Vec<_> = (1..)
        .zip(FOUR)
        .map(|(urgency, (_, wcet, period))| (urgency, wcet, period))
        .collect();
    for (switch, tasks) in [(10, &alone[..]), (0, &FOUR[..])] {
        assert_eq!(
            responses(&sliced(Some(1), switch, tasks)),
            responses(&sliced(None, switch, tasks))
        );
    }
}

#[test]
fn switches_that_take_as_long_as_the_slices_leave_no_bound() {
    let with = sliced(Some(10), 10, &FOUR);
    assert_eq!(responses(&with), [Some(60), None, None, None]);
}

/// The tasks of one urgency in a simulated round robin.
#[derive(Default)]
struct Ring {
    /// The tasks that are ready, each only once; the first one has the turn.
    ready: VecDeque<usize>,
    /// The cycles that are left of the turn.
    turn: u64,
    /// The cycles that are left of the switch to the task that has the turn.
    switching: u64,
}

/// The longest response of each task in `cycles` cycles, simulated cycle by cycle. Task i is first
/// released at `phases[i]` and then with its period.
fn observed(system: &System, phases: &[u64], cycles: u64) -> Vec<u64> {
    let (slice, switch) = (
        system.cpu.time_slice.expect("a slice"),
        system.cpu.context_switch.cycles,
    );
    let mut rings: Vec<Ring> = (0..4).map(|_| Ring::default()).collect();
    // For each task, these are the jobs that are not done, the oldest first. Each has its release
    // and the cycles that are left of it.
    let mut jobs = vec![VecDeque::<(u64, u64)>::new(); system.receivers.len()];
    let mut longest = vec![0; system.receivers.len()];
    for now in 0..cycles {
        for (task, (of, &phase)) in system.receivers.iter().zip(phases).enumerate() {
            if now >= phase && (now - phase) % of.period.expect("a period") == 0 {
                let ring = &mut rings[usize::from(of.urgency)];
                if ring.ready.is_empty() {
                    ring.turn = slice;
                }
                if jobs[task].is_empty() {
                    ring.ready.push_back(task);
                }
                jobs[task].push_back((now, of.wcet.cycles + switch));
            }
        }
        let Some(ring) = rings.iter_mut().rev().find(|ring| !ring.ready.is_empty()) else {
            continue;
        };
        if ring.switching > 0 {
            ring.switching -= 1;
            continue;
        }
        let task = ring.ready[0];
        let (released, left) = jobs[task].front_mut().expect("a job of who is ready");
        *left -= 1;
        ring.turn -= 1;
        let is_done = *left == 0;
        if is_done {
            longest[task] = (now + 1 - *released).max(longest[task]);
            jobs[task].pop_front();
        }
        if is_done && jobs[task].is_empty() {
            ring.ready.pop_front();
            ring.turn = slice;
        } else if is_done || ring.turn == 0 {
            // The job that ended has already paid for the switch to the next task.
            ring.switching = if is_done || ring.ready.len() == 1 {
                0
            } else {
                switch
            };
            ring.turn = slice;
            ring.ready.rotate_left(1);
        }
    }
    longest
}

fn tasks() -> impl Strategy<Value = Vec<((u8, u64, u64), u64)>> {
    let task = (1..4_u8, 5..60_u64, 150..900_u64);
    prop::collection::vec((task, 0..100_u64), 2..5)
}

proptest! {
    #![proptest_config(crate::cases(300, 2000))]

    #[test]
    fn a_round_robin_keeps_the_bounds(tasks in tasks(), slice in 3..40_u64, switch in 1..4_u64) {
        let (tasks, phases): (Vec<_>, Vec<_>) = tasks.into_iter().unzip();
        let system = sliced(Some(slice), switch, &tasks);
        let seen = observed(&system, &phases, 5_000);
        for (bound, seen) in responses(&system).into_iter().zip(seen) {
            prop_assert!(bound.is_none_or(|bound| seen <= bound), "{seen} above {bound:?}");
        }
    }
}

/// Checks that the simulated round robin does switch. Without the demand of the slices the bounds
/// would be 310 and 360, which would be too low.
#[test]
fn a_round_robin_needs_more_than_a_switch_per_release() {
    let seen = observed(&sliced(Some(30), 10, &FOUR), &[0; 4], 5_000);
    assert_eq!(seen, [60, 310, 370, 420]);
}
