// SPDX-License-Identifier: MIT OR Apache-2.0
//! Response times under fixed priorities with preemption thresholds.
//!
//! One recurrence serves every processor that Weir knows. The threshold of a preemptive task is its
//! own priority; that of an interrupt that none preempts is the highest; that of an interrupt in a
//! preemption group is the highest of its group. (Wang and Saksena, "Scheduling fixed-priority
//! tasks with preemption threshold", RTCSA 1999; Regehr, "Scheduling tasks with mixed preemption
//! relations for robustness to timing faults", RTSS 2002.) All jobs of the busy window are looked
//! at, as the revised analysis of non-preemptive scheduling asks (Davis, Burns, Bril and Lukkien,
//! "Controller Area Network (CAN) schedulability analysis: Refuted, revisited and revised",
//! Real-Time Systems 35, 2007): the first job need not be the worst.
//!
//! Time is discrete; a window is half-open. Arrival curves, the search for fixed points and the
//! processor's supply are those of the crate `response-time-analysis`; its ready-made analyses have
//! no mixed preemption and do not tell the fixed points that a certificate needs. The tests hold
//! this module against them.

use std::cell::Cell;

use response_time_analysis::arrival::ArrivalBound;
use response_time_analysis::fixed_point::search_with_offset;
use response_time_analysis::supply::Dedicated;
use response_time_analysis::time::{Duration, Offset, Service};

use crate::curve::{Curve, FOREVER};

/// Work that asks for the processor: each event of `curve` costs `cost` cycles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// Cycles per event.
    pub cost: u64,
    /// The events.
    pub curve: Curve,
}

impl Demand {
    /// The most cycles asked for in any half-open window of `delta` cycles.
    #[must_use]
    pub fn cycles(&self, delta: u64) -> u64 {
        self.cost.saturating_mul(self.curve.events(delta))
    }

    /// The share of the processor in the long run; 1 is all of it.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        self.cost as f64 * self.curve.rate()
    }
}

/// What decides the response time of one kind of job.
#[derive(Debug, Clone)]
pub struct Problem<'a> {
    /// The jobs; each runs for `own.cost` cycles, first come, first served.
    pub own: &'a Demand,
    /// Cycles for which less urgent work can hold the processor when the window begins.
    pub blocking: u64,
    /// More urgent work that can delay a job's start but not interrupt it once it runs.
    pub until_start: &'a [&'a Demand],
    /// More urgent work that also preempts it.
    pub throughout: &'a [&'a Demand],
}

impl Problem<'_> {
    /// What more urgent work asks for in a window of `delta` cycles.
    #[must_use]
    pub fn urgent(&self, delta: u64) -> u64 {
        sum(self.until_start, delta).saturating_add(sum(self.throughout, delta))
    }
}

/// One job of the busy window, in cycles from the window's begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowJob {
    /// Its earliest release.
    pub arrival: u64,
    /// Its latest first cycle.
    pub start: u64,
    /// The end of its last cycle, at worst.
    pub finish: u64,
}

/// Bounds, with the proof that they hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Solution {
    /// The longest window in which the processor is never free for less urgent work.
    pub busy_window: u64,
    /// Of all jobs that are released together, the last one; one set for each step of the arrival
    /// curve inside the busy window.
    pub jobs: Vec<WindowJob>,
    /// Worst-case response time: release to end.
    pub response: u64,
    /// The longest time from a release to the first cycle.
    pub start_delay: u64,
}

/// Why there is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoBound {
    /// What is asked for in the long run is as much as the processor has, or more.
    Overload,
    /// The busy window is longer, or has more jobs, than can be looked at ([`LONGEST_WINDOW`],
    /// [`MOST_JOBS`]).
    TooLong,
    /// There may be a bound, but it is above the [`Limits`].
    Exceeded,
}

/// The limits of a search for a bound; beyond them it ends early.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most that the response time may be.
    pub response: u64,
    /// The most that the start delay may be.
    pub start_delay: u64,
}

impl Limits {
    /// No limits: any bound is welcome.
    pub const NONE: Self = Self {
        response: LONGEST_WINDOW,
        start_delay: LONGEST_WINDOW,
    };
}

/// The longest busy window that is looked at; a fixed point further out counts as none.
pub const LONGEST_WINDOW: u64 = 1 << 50;
/// The most steps of a job's arrival curve that are looked at.
pub const MOST_JOBS: usize = 100_000;
/// A utilisation this near to 1 counts as 1. It is well above the error of adding up some thousand
/// terms of f64.
const FULL: f64 = 1.0 - 1e-11;

fn sum(demands: &[&Demand], delta: u64) -> u64 {
    demands.iter().fold(0_u64, |sum, demand| {
        sum.saturating_add(demand.cycles(delta))
    })
}

/// A line below the demand in any window: cycles at zero and per cycle.
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

    /// The shortest window that can be a fixed point of `constant` and a demand above the line.
    /// Rounded down by far more than f64 errs.
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

/// Lines below the demands of a problem.
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

/// A search for the least fixed point that can be resumed.
#[derive(Clone, Copy)]
enum Search {
    /// The fixed point.
    Found(u64),
    /// It is not below the limit, and at least this.
    Beyond(u64),
}

/// The least fixed point of the monotone `demand`, at least 1, if it is not above `limit`. No
/// number below `from` can be one.
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

/// The worst-case response time of the jobs of `problem.own`.
///
/// # Errors
/// [`NoBound`] if the demand of these jobs and of what is more urgent leaves no bound, or none that
/// can be found.
pub fn solve(problem: &Problem) -> Result<Solution, NoBound> {
    solve_within(problem, Limits::NONE)
}

/// Like [`solve`], but gives up at the first job that exceeds `limits`.
///
/// # Errors
/// As [`solve`], and [`NoBound::Exceeded`].
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
        // A window that may contain the step contains it at its end.
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

/// The last of the jobs that are released at `arrival`, and the window that its first cycle ends,
/// which is not before `earlier`.
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
    // Ahead are the jobs that came before, and those that came with it.
    let ahead = own
        .cycles(arrival + 1)
        .saturating_sub(own.cost)
        .saturating_add(problem.blocking);
    // The first cycle is in the window iff one more than what is ahead fits into it: hence start +
    // 1.
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
        // The job ends where its first cycle would begin.
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
