// SPDX-License-Identifier: MIT OR Apache-2.0
//! The demand of the interrupt of a timer that several limits share (regehr2005 §3.5).

use weir_model::{Expiry, Source, System};

use crate::curve::{Curve, FOREVER, Staircase};
use crate::limiter::{self, Tasks, body};
use crate::rta::Demand;

/// The sources that a shared timer clears, with their indices.
fn cleared_by(system: &System, timer: usize) -> impl Iterator<Item = (usize, &Source)> {
    system
        .sources
        .iter()
        .enumerate()
        .filter(move |(_, source)| source.limit.expiry == Some(Expiry::Shared(timer)))
}

/// The demand of a shared timer's interrupt as other units see it.
#[derive(Debug)]
pub(crate) struct TimerDemands {
    /// The demand without the handlers that run inside the interrupt, because they count as runs of
    /// the sources' lines.
    pub by_tasks: Demand,
    /// The demand with those handlers, because an interrupt may rank above the line of a source
    /// that the timer serves. It includes the instruction that runs between two interrupts.
    pub by_interrupts: Demand,
}

impl TimerDemands {
    /// Computes the demands of a timer of `system`, whose sources have the demands `tasks`.
    pub fn new(system: &System, timer: usize, tasks: &[Tasks]) -> Self {
        let (base, period) = system
            .timers
            .get(timer)
            .map_or((0, FOREVER), |of| (of.base, of.period.cycles()));
        let clears = cleared_by(system, timer)
            .filter_map(|(source, _)| tasks.get(source))
            .fold(base, |sum, of| sum.saturating_add(of.shared));
        let longest = longest_timer(system, timer);
        let of = |cost: u64| Demand {
            cost,
            curve: Curve::new(Staircase::sporadic(period, 0)),
        };
        Self {
            by_tasks: of(clears),
            by_interrupts: of(longest.saturating_add(system.cpu.longest_instruction)),
        }
    }
}

/// The longest run of a shared timer's interrupt, in cycles.
#[must_use]
pub fn longest_timer(system: &System, timer: usize) -> u64 {
    let base = system.timers.get(timer).map_or(0, |of| of.base);
    cleared_by(system, timer)
        .map(|(index, source)| limiter::longest_expiry(&source.limit, body(system, index)))
        .fold(base, u64::saturating_add)
}
