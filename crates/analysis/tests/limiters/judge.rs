// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares what was observed on the processor with the analysis.

use std::fmt::Write as _;

use weir_analysis::curve::Staircase;
use weir_analysis::limiter::{Tasks, Window, request_interarrival, tasks};
use weir_analysis::rta::Demand;
use weir_analysis::units::{Part, Units, body};
use weir_analysis::{Analysis, BoundFailure};
use weir_model::{Expiry, Place, Policy, System};

use super::processor::{Processor, Run};

/// A bound, and the largest value that was observed.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub part: Part,
    pub observed: u64,
    pub bound: u64,
}

/// Interrupts that have a common bound.
struct Group {
    parts: Vec<Part>,
    demands: Vec<Demand>,
}

/// The tasks of all sources in windows of this kind.
fn all_tasks(system: &System, analysis: &Analysis, window: fn(u64) -> Window) -> Vec<Tasks> {
    let sources = system.sources.iter().enumerate();
    sources
        .map(|(index, source)| {
            let window = window(analysis.latencies.source[index]);
            tasks(source, body(system, index), system.cpu.clock_hz, window)
        })
        .collect()
}

/// The groups of interrupts that less urgent work sees: both interrupts of a source together, and
/// all interrupts of the sources on one timer.
fn groups(system: &System, analysis: &Analysis, tasks: &[Tasks]) -> Vec<Group> {
    let shares =
        |index: usize, timer| system.sources[index].limit.expiry == Some(Expiry::Shared(timer));
    let own = (0..tasks.len())
        .filter(|&index| !matches!(system.sources[index].limit.expiry, Some(Expiry::Shared(_))))
        .map(|index| Group {
            parts: vec![Part::Request(index), Part::Expiry(index)],
            demands: tasks[index].together.clone(),
        });
    let units = Units::new(system, &analysis.latencies);
    let shared = (0..system.timers.len()).map(|timer| {
        let members: Vec<usize> = (0..tasks.len()).filter(|&of| shares(of, timer)).collect();
        let mut demands: Vec<Demand> = units.timer(timer).into_iter().cloned().collect();
        demands.extend(members.iter().flat_map(|&of| tasks[of].together.clone()));
        let requests = members.iter().map(|&of| Part::Request(of));
        Group {
            parts: requests.chain([Part::Timer(timer)]).collect(),
            demands,
        }
    });
    own.chain(shared).collect()
}

/// The first runs in the form (interrupt, start, length), for messages.
fn story(runs: &[Run]) -> Vec<(Part, u64, u64)> {
    let runs = runs.iter().take(12);
    runs.map(|run| (run.part, run.start, run.end - run.start))
        .collect()
}

/// Checks each window that begins with a release while no interrupt was running or waiting. The
/// runs that start in it can all delay less urgent work in it.
fn judge_demand(runs: &[Run], of: &str, demands: &[Demand]) -> Result<(), String> {
    // This is the earliest release among the runs that start after each run.
    let mut later = vec![u64::MAX; runs.len() + 1];
    for (index, run) in runs.iter().enumerate().rev() {
        later[index] = run.released.min(later[index + 1]);
    }
    for (index, begin) in runs.iter().enumerate() {
        let runs_on = index > 0 && runs[index - 1].end > begin.released;
        if runs_on && runs[index - 1].released < begin.released || later[index] < begin.released {
            continue;
        }
        let mut cycles = 0;
        let first = runs[..index]
            .iter()
            .rposition(|run| run.released < begin.released)
            .map_or(0, |last| last + 1);
        for run in runs[first..].iter().take(200) {
            if run.start < begin.released {
                continue;
            }
            cycles += run.end - run.start;
            let window = run.start - begin.released + 1;
            let most: u64 = demands.iter().map(|demand| demand.cycles(window)).sum();
            if cycles > most {
                return Err(format!(
                    "{of}: {cycles} cycles in the {window} from {}, the bound is {most}; the runs: {:?}",
                    begin.released,
                    story(&runs[first..])
                ));
            }
        }
    }
    Ok(())
}

/// Checks the times between the handlers of a limited source.
fn judge_served(
    system: &System,
    source: usize,
    tasks: &Tasks,
    starts: &[u64],
) -> Result<(), String> {
    let limit = &system.sources[source].limit;
    let Some(serves) = &tasks.serves else {
        return Ok(());
    };
    let by_rate =
        |interarrival| serves.staircases().next() == Some(Staircase::sporadic(interarrival, 0));
    let is_free =
        request_interarrival(&system.sources[source], system.cpu.clock_hz).is_some_and(by_rate);
    if is_free || limit.policy == Policy::Poll || limit.place == Place::Hardware {
        // Here the times of the requests are bounded, and not the times at which they are served.
        return Ok(());
    }
    for (index, first) in starts.iter().enumerate() {
        for (count, last) in (1..).zip(starts[index..].iter().take(60)) {
            let window = last - first + 1;
            if count > serves.events(window) {
                return Err(format!(
                    "source {source}: {count} handlers in the {window} cycles from {first}, the curve allows {}",
                    serves.events(window)
                ));
            }
        }
    }
    Ok(())
}

/// The bounds with the observed values, or an error that says which bound was broken.
pub fn judge(
    system: &System,
    analysis: &Analysis,
    processor: &Processor,
) -> Result<Vec<Seen>, String> {
    let seen = all_tasks(system, analysis, Window::below_timer);
    for group in groups(system, analysis, &seen) {
        let mut runs: Vec<Run> = processor
            .runs
            .iter()
            .filter(|run| group.parts.contains(&run.part))
            .copied()
            .collect();
        runs.sort_by_key(|run| run.start);
        judge_demand(&runs, &format!("{:?}", group.parts), &group.demands)?;
    }
    let tasks = all_tasks(system, analysis, Window::any);
    for (source, of) in tasks.iter().enumerate() {
        let handlers = processor.served.iter();
        let starts: Vec<u64> = handlers
            .filter(|&&(served, _)| served == source)
            .map(|&(_, start)| start)
            .collect();
        judge_served(system, source, of, &starts)?;
    }
    let mut seen = Vec::new();
    for row in &analysis.rows {
        let part = row.unit.part;
        // For a line's interrupt, only the responses of runs that serve are compared.
        let runs = processor
            .runs
            .iter()
            .filter(|run| run.part == part && (run.served || !matches!(part, Part::Request(_))));
        let observed = match part {
            Part::Task(_) => processor.responses.get(&part).copied(),
            _ => runs.clone().map(|run| run.end - run.released).max(),
        };
        let Some(observed) = observed else { continue };
        match &row.outcome {
            Ok(solution) => {
                let bound = solution.response;
                if observed > bound {
                    return Err(format!(
                        "{part:?}: response {observed}, the bound is {bound}"
                    ));
                }
                let late = runs.map(|run| run.start - run.released).max().unwrap_or(0);
                if late > solution.start_delay {
                    return Err(format!(
                        "{part:?}: starts {late} late, the bound is {}",
                        solution.start_delay
                    ));
                }
                seen.push(Seen {
                    part,
                    observed,
                    bound,
                });
            }
            Err(BoundFailure::NoBound(_) | BoundFailure::Starved(_)) => {}
        }
    }
    Ok(seen)
}

/// The ratios of bound to observed value.
#[derive(Debug, Default)]
pub struct Ratios {
    all: Vec<f64>,
}

impl Ratios {
    pub fn add(&mut self, seen: &Seen) {
        self.all.push(seen.bound as f64 / seen.observed as f64);
    }

    pub fn extend(&mut self, other: &Self) {
        self.all.extend(&other.all);
    }

    pub fn median(&mut self) -> f64 {
        self.all.sort_by(f64::total_cmp);
        self.all
            .get(self.all.len() / 2)
            .copied()
            .unwrap_or(f64::NAN)
    }

    pub fn greatest(&self) -> f64 {
        self.all.iter().copied().fold(f64::NAN, f64::max)
    }

    pub fn reached(&self) -> f64 {
        let exact = self.all.iter().filter(|&&ratio| ratio < 1.0 + 1e-9).count();
        exact as f64 / self.all.len() as f64
    }

    /// A line of a table. It has the number of ratios below 1.05, 1.15, 1.5 and 2, and of those
    /// above.
    pub fn line(&mut self, name: &str) -> String {
        let mut line = format!(
            "{name:<28} {:>7} bounds, {:>3.0} % reached, median {:.3}, most {:.2}; below",
            self.all.len(),
            100.0 * self.reached(),
            self.median(),
            self.greatest()
        );
        let mut below = 1.0;
        for edge in [1.05, 1.15, 1.5, 2.0, f64::INFINITY] {
            let count = self
                .all
                .iter()
                .filter(|&&ratio| ratio >= below && ratio < edge);
            let _ = write!(line, " {edge}: {}", count.count());
            below = edge;
        }
        line
    }
}
