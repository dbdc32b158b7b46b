// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the work that a row waits for longest, which is where to begin if the row misses its
//! deadline.
use serde::Serialize;
use weir_model::System;

use super::identity::{RowKind, identity};
use crate::analysis::{BoundFailure, Row};
use crate::rta::{Demand, NoBound};
use crate::units::{Part, Units};

/// The kind of work that a row waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkKind {
    /// The row's own jobs.
    Own,
    /// Less urgent work that has begun, and code that disables interrupts.
    Blocking,
    /// The interrupts of a source's line and of its own timer.
    Source,
    /// The interrupt of a shared timer.
    Timer,
    /// A receiver's own work.
    Task,
    /// The bottom halves of a flow.
    BottomHalf,
}

/// The largest part of the time that a row takes. If the row needs more than the processor has, it
/// is the largest part of the processor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LargestPart {
    /// The kind of the work.
    pub kind: WorkKind,
    /// The name of the source, timer, receiver or flow; `None` for the row's own work and for
    /// blocking.
    pub name: Option<String>,
    /// Cycles of this part, from the start of the busy window of the job that takes longest to the
    /// end of that job. `None` if there is no such window.
    pub cycles: Option<u64>,
    /// All cycles of the same time; `None` if there is no such window.
    pub of_cycles: Option<u64>,
    /// The part's share of the processor in the long run; `None` if there is a window.
    pub utilisation: Option<f64>,
}

/// The largest part of `row`, if the row misses its deadline or needs more than the processor has.
pub(super) fn largest_part(system: &System, units: &Units, row: &Row) -> Option<LargestPart> {
    if row.holds() != Some(false) {
        return None;
    }
    let own = row.unit.own.as_ref()?;
    let interference = units.interference(&row.unit).ok()?;
    let until_start = interference.until_start();
    let delays = until_start.iter().map(|demand| (*demand, true));
    let all = delays.chain(
        interference
            .throughout
            .iter()
            .map(|demand| (*demand, false)),
    );
    // The instruction between two interrupts and the context switches belong to no unit, so they
    // have no name.
    let named = all.filter_map(|(demand, delays)| Some((units.owner(demand)?, demand, delays)));
    match &row.outcome {
        Ok(solution) => {
            let job = solution
                .jobs
                .iter()
                .max_by_key(|job| job.finish - job.arrival)?;
            let cycles = |demand: &Demand, delays: bool| {
                // Work that only delays the start comes before the job's first cycle.
                demand.cycles(if delays { job.start + 1 } else { job.finish })
            };
            let mut parts = Parts::default();
            parts.add(WorkKind::Own, None, own.cycles(job.arrival + 1));
            parts.add(WorkKind::Blocking, None, row.blocking);
            for (part, demand, delays) in named {
                parts.add_part(system, part, cycles(demand, delays));
            }
            let (kind, name, cycles) = parts.largest(u64::cmp)?;
            Some(LargestPart {
                kind,
                name,
                cycles: Some(cycles),
                of_cycles: Some(job.finish),
                utilisation: None,
            })
        }
        Err(BoundFailure::NoBound(NoBound::Overload)) => {
            let mut parts = Parts::default();
            parts.add(WorkKind::Own, None, own.utilisation());
            for (part, demand, _) in named {
                parts.add_part(system, part, demand.utilisation());
            }
            let (kind, name, share) = parts.largest(f64::total_cmp)?;
            Some(LargestPart {
                kind,
                name,
                cycles: None,
                of_cycles: None,
                utilisation: Some(share),
            })
        }
        Err(_) => None,
    }
}

/// Sums of work, grouped by kind and name.
#[derive(Debug, Default)]
struct Parts<T>(Vec<(WorkKind, Option<String>, T)>);

impl<T: Copy + std::ops::AddAssign> Parts<T> {
    fn add(&mut self, kind: WorkKind, name: Option<String>, much: T) {
        let same = |of: &&mut (WorkKind, Option<String>, T)| (of.0, &of.1) == (kind, &name);
        match self.0.iter_mut().find(same) {
            Some((_, _, sum)) => *sum += much,
            None => self.0.push((kind, name, much)),
        }
    }

    fn add_part(&mut self, system: &System, part: Part, much: T) {
        let (kind, name, ..) = identity(system, part);
        let kind = match kind {
            RowKind::Interrupt | RowKind::Expiry => WorkKind::Source,
            RowKind::Timer => WorkKind::Timer,
            RowKind::Task => WorkKind::Task,
            RowKind::BottomHalf => WorkKind::BottomHalf,
        };
        self.add(kind, Some(name.to_owned()), much);
    }

    fn largest(
        self,
        order: impl Fn(&T, &T) -> std::cmp::Ordering,
    ) -> Option<(WorkKind, Option<String>, T)> {
        self.0.into_iter().max_by(|a, b| order(&a.2, &b.2))
    }
}
