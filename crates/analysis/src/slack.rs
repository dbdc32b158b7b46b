// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes a lower bound on headroom: how much more demand one source may have without any
//! deadline breaking. The bound uses windows that are computed once.
//!
//! A window x with demand(x) <= x proves a bound (docs/analysis.md). The remainder x - demand(x) is
//! slack, which further demand may use. So each unit gives points (x, slack), and a source whose
//! demand grows by at most `slack` in each window x breaks nothing. The additional demand of a
//! source lies below a line, so only the points on the lower convex hull matter. Thus a lower bound
//! on the headroom of a thousand sources costs less than the analysis itself.

use rayon::prelude::*;
use weir_model::{Source, System};

use crate::analysis::{Analysis, row};
use crate::curve::Curve;
use crate::limiter::{Interrupt, Tasks};
use crate::rta::{Demand, Problem, Solution, solve};
use crate::units::{Latencies, Part, Unit, Units, longest_timer};

/// The slack that a unit has in one window. Both values are in cycles.
#[derive(Debug, Clone, Copy)]
struct SlackPoint {
    window: u64,
    slack: u64,
    of: Part,
}

/// The slack of all units of a system.
#[derive(Debug)]
pub struct Slack<'a> {
    latencies: Latencies,
    /// For each source, the part of its latency that the source's own line may cause.
    shares: Vec<u64>,
    units: Units<'a>,
    hull: Vec<SlackPoint>,
    /// The points of tasks and bottom halves alone, because only these wait for work that is done
    /// for packets.
    hull_of_tasks: Vec<SlackPoint>,
}

/// Factors on the latencies of timers, which are tried in turn. A larger factor leaves more room
/// for the rates, unless it alone breaks a deadline.
const LATER: [f64; 4] = [2.0, 1.5, 1.1, 1.0];

impl<'a> Slack<'a> {
    /// The slack of `system`. Its deadlines must hold by `analysis`.
    #[must_use]
    pub fn of(system: &'a System, analysis: &Analysis) -> Self {
        let mut found = None;
        for factor in LATER {
            let latencies = Latencies {
                source: system
                    .sources
                    .iter()
                    .zip(&analysis.latencies.source)
                    .map(|(source, &now)| {
                        ((now as f64 * factor) as u64)
                            .min(source.limit.interval.cycles().saturating_sub(1))
                            .max(now)
                    })
                    .collect(),
            };
            let units = Units::new(system, &latencies);
            let shares = shares(&units, analysis, &latencies);
            let points: Option<Vec<Vec<SlackPoint>>> = units
                .units
                .par_iter()
                .map(|unit| points(system, &units, unit, &latencies, &shares))
                .collect();
            if let Some(points) = points {
                let points: Vec<SlackPoint> = points.into_iter().flatten().collect();
                found = Some((latencies, shares, units, points));
                break;
            }
        }
        let (latencies, shares, units, points) = found.unwrap_or_else(|| {
            // No factor gave points, not even 1. The latencies of `analysis` still hold, but
            // nothing is known to be left with them.
            let latencies = analysis.latencies.clone();
            let units = Units::new(system, &latencies);
            let none = units.units.iter().map(|unit| SlackPoint {
                window: 1,
                slack: 0,
                of: unit.part,
            });
            let none = none.collect();
            let shares = shares(&units, analysis, &latencies);
            (latencies, shares, units, none)
        });
        let of_tasks = points.iter().filter(|point| !point.of.is_interrupt());
        Self {
            latencies,
            shares,
            units,
            hull_of_tasks: lower_hull(of_tasks.copied().collect()),
            hull: lower_hull(points),
        }
    }

    /// The most cycles by which the timer of a source may be late.
    #[must_use]
    pub fn latency(&self, source: usize) -> u64 {
        self.latencies.source.get(source).copied().unwrap_or(0)
    }

    /// A unit of another source, or a task, that may miss its deadline if the source is as
    /// `changed`; `None` if all deadlines hold.
    #[must_use]
    pub fn breaks(&self, source: usize, changed: &Source) -> Option<Part> {
        let latency = self.latencies.source.get(source).copied()?;
        let now = self.units.seen(source)?;
        let (plain, then) = self.units.tasks_if(source, changed, latency);
        let per_packet = self.units.per_packet_if(source, changed, &plain, latency);
        // A demand without a bound is above every point.
        let for_packets = per_packet.map_or((f64::INFINITY, 0.0), |demands| {
            let (now, then): (Vec<_>, Vec<_>) = demands.into_iter().unzip();
            more(below(now.iter()), above(then.iter()))
        });
        now.views()
            .into_iter()
            .zip(then.views())
            .flat_map(|(now, then)| lines(now, then))
            .find_map(|line| {
                let with_packets = (line.0 + for_packets.0, line.1 + for_packets.1);
                let first = |hull: &[SlackPoint], line| {
                    let cut = hull.iter().find(|point| point.is_cut_by(line));
                    cut.map(|point| point.of)
                };
                first(&self.hull, line).or_else(|| first(&self.hull_of_tasks, with_packets))
            })
    }

    /// Whether the source's own interrupts keep their deadlines if it is as `changed`. Their jobs
    /// change with its rate, so they are analysed again.
    #[must_use]
    pub fn bears_itself(&self, source: usize, changed: &Source) -> bool {
        let Some(&latency) = self.latencies.source.get(source) else {
            return false;
        };
        let (plain, seen) = self.units.tasks_if(source, changed, latency);
        // A latency above an interval makes no difference (J in core/CONTRACTS.md), so it needs no
        // check.
        let may_be_late = latency < changed.limit.interval.cycles().saturating_sub(1);
        let share = self.shares.get(source).copied();
        let share = share.filter(|_| self.units.counts_on(changed, latency));
        self.units.interrupts(source, &plain).all(|unit| {
            let most_late = match (unit.part, share) {
                (Part::Request(_), Some(share)) => Some(share),
                (Part::Expiry(_), Some(share)) => Some(latency - share),
                (Part::Expiry(_), None) if may_be_late => Some(latency),
                _ => None,
            };
            if unit.deadline.is_none() && most_late.is_none() {
                return true;
            }
            let interference = self.units.interference_if(&unit, Some((source, &seen)));
            let (Some(own), Ok(interference)) = (&unit.own, interference) else {
                return false;
            };
            let problem = Problem {
                own,
                blocking: self.units.blocking(&unit),
                until_start: &interference.until_start(),
                throughout: &interference.throughout,
            };
            solve(&problem).is_ok_and(|solution| {
                unit.deadline
                    .is_none_or(|deadline| solution.response <= deadline)
                    && most_late.is_none_or(|most| solution.start_delay <= most)
            })
        })
    }
}

impl SlackPoint {
    /// Whether a demand below the line may need more than the slack.
    fn is_cut_by(&self, line: CurveLine) -> bool {
        let more = line.0 + line.1 * self.window as f64;
        // The result is rounded against the source by far more than the rounding error of f64.
        more * (1.0 + 1e-9) + 1.0 > self.slack as f64
    }
}

/// A line above or below a curve: its value for a window of length zero, and its slope per cycle.
type CurveLine = (f64, f64);

fn sum<'a>(demands: impl Iterator<Item = &'a Demand>, line: fn(&Curve) -> CurveLine) -> CurveLine {
    demands.fold((0.0, 0.0), |(at_zero, slope), demand| {
        let (cost, line) = (demand.cost as f64, line(&demand.curve));
        (at_zero + cost * line.0, slope + cost * line.1)
    })
}

/// A line that is nowhere above the sum of the demands.
fn below<'a>(demands: impl Iterator<Item = &'a Demand>) -> CurveLine {
    sum(demands, |curve| (curve.intercept(), curve.rate()))
}

/// A line that is nowhere below the sum of the demands.
fn above<'a>(demands: impl Iterator<Item = &'a Demand>) -> CurveLine {
    sum(demands, Curve::upper_line)
}

fn more(now: CurveLine, then: CurveLine) -> CurveLine {
    (then.0 - now.0, then.1 - now.1)
}

/// Lines above the difference between the demands `then` and `now`, one for each view of the
/// source.
fn lines(now: &Tasks, then: &Tasks) -> Vec<CurveLine> {
    fn demands(of: &Option<Interrupt>) -> impl Iterator<Item = &Demand> {
        of.iter()
            .flat_map(|interrupt| std::iter::once(&interrupt.own).chain(&interrupt.other))
    }
    vec![
        more(below(now.together.iter()), above(then.together.iter())),
        more(below(demands(&now.request)), above(demands(&then.request))),
        more(below(demands(&now.expiry)), above(demands(&then.expiry))),
    ]
}

/// For each source, the part of the latency that its own line may cause: what the line takes now,
/// and half of the growth of the latency. It is 0 if the analysis does not rely on the limiter
/// never holding a request back.
fn shares(units: &Units, analysis: &Analysis, latencies: &Latencies) -> Vec<u64> {
    let sources = analysis.latencies.source.iter().zip(&latencies.source);
    sources
        .enumerate()
        .map(|(source, (&now, &then))| {
            let row = analysis.row(Part::Request(source));
            let late = row.and_then(|row| row.outcome.as_ref().ok());
            match (units.is_counted_on(source), late) {
                (false, _) => 0,
                (_, None) => then,
                (_, Some(late)) => (late.start_delay + then.saturating_sub(now) / 2).min(then),
            }
        })
        .collect()
}

/// The points of a unit. `None` if the unit breaks its deadline, or if its timer comes later than
/// `latencies` allows.
fn points(
    system: &System,
    units: &Units,
    unit: &Unit,
    latencies: &Latencies,
    shares: &[u64],
) -> Option<Vec<SlackPoint>> {
    let most_start_delay = match unit.part {
        Part::Request(source) if units.is_counted_on(source) => shares.get(source).copied(),
        Part::Expiry(source) => latencies
            .source
            .get(source)
            .zip(shares.get(source))
            .map(|(latency, share)| latency - share),
        Part::Timer(timer) => Some(
            system
                .sources
                .iter()
                .zip(latencies.source.iter().zip(shares))
                .filter(|(source, _)| {
                    source.limit.expiry == Some(weir_model::Expiry::Shared(timer))
                })
                .map(|(_, (latency, share))| latency - share)
                .min()
                .unwrap_or(u64::MAX)
                .saturating_sub(longest_timer(system, timer)),
        ),
        _ => None,
    };
    if unit.deadline.is_none() && most_start_delay.is_none() {
        return Some(Vec::new());
    }
    let solution = row(units, unit).outcome.ok()?;
    let own = unit.own.as_ref()?;
    let is_late = most_start_delay.is_some_and(|most| {
        solution.start_delay > most
            // A latency above an interval makes no difference (J in core/CONTRACTS.md).
            && !matches!(unit.part, Part::Expiry(source) if !units.is_counted_on(source)
                && system.sources.get(source).is_some_and(|of| most >= of.limit.interval.cycles().saturating_sub(1)))
    });
    if is_late
        || unit
            .deadline
            .is_some_and(|deadline| solution.response > deadline)
    {
        return None;
    }
    let interference = units.interference(unit).ok()?;
    let problem = Problem {
        own,
        blocking: units.blocking(unit),
        until_start: &interference.until_start(),
        throughout: &interference.throughout,
    };
    let mut points = vec![window_point(&problem, unit, &solution)];
    for job in &solution.jobs {
        let ahead = own
            .cycles(job.arrival + 1)
            .saturating_sub(own.cost)
            .saturating_add(problem.blocking);
        let started_by = |window: u64| SlackPoint {
            window,
            slack: window.saturating_sub(
                ahead
                    .saturating_add(1)
                    .saturating_add(problem.urgent(window)),
            ),
            of: unit.part,
        };
        if let Some(most) = most_start_delay {
            points.push(started_by(
                job.arrival.saturating_add(most).saturating_add(1),
            ));
        }
        let Some(deadline) = unit.deadline else {
            continue;
        };
        let end = job.arrival.saturating_add(deadline);
        points.push(if problem.throughout.is_empty() {
            started_by(end.saturating_sub(own.cost).saturating_add(1))
        } else if problem.until_start.is_empty() {
            let asked = ahead
                .saturating_add(own.cost)
                .saturating_add(problem.urgent(end));
            SlackPoint {
                window: end,
                slack: end.saturating_sub(asked),
                of: unit.part,
            }
        } else {
            // Two fixed points depend on each other here, so the slack is set to zero.
            SlackPoint {
                window: job.finish,
                slack: 0,
                of: unit.part,
            }
        });
    }
    Some(points)
}

/// The window with the most slack that is found, among windows in which the unit's busy window
/// ends. It ends at the deadline if that is such a window.
fn window_point(problem: &Problem, unit: &Unit, solution: &Solution) -> SlackPoint {
    let slack = |window: u64| {
        let asked = problem
            .blocking
            .saturating_add(problem.own.cycles(window))
            .saturating_add(problem.urgent(window));
        window.checked_sub(asked)
    };
    // This is the longest window that contains no job after the last one of `solution`.
    let most = solution
        .jobs
        .last()
        .and_then(|job| {
            problem
                .own
                .curve
                .window_of(problem.own.curve.events(job.arrival + 1) + 1)
        })
        .map_or(u64::MAX, |window| window - 1);
    let (window, slack) = [Some(most), unit.deadline]
        .into_iter()
        .flatten()
        .filter(|&window| window >= solution.busy_window && window <= most)
        .filter_map(|window| Some((window, slack(window)?)))
        .max_by_key(|&(_, slack)| slack)
        .unwrap_or((solution.busy_window, 0));
    SlackPoint {
        window,
        slack,
        of: unit.part,
    }
}

/// The points on the lower convex hull. A line lies below all points if and only if it lies below
/// these.
fn lower_hull(mut points: Vec<SlackPoint>) -> Vec<SlackPoint> {
    points.sort_by_key(|point| (point.window, point.slack));
    let mut hull: Vec<SlackPoint> = Vec::new();
    for point in points {
        while let [.., before, last] = hull[..] {
            let cross = |a: &SlackPoint, b: &SlackPoint, c: &SlackPoint| {
                (b.window as f64 - a.window as f64) * (c.slack as f64 - a.slack as f64)
                    - (b.slack as f64 - a.slack as f64) * (c.window as f64 - a.window as f64)
            };
            if cross(&before, &last, &point) > 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}
