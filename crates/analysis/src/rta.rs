// SPDX-License-Identifier: MIT OR Apache-2.0
//! Response times under fixed priorities with preemption thresholds.
//!
//! One recurrence covers every processor that Weir supports. The threshold of a preemptive task is
//! its own priority. The threshold of an interrupt that nothing preempts is the highest priority,
//! and that of an interrupt in a preemption group is the highest of its group. (Wang and Saksena,
//! "Scheduling fixed-priority tasks with preemption threshold", RTCSA 1999; Regehr, "Scheduling
//! tasks with mixed preemption relations for robustness to timing faults", RTSS 2002.) The analysis
//! examines all jobs of the busy window, because the first job need not be the worst. The revised
//! analysis of non-preemptive scheduling requires this (Davis, Burns, Bril and Lukkien, "Controller
//! Area Network (CAN) schedulability analysis: Refuted, revisited and revised", Real-Time Systems
//! 35, 2007).
//!
//! Time is discrete; a window is half-open. Arrival curves, the fixed-point search and the
//! processor's supply come from the crate `response-time-analysis`. That crate's ready-made
//! analyses are not used: they have no mixed preemption, and they do not return the fixed points
//! that a certificate needs. The tests compare this module with them.

use std::cell::Cell;

use response_time_analysis::arrival::ArrivalBound;
use response_time_analysis::fixed_point::search_with_offset;
use response_time_analysis::supply::Dedicated;
use response_time_analysis::time::{Duration, Offset, Service};

use crate::curve::{Curve, FOREVER};

/// Demand for the processor: each event of `curve` costs `cost` cycles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// Cycles per event.
    pub cost: u64,
    /// The arrival curve of the events.
    pub curve: Curve,
}

impl Demand {
    /// The most cycles that are demanded in any half-open window of `delta` cycles.
    #[must_use]
    pub fn cycles(&self, delta: u64) -> u64 {
        self.cost.saturating_mul(self.curve.events(delta))
    }

    /// The share of the processor in the long run, from 0; 1 is the whole processor.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        self.cost as f64 * self.curve.rate()
    }
}

/// The input of the response-time analysis for one kind of job.
#[derive(Debug, Clone)]
pub struct Problem<'a> {
    /// The jobs under analysis. Each runs for `own.cost` cycles, and they run in FIFO order.
    pub own: &'a Demand,
    /// Cycles for which less urgent work can hold the processor when the busy window begins.
    pub blocking: u64,
    /// More urgent work that can delay a job's start but cannot preempt the job once it runs.
    pub until_start: &'a [&'a Demand],
    /// More urgent work that can delay a job's start and can also preempt the running job.
    pub throughout: &'a [&'a Demand],
}

impl Problem<'_> {
    /// The cycles that more urgent work demands in a window of `delta` cycles.
    #[must_use]
    pub fn urgent(&self, delta: u64) -> u64 {
        sum(self.until_start, delta).saturating_add(sum(self.throughout, delta))
    }
}

/// One job of the busy window. All times are in cycles from the window's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowJob {
    /// The job's earliest release.
    pub arrival: u64,
    /// The latest time of the job's first cycle.
    pub start: u64,
    /// The latest end of the job's last cycle.
    pub finish: u64,
}

/// The bounds on response time, with the fixed points that prove them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Solution {
    /// The longest window, in cycles, in which the processor is never free for less urgent work.
    pub busy_window: u64,
    /// One job for each step of the arrival curve inside the busy window: the last of the jobs that
    /// are released together at this step.
    pub jobs: Vec<WindowJob>,
    /// The worst-case response time in cycles, from release to end.
    pub response: u64,
    /// The longest time in cycles from a release to the job's first cycle.
    pub start_delay: u64,
}

/// The reason why there is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoBound {
    /// The long-run demand reaches or exceeds the processor's capacity.
    Overload,
    /// The busy window is longer than [`LONGEST_WINDOW`], or has more arrival steps than
    /// [`MOST_JOBS`].
    TooLong,
    /// A bound may exist, but it is above the [`Limits`] of the search.
    Exceeded,
}

/// The limits at which a search for a bound gives up, in cycles.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest response time that is accepted.
    pub response: u64,
    /// The largest start delay that is accepted.
    pub start_delay: u64,
}

impl Limits {
    /// The search gives up only at [`LONGEST_WINDOW`].
    pub const NONE: Self = Self {
        response: LONGEST_WINDOW,
        start_delay: LONGEST_WINDOW,
    };
}

/// The longest busy window that is searched, in cycles. A fixed point beyond it counts as no bound.
pub const LONGEST_WINDOW: u64 = 1 << 50;
/// The most steps of a job's arrival curve that are examined.
pub const MOST_JOBS: usize = 100_000;
/// A utilisation from this value on counts as 1. The distance to 1 is well above the rounding error
/// of a sum of some thousand terms of f64.
const FULL: f64 = 1.0 - 1e-11;

fn sum(demands: &[&Demand], delta: u64) -> u64 {
    demands.iter().fold(0_u64, |sum, demand| {
        sum.saturating_add(demand.cycles(delta))
    })
}

/// A straight line that lies below the demand in any window: cycles at zero, and cycles per cycle
/// of the window.
#[derive(Clone, Copy)]
struct DemandLine {
    intercept: f64,
    slope: f64,
}

impl DemandLine {
    fn below(demands: &[&Demand]) -> Self {
        demands.iter().fold(
            Self {
                intercept: 0.0,
                slope: 0.0,
            },
            |line, demand| Self {
                intercept: line.intercept + demand.cost as f64 * demand.curve.intercept(),
                slope: line.slope + demand.utilisation(),
            },
        )
    }

    fn plus(self, other: Self) -> Self {
        Self {
            intercept: self.intercept + other.intercept,
            slope: self.slope + other.slope,
        }
    }

    /// A lower bound on the fixed point of `constant` plus a demand above the line. The result is
    /// rounded down by far more than the rounding error of f64.
    fn least_fixed_point(self, constant: u64) -> u64 {
        let least = (constant as f64 + self.intercept) / (1.0 - self.slope);
        let safe = least * (1.0 - 1e-6) - 1.0;
        if safe.is_finite() && safe > 1.0 {
            // The cast saturates; the search refuses a window beyond LONGEST_WINDOW.
            safe as u64
        } else {
            0
        }
    }
}

/// Straight lines that lie below the demands of a problem.
struct Lines {
    throughout: DemandLine,
    urgent: DemandLine,
    all: DemandLine,
}

impl Lines {
    fn of(problem: &Problem) -> Self {
        let throughout = DemandLine::below(problem.throughout);
        let urgent = DemandLine::below(problem.until_start).plus(throughout);
        Self {
            throughout,
            urgent,
            all: urgent.plus(DemandLine::below(&[problem.own])),
        }
    }
}

/// The result of a search for the least fixed point. The search can be resumed.
#[derive(Clone, Copy)]
enum Search {
    /// The fixed point, in cycles.
    Found(u64),
    /// The fixed point is not below the limit; it is at least this number of cycles.
    Beyond(u64),
}

/// Searches for the least fixed point of the monotone `demand` that is at least 1 and at most
/// `limit`. The caller guarantees that no number below `from` is a fixed point.
fn fixed_point(from: u64, limit: u64, demand: impl Fn(u64) -> u64) -> Search {
    let reached = Cell::new(from);
    let found = search_with_offset(
        &Dedicated::new(),
        Offset::from(0),
        Duration::from(limit.min(LONGEST_WINDOW)),
        &|delta: Duration| {
            let asked = demand(delta.into()).max(from).min(FOREVER);
            reached.set(asked);
            Service::from(asked)
        },
    );
    match found {
        Ok(point) => Search::Found(u64::from(point).max(1)),
        Err(_) => Search::Beyond(reached.get()),
    }
}

/// Computes the worst-case response time of the jobs of `problem.own`.
///
/// # Errors
/// Returns [`NoBound`] if the demand of these jobs and of more urgent work has no bound, or none
/// that the search can find.
pub fn solve(problem: &Problem) -> Result<Solution, NoBound> {
    solve_within(problem, Limits::NONE)
}

/// Like [`solve`], but gives up at the first job that exceeds `limits`.
///
/// # Errors
/// The errors of [`solve`], and [`NoBound::Exceeded`].
pub fn solve_within(problem: &Problem, limits: Limits) -> Result<Solution, NoBound> {
    let own = problem.own;
    let lines = Lines::of(problem);
    if lines.all.slope >= FULL {
        return Err(NoBound::Overload);
    }
    let window = |from, limit| {
        fixed_point(from, limit, |delta| {
            problem
                .blocking
                .saturating_add(problem.urgent(delta))
                .saturating_add(own.cycles(delta))
        })
    };
    let mut jobs = Vec::new();
    let mut earlier = 0;
    let mut busy = Search::Beyond(lines.all.least_fixed_point(problem.blocking));
    for step in own.curve.steps_iter() {
        // The step is an instant; the shortest window that contains it has the step at its end.
        let arrival = u64::from(step) - 1;
        if let Search::Beyond(from) = busy {
            busy = window(from, arrival);
        }
        if matches!(busy, Search::Found(end) if arrival >= end) {
            break;
        }
        if jobs.len() == MOST_JOBS || arrival >= LONGEST_WINDOW {
            return Err(NoBound::TooLong);
        }
        let (job, started) = job(problem, &lines, arrival, earlier, limits)?;
        earlier = started;
        jobs.push(job);
    }
    if let Search::Beyond(from) = busy {
        // The curve has no further step, so the busy window contains no further job.
        busy = window(from, LONGEST_WINDOW);
    }
    let Search::Found(busy_window) = busy else {
        return Err(NoBound::TooLong);
    };
    let most = |of: fn(&WindowJob) -> u64| jobs.iter().map(of).max().unwrap_or(0);
    Ok(Solution {
        busy_window,
        response: most(|job| job.finish - job.arrival),
        start_delay: most(|job| job.start - job.arrival),
        jobs,
    })
}

/// Computes the last of the jobs that are released at `arrival`. Also returns the window that ends
/// with this job's first cycle, which is at least `earlier`.
fn job(
    problem: &Problem,
    lines: &Lines,
    arrival: u64,
    earlier: u64,
    limits: Limits,
) -> Result<(WindowJob, u64), NoBound> {
    let own = problem.own;
    let within = |limit: u64| {
        let limit = arrival.saturating_add(limit);
        move |found| match found {
            Search::Found(point) => Ok(point),
            Search::Beyond(_) if limit < LONGEST_WINDOW => Err(NoBound::Exceeded),
            Search::Beyond(_) => Err(NoBound::TooLong),
        }
    };
    // The jobs that run first are those that came before this one and those that came with it.
    let ahead = own
        .cycles(arrival + 1)
        .saturating_sub(own.cost)
        .saturating_add(problem.blocking);
    // The first cycle fits into a window if and only if the window has room for one cycle more than
    // the work that runs first. The search therefore returns start + 1.
    let to_start = ahead.saturating_add(1);
    let most_start = limits.start_delay.min(limits.response).saturating_add(1);
    let started = within(most_start)(fixed_point(
        lines.urgent.least_fixed_point(to_start).max(earlier),
        arrival.saturating_add(most_start),
        |delta| to_start.saturating_add(problem.urgent(delta)),
    ))?;
    let settled = ahead
        .saturating_add(own.cost)
        .saturating_add(sum(problem.until_start, started));
    let finish = within(limits.response)(if own.cost == 0 {
        // The job ends at the instant at which its first cycle would otherwise begin.
        Search::Found(started - 1)
    } else if problem.throughout.is_empty() {
        if settled <= arrival.saturating_add(limits.response).min(LONGEST_WINDOW) {
            Search::Found(settled)
        } else {
            Search::Beyond(settled)
        }
    } else {
        fixed_point(
            lines.throughout.least_fixed_point(settled).max(started),
            arrival.saturating_add(limits.response),
            |delta| settled.saturating_add(sum(problem.throughout, delta)),
        )
    })?;
    let job = WindowJob {
        arrival,
        start: (started - 1).max(arrival),
        finish: finish.max(arrival),
    };
    Ok((job, started))
}
