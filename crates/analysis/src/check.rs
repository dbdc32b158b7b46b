// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of `weir check` as data: a verdict, the rows behind it, its assumptions, the effect
//! of the limits, and the headroom of the sources.
//!
//! Sources, timers, receivers and flows are referred to by name, so that the data can be printed or
//! written as JSON without a change. The fields of these types are the keys of `weir check --json`.
//! Times are in cycles of the processor, rates in hertz, and shares of the processor from 0 to 1.
mod assumptions;
mod bound;
mod buffers;
pub(crate) mod deadlines;
mod flows;
mod identity;
mod largest;
mod longest;
mod rows;
mod sources;

use serde::Serialize;
use weir_model::{Policy, System};

pub use assumptions::{AssumedCost, Assumptions, ByOrigin};
pub use bound::{Bound, BoundState, Cause, MOST_NAMED};
pub use deadlines::{has_flow_deadlines, keeps_deadlines};
pub use flows::FlowRow;
pub(crate) use flows::flows;
pub use identity::RowKind;
pub use largest::{LargestPart, WorkKind};
pub use longest::{LongestRun, longest_runs};
pub use rows::{Arrivals, Row};
pub use sources::{Headroom, SourceRow};

use crate::analysis::{Analysis, analyse};
use crate::rta::Demand;
use crate::units::Units;

/// The answer to the question whether a deadline can be missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every deadline holds under the listed assumptions.
    Guaranteed,
    /// A row or a flow misses its deadline, or may miss it.
    NotGuaranteed,
    /// Nothing misses its deadline, but nothing is proven either. Either a source does not state
    /// the most work of one interrupt, or nothing has a deadline.
    NotProven,
}

/// The report on a system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// The verdict on the whole system.
    pub verdict: Verdict,
    /// The share of the processor that is demanded at worst in the long run. A value above 1
    /// exceeds the processor. `None` if a source has no bound.
    pub utilisation: Option<f64>,
    /// Interrupts, tasks and bottom halves, in the order in which the processor prefers them.
    pub rows: Vec<Row>,
    /// The sources in the file's order.
    pub sources: Vec<SourceRow>,
    /// The name of the source whose rate is nearest to breaking a deadline. If deadlines are
    /// missed, it is the source whose rate has to fall least for all to hold. `None` if no rate of
    /// a single source decides.
    pub most_critical: Option<String>,
    /// The flows in the file's order.
    pub flows: Vec<FlowRow>,
    /// The assumptions behind all results.
    pub assumptions: Assumptions,
}

/// A step of [`report`], announced before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The analysis of the system without its limits.
    WithoutLimits,
    /// The search for how far each rate could rise.
    Headroom,
    /// The test whether the guarantee needs the rates that the file states.
    Rates,
}

/// The number of steps that [`report`] announces.
pub const STEPS: u64 = 3;

/// Makes the report on `system`, whose analysis is `analysis`. Calls `begins` before each step, to
/// show progress.
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

/// The same system without limits. Every source interrupts as often as it requests (the pure
/// interrupts of regehr2005 §5.2). The system has no limit in software or hardware, no polling, and
/// no timers for them.
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

/// The utilisations of rows must not be added up. Either the line's interrupt or the timer's serves
/// a request that was held back, but both rows count it.
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
    /// The rows that miss their deadline, the most urgent first.
    pub fn missing_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.misses())
    }

    /// The flows that miss their deadline or lose packets that have one.
    pub fn missing_flows(&self) -> impl Iterator<Item = &FlowRow> {
        self.flows.iter().filter(|flow| flow.misses())
    }
}
