// SPDX-License-Identifier: MIT OR Apache-2.0
//! The analysis of a whole system: first how late timers are served, on which the limiters' curves
//! depend, then every response time.

use rayon::prelude::*;
use weir_model::{Expiry, Policy, System};

use crate::limiter::longest_borne;
use crate::rta::{Limits, NoBound, Problem, Solution, solve_within};
use crate::units::{Latencies, Part, Unit, Units, longest_timer};

/// The results for one unit.
#[derive(Debug, Clone)]
pub struct Row {
    /// The unit.
    pub unit: Unit,
    /// Cycles for which less urgent work can keep the unit waiting.
    pub blocking: u64,
    /// Its worst-case response time with what shows it, or why there is none.
    pub outcome: Result<Solution, BoundFailure>,
}

/// Why a unit has no worst-case response time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoundFailure {
    /// These more urgent sources, or this one itself, may interrupt without end (the pure
    /// interrupts of regehr2005 §5.2).
    Starved(Vec<Part>),
    /// The demand leaves no bound.
    NoBound(NoBound),
}

impl Row {
    /// Does the unit keep its deadline? None: it has none.
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

/// What a system guarantees.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// A row per interrupt, task and bottom half, in the order of [`Units::units`].
    pub rows: Vec<Row>,
    /// How late each source's timer is served.
    pub latencies: Latencies,
}

impl Analysis {
    /// Does every unit that has a deadline keep it?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.holds() != Some(false))
    }

    /// The longest response time in cycles of a receiver's own jobs, whether time or packets
    /// release them. A job that a packet releases begins at the end of its top half, so that the
    /// bound holds from the packet's delivery, too. None: there is no bound, or the receiver does
    /// nothing itself. `system` is the one that was analysed.
    #[must_use]
    pub fn response_of(&self, system: &System, receiver: usize) -> Option<u64> {
        let rows = self.rows.iter();
        rows.filter(|row| row.unit.part.worker(system) == Some(receiver))
            .map(|row| row.outcome.as_ref().ok().map(|solution| solution.response))
            .try_fold(None, |longest, response| Some(longest.max(Some(response?))))
            .flatten()
    }

    /// The row of a unit.
    #[must_use]
    pub fn row(&self, part: Part) -> Option<&Row> {
        self.rows.iter().find(|row| row.unit.part == part)
    }
}

/// After so many rounds, a latency that still grows is taken for a whole interval, the most that
/// matters (J in CONTRACTS.md).
const MOST_ROUNDS: usize = 64;

/// Analyses `system`, which may be any that the model lets through. A demand beyond the processor
/// gives rows without bound.
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

/// Does every unit that has a deadline keep it? Like [`analyse`], but stops at the first unit that
/// does not. Deadlines of packets are those of flows:
/// [`keeps_deadlines`](crate::check::keeps_deadlines) looks at them, too.
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

/// The fewest units for which another thread is woken up.
const WORTH_THREADS: usize = 128;

/// Gives `of` for each number below `count`, in order; on all processors if there are many.
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

/// How late each source's interrupts can begin: the least solution of the system in which limiters'
/// curves depend on latencies, and latencies on curves.
fn latencies(system: &System) -> Latencies {
    // With this latency, no source is counted on to stay below its limit.
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
                // With a longer latency it is no longer counted on.
                .unwrap_or(expiry.max(longest.saturating_add(1))),
            _ => expiry,
        };
        now.max(before)
    });
    Latencies { source }
}
