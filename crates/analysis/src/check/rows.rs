// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of the report: every interrupt, task and bottom half with its worst case.
use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;
use weir_model::System;

use super::bound::{Bound, BoundState};
use super::identity::{RowKind, identity};
use super::largest::{LargestPart, largest_part};
use crate::analysis::{self, Analysis};
use crate::curve::Curve;
use crate::limiter::Interrupt;
use crate::rta::Demand;
use crate::units::{Part, Unit, Units};

/// The worst-case arrivals of a row's jobs, in the terms of the real-time literature: `events` jobs
/// per period, each late by at most the jitter. A doubled burst is a jitter of one period
/// (regehr2005 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Arrivals {
    /// Jobs per period: the burst of a bursty limit, otherwise 1.
    pub events: u64,
    /// T, the period.
    pub period_cycles: u64,
    /// J, the jitter.
    pub jitter_cycles: u64,
}

/// An interrupt, a task or a bottom half.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The unit of the analysis that the row describes.
    #[serde(skip)]
    pub part: Part,
    /// The kind of the row.
    pub kind: RowKind,
    /// The name of the row's source, timer, receiver or flow.
    pub name: String,
    /// The flow whose packets release the task. `None` if time releases it, or if the row is not a
    /// task.
    pub flow: Option<String>,
    /// The interrupt's vector; `None` for tasks and bottom halves.
    pub vector: Option<String>,
    /// The urgency of the task, or of the bottom half's receiver; `None` for interrupts.
    pub urgency: Option<u8>,
    /// The share of the processor that the row needs at worst in the long run, with the cost of
    /// refused requests. `None` if there is no bound.
    pub utilisation: Option<f64>,
    /// C, the worst cost of one job.
    pub cost_cycles: u64,
    /// T and J; `None` if there is no bound.
    pub arrivals: Option<Arrivals>,
    /// The deadline from the release or, for a task that packets release, from the delivery. `None`
    /// if the row has no deadline.
    pub deadline_cycles: Option<u64>,
    /// The worst-case response time, compared with the deadline.
    #[serde(flatten)]
    pub bound: Bound,
    /// The work that takes most of the time, if the row misses its deadline.
    pub largest_part: Option<LargestPart>,
    /// The worst case if no source had a limit. `None` if no source has one, or if the row is the
    /// interrupt of a limit's timer.
    pub without_limits: Option<Bound>,
}

impl Row {
    /// Whether the row has a deadline that it may miss.
    #[must_use]
    pub fn misses(&self) -> bool {
        self.deadline_cycles.is_some() && self.bound.state != BoundState::Ok
    }

    /// Whether the row would lose its bound, or miss its deadline, without the limits.
    #[must_use]
    pub fn needs_limits(&self) -> bool {
        self.bound.state == BoundState::Ok
            && self
                .without_limits
                .as_ref()
                .is_some_and(|bound| bound.state != BoundState::Ok)
    }
}

/// The rows of `system`, in the order in which the processor prefers them. Rows of equal rank are
/// in the system's order.
pub(super) fn rows(
    system: &System,
    units: &Units,
    analysis: &Analysis,
    unlimited: Option<&Analysis>,
) -> Vec<Row> {
    let unlimited: Option<HashMap<Part, &analysis::Row>> =
        unlimited.map(|of| of.rows.iter().map(|row| (row.unit.part, row)).collect());
    let mut sorted: Vec<&analysis::Row> = analysis.rows.iter().collect();
    sorted.sort_by_key(|row| Reverse(row.unit.place.rank));
    sorted
        .into_iter()
        .map(|row| {
            let without_limits = unlimited
                .as_ref()
                .and_then(|of| of.get(&counterpart(units, row.unit.part)))
                .map(|without| Bound::of(system, without, row.unit.deadline));
            described(system, units, row, without_limits)
        })
        .collect()
}

/// The unit that does the same work in the system without limits. There the line of a polled source
/// interrupts.
fn counterpart(units: &Units, part: Part) -> Part {
    match part {
        Part::Expiry(source) if units.tasks(source).is_some_and(|of| of.request.is_none()) => {
            Part::Request(source)
        }
        other => other,
    }
}

fn described(
    system: &System,
    units: &Units,
    row: &analysis::Row,
    without_limits: Option<Bound>,
) -> Row {
    let unit = &row.unit;
    let (kind, name, vector, urgency) = identity(system, unit.part);
    Row {
        part: unit.part,
        kind,
        name: name.to_owned(),
        flow: match unit.part {
            Part::Delivered(index) => system.flows.get(index).map(|of| of.name.clone()),
            _ => None,
        },
        vector: vector.map(str::to_owned),
        urgency,
        utilisation: utilisation(units, unit),
        cost_cycles: unit.own.as_ref().map_or(unit.longest, |own| own.cost),
        arrivals: unit.own.as_ref().and_then(|own| arrivals(&own.curve)),
        deadline_cycles: unit.deadline,
        bound: Bound::of(system, row, unit.deadline),
        largest_part: largest_part(system, units, row),
        without_limits,
    }
}

fn utilisation(units: &Units, unit: &Unit) -> Option<f64> {
    let own = unit.own.as_ref()?;
    let interrupt = match unit.part {
        Part::Request(source) => units.tasks(source).and_then(|of| of.request.as_ref()),
        _ => None,
    };
    let all = interrupt.map(|of: &Interrupt| of.demands().map(Demand::utilisation).sum());
    Some(all.unwrap_or_else(|| own.utilisation()))
}

/// Describes a curve by its staircase of the least rate, which decides in the long run. Its base is
/// turned into jitter: (base, step, T, J) never allows more than (step, step, T, J'), where J' is
/// longer by one period for each step by which base exceeds step.
fn arrivals(curve: &Curve) -> Option<Arrivals> {
    let rarest = curve.staircases().filter(|of| of.step > 0).min_by(|a, b| {
        let (left, right) = (
            u128::from(a.step) * u128::from(b.period),
            u128::from(b.step) * u128::from(a.period),
        );
        left.cmp(&right).then(a.base.cmp(&b.base))
    })?;
    let early = rarest
        .base
        .saturating_sub(rarest.step)
        .div_ceil(rarest.step);
    Some(Arrivals {
        events: rarest.step,
        period_cycles: rarest.period,
        jitter_cycles: rarest
            .jitter
            .saturating_add(early.saturating_mul(rarest.period)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Staircase;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn arrivals_never_promise_less_than_the_curve(
            base in 1..9_u64, step in 1..5_u64, period in 1..50_u64, jitter in 0..90_u64, delta in 1..1000_u64,
        ) {
            let curve = Curve::new(Staircase { base, step, period, jitter });
            let told = arrivals(&curve).unwrap();
            let as_task = Staircase {
                base: told.events,
                step: told.events,
                period: told.period_cycles,
                jitter: told.jitter_cycles,
            };
            prop_assert!(as_task.events(delta) >= curve.events(delta));
        }
    }

    #[test]
    fn a_doubled_burst_is_a_jitter_of_a_period() {
        let bursty = Curve::new(Staircase {
            base: 8,
            step: 4,
            period: 1000,
            jitter: 30,
        });
        let told = arrivals(&bursty).unwrap();
        assert_eq!(
            (told.events, told.period_cycles, told.jitter_cycles),
            (4, 1000, 1030)
        );
    }
}
