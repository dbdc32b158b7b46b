// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reason why no limits suffice: a set of demands that cannot be kept together, although the
//! rest can if any one of them is dropped.
//!
//! This is the deletion filter of Chinneck and Dravnieks ("Locating minimal infeasible constraint
//! sets in linear programs", ORSA Journal on Computing 3, 1991): drop one demand after the other,
//! and leave it out for good if the rest is still infeasible.

use weir_model::{Interval, Place, Policy, System};

use crate::search::{NEVER, is_conceivable, is_feasible};
use crate::task::TuningTask;

/// A demand on a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// The deadline of the receiver with this index in [`System::receivers`].
    TaskDeadline(usize),
    /// The deadline of the handler of the source with this index in [`System::sources`].
    HandlerDeadline(usize),
    /// The rate at which the source with this index in [`System::sources`] is to be served: the
    /// expected one or, if it states none, a hundredth of the tolerated one.
    Rate(usize),
}

/// Demands that cannot be kept together, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Demands that fail together; without any one of them, the others could be kept. Deadlines
    /// come first, otherwise they are in the file's order. Empty: the demands are not the reason.
    pub demands: Vec<Demand>,
    /// Could they be kept if limiters cost nothing and could let through any rate? Then only the
    /// timers do not suffice.
    pub for_want_of_timers: bool,
}

/// The demands of an infeasible task that fail together. `keep` is the argument with which the task
/// was made ([`TuningTask::new`]).
#[must_use]
pub fn explain(task: &TuningTask, keep: &[usize]) -> Conflict {
    let system = task.system;
    let tuned: Vec<usize> = task.tuned.iter().map(|tuned| tuned.source).collect();
    let mut demands: Vec<Demand> = deadlines(system);
    demands.extend(tuned.iter().map(|&source| Demand::Rate(source)));
    let is_feasible_with = |demands: &[Demand]| {
        let (relaxed, keep) = relaxed(system, demands, &tuned, keep);
        is_feasible(&task.with(&relaxed, &keep))
    };
    if !is_feasible_with(&[]) {
        return Conflict {
            demands: Vec::new(),
            for_want_of_timers: false,
        };
    }
    // Demands that are tried first are the likeliest to be dropped, so the rarest causes come
    // first.
    let mut index = 0;
    while index < demands.len() {
        let mut fewer = demands.clone();
        fewer.remove(index);
        if is_feasible_with(&fewer) {
            index += 1;
        } else {
            demands = fewer;
        }
    }
    let (relaxed, keep) = relaxed(system, &demands, &tuned, keep);
    Conflict {
        for_want_of_timers: is_conceivable(&task.with(&relaxed, &keep)),
        demands,
    }
}

fn deadlines(system: &System) -> Vec<Demand> {
    let of_tasks = system.receivers.iter().enumerate();
    let of_handlers = system.sources.iter().enumerate();
    of_tasks
        .filter(|(_, receiver)| receiver.deadline.is_some())
        .map(|(index, _)| Demand::TaskDeadline(index))
        .chain(
            of_handlers
                .filter(|(_, source)| source.deadline.is_some())
                .map(|(index, _)| Demand::HandlerDeadline(index)),
        )
        .collect()
}

/// The system with only `demands`, and the sources that are then not tuned. A source whose rate is
/// not demanded does not interrupt.
fn relaxed(
    system: &System,
    demands: &[Demand],
    tuned: &[usize],
    keep: &[usize],
) -> (System, Vec<usize>) {
    let mut relaxed = system.clone();
    let mut keep = keep.to_vec();
    for (index, receiver) in relaxed.receivers.iter_mut().enumerate() {
        if !demands.contains(&Demand::TaskDeadline(index)) {
            receiver.deadline = None;
        }
    }
    for (index, source) in relaxed.sources.iter_mut().enumerate() {
        if !demands.contains(&Demand::HandlerDeadline(index)) {
            source.deadline = None;
        }
        if tuned.contains(&index) && !demands.contains(&Demand::Rate(index)) {
            source.limit.policy = Policy::Strict;
            source.limit.place = Place::Hardware;
            source.limit.interval = Interval::of_cycles(NEVER);
            source.limit.expiry = None;
            source.limit.silicon = None;
            keep.push(index);
        }
    }
    (relaxed, keep)
}
