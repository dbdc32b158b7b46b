// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the bounds of `weir check` with the worst observed values.
use serde::Serialize;
use weir_arrivals::Pattern;
use weir_model::{Rate, System};
use weir_sim::tally::Gaps;
use weir_sim::{Compensation, Defer, Options, Tally, Target};

/// The bounds, and whether they apply to a run.
#[derive(Debug, Serialize)]
pub(super) struct Bounds<'a> {
    /// The reasons why the bounds do not apply to the run, as clauses. Empty if they apply.
    pub not_for_this_run: Vec<String>,
    pub tasks: Vec<TaskBound<'a>>,
}

/// The bound of a task.
#[derive(Debug, Serialize)]
pub(super) struct TaskBound<'a> {
    pub name: &'a str,
    /// The worst response time. `None` if there is no bound.
    pub bound_cycles: Option<u64>,
    /// The worst response time in the run with Weir. `None` if there was none.
    pub seen_cycles: Option<u64>,
}

impl Bounds<'_> {
    /// Iterates over the tasks that exceeded their bounds. This happens only if Weir has a defect.
    pub fn broken(&self) -> impl Iterator<Item = &TaskBound<'_>> {
        self.tasks.iter().filter(|task| {
            let both = task.bound_cycles.zip(task.seen_cycles);
            self.not_for_this_run.is_empty() && both.is_some_and(|(bound, seen)| seen > bound)
        })
    }
}

/// Returns the bounds of `system`, and the worst values in the `tally` of the run with Weir, if
/// there is one.
pub(super) fn bounds<'a>(
    system: &'a System,
    options: &Options,
    tally: Option<&Tally>,
) -> Bounds<'a> {
    // On Linux, threads handle the packets. `weir check` includes these threads, but the simulation
    // does not.
    let is_linux = !system.linux.interfaces.is_empty();
    let whole = (!is_linux).then(|| system.clone().with_freertos_work());
    let analysis = whole.as_ref().map(weir_analysis::analyse);
    let tasks = system.receivers.iter().enumerate();
    Bounds {
        not_for_this_run: match tally {
            Some(tally) => broken_assumptions(system, options, tally),
            None => vec!["it leaves out what they rest on".to_owned()],
        },
        tasks: tasks
            .map(|(index, of)| TaskBound {
                name: &of.name,
                bound_cycles: analysis
                    .as_ref()
                    .and_then(|of| of.response_of(system, index)),
                seen_cycles: tally.and_then(|tally| tally.tasks[index].responses.most()),
            })
            .collect(),
    }
}

/// Returns the assumptions of the analysis that do not hold in the run.
fn broken_assumptions(system: &System, options: &Options, tally: &Tally) -> Vec<String> {
    let mut broken = Vec::new();
    if !system.linux.interfaces.is_empty() {
        broken.push(
            "on Linux the threads of an interface take its packets, which the run leaves out"
                .to_owned(),
        );
    }
    for (source, did) in system.sources.iter().zip(&tally.sources) {
        if !keeps(&did.gaps, source.rates.worst, system) {
            broken.push(format!("{} came faster than its worst rate", source.name));
        }
    }
    for (flow, did) in system.flows.iter().zip(&tally.flows) {
        if !keeps(&did.gaps, flow.rate, system) {
            broken.push(format!("{} came faster than its rate", flow.name));
        }
    }
    for feed in &options.feeds {
        let source = match feed.to {
            Target::Source(source) => &system.sources[source],
            Target::Flow(flow) => &system.sources[system.flows[flow].source],
        };
        if matches!(feed.pattern, Pattern::Level { .. }) && source.rates.worst.is_some() {
            broken.push(format!(
                "{} asks for as long as its level is high",
                source.name
            ));
        }
    }
    if tally.orphans > 0 {
        broken.push("packets without receiver had bottom halves".to_owned());
    }
    let defers = system.flows.iter().any(|flow| flow.bottom_half.cycles > 0);
    if defers && !matches!(options.defer, Defer::Exact(_)) {
        broken.push("bottom halves did not run at their receivers' urgencies".to_owned());
    }
    if options.tick.is_some_and(|tick| tick.cost > 0) {
        broken.push("the clock tick cost time".to_owned());
    }
    let compensates = options
        .tick
        .is_some_and(|tick| tick.compensation != Compensation::None);
    if compensates && system.cpu.time_slice.is_some() {
        broken.push("the account shortened time slices".to_owned());
    }
    if options.closed_loops.iter().any(Option::is_some) {
        broken.push("a closed loop did not keep to its WCET".to_owned());
    }
    broken
}

/// Returns whether all arrivals were at least as far apart as the rate allows.
fn keeps(gaps: &Gaps, rate: Option<Rate>, system: &System) -> bool {
    match (gaps.least(), rate) {
        (Some(gap), Some(rate)) => gap >= rate.least_cycles(system.cpu.clock_hz),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounds, TaskBound};

    #[test]
    fn only_a_run_that_kept_to_the_assumptions_can_break_a_bound() {
        let task = |name, bound_cycles, seen_cycles| TaskBound {
            name,
            bound_cycles,
            seen_cycles,
        };
        let mut bounds = Bounds {
            not_for_this_run: Vec::new(),
            tasks: vec![
                task("at it", Some(10), Some(10)),
                task("beyond", Some(10), Some(11)),
                task("unbounded", None, Some(11)),
                task("never ended", Some(10), None),
            ],
        };
        let broken: Vec<&str> = bounds.broken().map(|task| task.name).collect();
        assert_eq!(broken, ["beyond"]);
        bounds.not_for_this_run.push("eth came too fast".to_owned());
        assert_eq!(bounds.broken().count(), 0);
    }
}
