// SPDX-License-Identifier: MIT OR Apache-2.0
//! Analyses a whole system. It first computes how late timers are served, because the limiters'
//! curves depend on that, and then every response time.

use rayon::prelude::*;
use weir_model::{Expiry, Policy, System};

use crate::limiter::longest_borne;
use crate::rta::{Limits, NoBound, Problem, Solution, solve_within};
use crate::units::{Latencies, Part, Unit, Units, longest_timer};

/// The results for one unit.
#[derive(Debug, Clone)]
pub struct Row {
    /// The analysed interrupt, task or bottom half.
    pub unit: Unit,
    /// Cycles for which less urgent work can keep the unit waiting.
    pub blocking: u64,
    /// The worst-case response time with the windows that prove it, or the reason why there is
    /// none.
    pub outcome: Result<Solution, BoundFailure>,
}

/// Why a unit has no worst-case response time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoundFailure {
    /// These more urgent sources, or the unit's own source, may interrupt without bound (the pure
    /// interrupts of regehr2005 §5.2).
    Starved(Vec<Part>),
    /// The demand has no bound.
    NoBound(NoBound),
}

impl Row {
    /// Whether the unit keeps its deadline. `None` if it has no deadline.
    #[must_use]
    pub fn holds(&self) -> Option<bool> {
        let deadline = self.unit.deadline?;
        Some(
            self.outcome
                .as_ref()
                .is_ok_and(|solution| solution.response <= deadline),
        )
    }
}

/// The results for a whole system.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// One row per interrupt, task and bottom half, in the order of [`Units::units`].
    pub rows: Vec<Row>,
    /// The most cycles by which each source's timer is served late.
    pub latencies: Latencies,
}

impl Analysis {
    /// Whether every unit that has a deadline keeps it.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.holds() != Some(false))
    }

    /// The longest response time, in cycles, of a receiver's own jobs, whether time or packets
    /// release them. The bound of a job that a packet releases also holds from the packet's
    /// delivery, because the job's release is the end of the packet's top half. `None` if there is
    /// no bound, or if the receiver has no work of its own. `system` must be the system that was
    /// analysed.
    #[must_use]
    pub fn response_of(&self, system: &System, receiver: usize) -> Option<u64> {
        let rows = self.rows.iter();
        rows.filter(|row| row.unit.part.worker(system) == Some(receiver))
            .map(|row| row.outcome.as_ref().ok().map(|solution| solution.response))
            .try_fold(None, |longest, response| Some(longest.max(Some(response?))))
            .flatten()
    }

    /// The row of a unit; `None` if there is no such unit.
    #[must_use]
    pub fn row(&self, part: Part) -> Option<&Row> {
        self.rows.iter().find(|row| row.unit.part == part)
    }
}

/// The most rounds for the latencies. A latency that still grows then is set to a whole interval,
/// the most that matters (J in core/CONTRACTS.md).
const MOST_ROUNDS: usize = 64;

/// Analyses `system`, which may be any system that the model accepts. A demand beyond the
/// processor's capacity gives rows without a bound.
#[must_use]
pub fn analyse(system: &System) -> Analysis {
    let latencies = latencies(system);
    let units = Units::new(system, &latencies);
    let rows = each(units.units.len(), |index| {
        units.units.get(index).map(|unit| row(&units, unit))
    });
    Analysis {
        rows: rows.into_iter().flatten().collect(),
        latencies,
    }
}

/// Whether every unit that has a deadline keeps it. Works like [`analyse`], but stops at the first
/// unit that does not. Deadlines of packets belong to flows and are not checked here:
/// [`keeps_deadlines`](crate::check::keeps_deadlines) checks them too.
#[must_use]
pub fn units_hold(system: &System) -> bool {
    let latencies = latencies(system);
    let units = Units::new(system, &latencies);
    let keeps = |unit: &Unit| {
        unit.deadline.is_none_or(|deadline| {
            let limits = Limits {
                response: deadline,
                ..Limits::NONE
            };
            row_within(&units, unit, limits).holds() == Some(true)
        })
    };
    if units.units.len() < WORTH_THREADS {
        units.units.iter().all(keeps)
    } else {
        units.units.par_iter().all(keeps)
    }
}

/// The least number of units for which several threads are used.
const WORTH_THREADS: usize = 128;

/// Calls `of` for each number below `count` and returns the results in order. Uses all processors
/// if there are many numbers.
pub(crate) fn each<T: Send>(count: usize, of: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if count < WORTH_THREADS {
        (0..count).map(of).collect()
    } else {
        (0..count).into_par_iter().map(of).collect()
    }
}

pub(crate) fn row(units: &Units, unit: &Unit) -> Row {
    row_within(units, unit, Limits::NONE)
}

fn row_within(units: &Units, unit: &Unit, limits: Limits) -> Row {
    let blocking = units.blocking(unit);
    let outcome = match (&unit.own, units.interference(unit)) {
        (None, _) => Err(BoundFailure::Starved(vec![unit.part])),
        (_, Err(parts)) => Err(BoundFailure::Starved(parts)),
        (Some(own), Ok(interference)) => solve_within(
            &Problem {
                own,
                blocking,
                until_start: &interference.until_start(),
                throughout: &interference.throughout,
            },
            limits,
        )
        .map_err(BoundFailure::NoBound),
    };
    Row {
        unit: unit.clone(),
        blocking,
        outcome,
    }
}

/// How late each source's interrupts can begin. This is the least fixed point of two dependencies:
/// limiters' curves depend on latencies, and latencies depend on the curves.
fn latencies(system: &System) -> Latencies {
    // With this latency, the analysis no longer relies on any source staying below its limit.
    let at_most = |source| {
        let longest = longest_borne(source, system.cpu.clock_hz);
        most_latency(source).max(longest.map_or(0, |longest| longest.saturating_add(1)))
    };
    let mut latencies = Latencies {
        source: vec![0; system.sources.len()],
    };
    for _ in 0..MOST_ROUNDS {
        let next = latencies_after(system, &latencies);
        if next == latencies {
            return latencies;
        }
        latencies = next;
    }
    Latencies {
        source: system.sources.iter().map(at_most).collect(),
    }
}

fn most_latency(source: &weir_model::Source) -> u64 {
    source.limit.interval.cycles().saturating_sub(1)
}

fn latencies_after(system: &System, latencies: &Latencies) -> Latencies {
    let units = Units::new(system, latencies);
    let late = |part: Part, most: u64| {
        let unit = units.units.iter().find(|unit| unit.part == part)?;
        let limits = Limits {
            start_delay: most,
            ..Limits::NONE
        };
        let row = row_within(&units, unit, limits);
        row.outcome.ok().map(|of| of.start_delay)
    };
    let timers = each(system.timers.len(), |timer| {
        let period = system.timers.get(timer)?.period.cycles();
        Some(late(Part::Timer(timer), period)?.saturating_add(longest_timer(system, timer)))
    });
    let source = each(system.sources.len(), |index| {
        let Some(source) = system.sources.get(index) else {
            return 0;
        };
        let before = latencies.source.get(index).copied().unwrap_or(0);
        let expiry = match &source.limit.expiry {
            None => Some(0),
            _ if matches!(source.limit.policy, Policy::Off | Policy::Poll) => Some(0),
            Some(Expiry::Own { .. }) => match units.tasks(index).map(|of| of.expiry.is_some()) {
                Some(true) => late(Part::Expiry(index), most_latency(source)),
                _ => Some(0),
            },
            Some(Expiry::Shared(timer)) => timers.get(*timer).copied().flatten(),
        };
        let expiry = expiry.unwrap_or(u64::MAX).min(most_latency(source));
        let now = match longest_borne(source, system.cpu.clock_hz) {
            Some(longest) if units.is_counted_on(index) => late(Part::Request(index), longest)
                .map(|request| expiry.saturating_add(request))
                .filter(|&both| both <= longest)
                // With a longer latency the analysis no longer relies on the source staying below
                // its limit.
                .unwrap_or(expiry.max(longest.saturating_add(1))),
            _ => expiry,
        };
        now.max(before)
    });
    Latencies { source }
}
