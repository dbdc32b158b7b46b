// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `weir check` has to say about a system, as data: a verdict, the rows behind it, what it
//! rests on, what the limits buy and how far the sources could go.
//!
//! Everything refers to sources, timers, receivers and flows by their names, so that it can be
//! printed or written as JSON as it is: the types' fields are the keys of `weir check --json`.
//! Times are in cycles of the processor, rates in hertz, shares of the processor from 0 to 1.
mod assumptions;
mod bound;
mod flows;
mod longest;
mod rows;
mod sources;

use serde::Serialize;
use weir_model::{Policy, System};

pub use assumptions::{AssumedCost, Assumptions, ByOrigin};
pub use bound::{Bound, BoundState, Cause, MOST_NAMED};
pub use flows::FlowRow;
pub(crate) use flows::flows;
pub use longest::{LongestRun, longest_runs};
pub use rows::{Arrivals, Row, RowKind};
pub use sources::{Headroom, SourceRow};

use crate::analysis::{Analysis, analyse, holds};
use crate::rta::Demand;
use crate::units::{Part, Units};

/// Can something go wrong?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every deadline holds, on the assumptions that are listed.
    Guaranteed,
    /// A row or a flow misses its deadline, or may.
    NotGuaranteed,
    /// Nothing misses its deadline, but that is worth nothing: a source does not state the most
    /// work of one interrupt, or nothing has a deadline.
    NotProven,
}

/// Everything there is to say about a system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// The answer.
    pub verdict: Verdict,
    /// The share of the processor that is asked for at worst in the long run; above 1 it cannot be
    /// given. None: a source without bound.
    pub utilisation: Option<f64>,
    /// Interrupts, tasks and bottom halves; what the processor runs first comes first.
    pub rows: Vec<Row>,
    /// The sources in the file's order.
    pub sources: Vec<SourceRow>,
    /// The name of the source whose rate is nearest to breaking a deadline, or whose rate has to
    /// fall least for all to hold; none if no rate of a single source decides.
    pub most_critical: Option<String>,
    /// The flows in the file's order.
    pub flows: Vec<FlowRow>,
    /// What all this rests on.
    pub assumptions: Assumptions,
}

/// A part of the work of [`report`], told before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The system as if it had no limits.
    WithoutLimits,
    /// How far each rate could rise.
    Headroom,
    /// Whether the guarantee needs the rates that the file states.
    Rates,
}

/// Steps that [`report`] tells of.
pub const STEPS: u64 = 3;

/// The report on `system`, whose analysis is `analysis`. Calls `begins` before each step, for
/// whoever waits.
#[must_use]
pub fn report(system: &System, analysis: &Analysis, begins: &mut dyn FnMut(Step)) -> CheckReport {
    let units = Units::new(system, &analysis.latencies);
    begins(Step::WithoutLimits);
    let unlimited = system
        .sources
        .iter()
        .any(|source| source.limit.policy != Policy::Off)
        .then(|| analyse(&without_limits(system)));
    let rows = rows::rows(system, &units, analysis, unlimited.as_ref());
    let flows = flows(system, &units, analysis);
    begins(Step::Headroom);
    let sources = sources::sources(system, analysis);
    begins(Step::Rates);
    let verdict = verdict(system, analysis, &flows);
    let assumptions = assumptions::assumptions(system, verdict != Verdict::NotGuaranteed);
    CheckReport {
        verdict,
        utilisation: utilisation(system, &units),
        most_critical: sources::most_critical(&sources),
        rows,
        sources,
        flows,
        assumptions,
    }
}

pub(crate) fn verdict(system: &System, analysis: &Analysis, flows: &[FlowRow]) -> Verdict {
    let kept = analysis.holds() && flows.iter().all(|flow| !flow.misses());
    let has_deadline = analysis.rows.iter().any(|row| row.unit.deadline.is_some())
        || flows.iter().any(|flow| flow.deadline_cycles.is_some());
    let states_work = system
        .sources
        .iter()
        .all(|source| source.max_work.is_some());
    match (kept, has_deadline && states_work) {
        (false, _) => Verdict::NotGuaranteed,
        (true, false) => Verdict::NotProven,
        (true, true) => Verdict::Guaranteed,
    }
}

/// Does every unit *and every flow* of `system` keep its deadline?
#[must_use]
pub fn keeps_deadlines(system: &System) -> bool {
    if has_flow_deadlines(system) {
        first_miss(system).is_none()
    } else {
        holds(system)
    }
}

/// Is there more to keep than the deadlines of units, which [`holds`] looks at?
pub(crate) fn has_flow_deadlines(system: &System) -> bool {
    system.flows.iter().any(|flow| flow.deadline.is_some())
}

/// A unit that misses its deadline, or the bottom half of a flow that does.
pub(crate) fn first_miss(system: &System) -> Option<Part> {
    let analysis = analyse(system);
    let late = analysis
        .rows
        .iter()
        .find(|row| row.holds() == Some(false))
        .map(|row| row.unit.part);
    late.or_else(|| {
        let units = Units::new(system, &analysis.latencies);
        flows::flows(system, &units, &analysis)
            .iter()
            .position(FlowRow::misses)
            .map(Part::BottomHalf)
    })
}

/// `system` with every source interrupting as it likes (regehr2005 §5.2's pure interrupts): no
/// limit in software or hardware, no polling, no timers for them.
#[must_use]
pub fn without_limits(system: &System) -> System {
    let mut unlimited = system.clone();
    for source in &mut unlimited.sources {
        source.limit.policy = Policy::Off;
        source.limit.expiry = None;
        source.limit.costs = system.cpu.unlimited;
    }
    unlimited.timers.clear();
    unlimited
}

/// Rows cannot be added up: a request that was held back is served by the line's interrupt or by
/// the timer's, not by both.
fn utilisation(system: &System, units: &Units) -> Option<f64> {
    let mut sum = 0.0;
    for source in 0..system.sources.len() {
        let tasks = units.tasks(source)?;
        tasks.serves.as_ref()?;
        sum += tasks.together.iter().map(Demand::utilisation).sum::<f64>();
    }
    for unit in &units.units {
        if !unit.part.is_interrupt() {
            sum += unit.own.as_ref()?.utilisation();
        }
    }
    let timers = (0..system.timers.len()).filter_map(|timer| units.timer(timer));
    let others = timers.chain(units.switches());
    Some(sum + others.map(Demand::utilisation).sum::<f64>())
}

impl CheckReport {
    /// The rows that miss their deadline, most urgent first.
    pub fn missing_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.misses())
    }

    /// The flows that miss their deadline or lose packets that have one.
    pub fn missing_flows(&self) -> impl Iterator<Item = &FlowRow> {
        self.flows.iter().filter(|flow| flow.misses())
    }
}
