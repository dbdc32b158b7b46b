// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of the table: the values of the parameters, then the results of the run
//! (docs/sweep.md). Times are in seconds.
use miette::IntoDiagnostic;
use weir_analysis::units::Part;
use weir_model::{Diagnostics, Problem, System};
use weir_sim::tally::Stage;

use super::grid::{Grid, Point};
use crate::simulate::answer::{
    FlowAnswer, LossCount, RunAnswer, SourceAnswer, SpanSummary, TaskAnswer,
};
use crate::simulate::verdict;

/// Formats the cells of a row, or the names of the columns, as a line of CSV.
pub(super) fn line(cells: &[String]) -> miette::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells).into_diagnostic()?;
    writer.into_inner().into_diagnostic()
}

const OF_RUN: [&str; 3] = ["error", "missed", "interrupts"];
const OF_TASK: [&str; 12] = [
    "released",
    "ended",
    "missed",
    "response_min_s",
    "response_median_s",
    "response_p99_s",
    "response_max_s",
    "bound_s",
    "lateness_s",
    "ran_s",
    "interrupted_s",
    "charged_s",
];
const OF_SOURCE: [&str; 7] = [
    "arrived",
    "interrupts",
    "refused",
    "expiries",
    "served",
    "missed",
    "lost",
];
const OF_FLOW: [&str; 6] = [
    "arrived",
    "delivered",
    "late",
    "lost",
    "latency_median_s",
    "latency_max_s",
];

/// Returns the names of the columns.
pub(super) fn columns(grid: &Grid, system: &System) -> Vec<String> {
    let mut names: Vec<String> = grid.vary.iter().map(|of| of.key.clone()).collect();
    names.extend(OF_RUN.map(str::to_owned));
    names.extend(Stage::ALL.map(|stage| format!("share.{}", stage.name())));
    let mut add = |kind: &str, name: &str, of: &[&str]| {
        names.extend(of.iter().map(|what| format!("{kind}.{name}.{what}")));
    };
    for of in &system.receivers {
        add("receiver", &of.name, &OF_TASK);
    }
    for of in &system.sources {
        add("source", &of.name, &OF_SOURCE);
    }
    for of in &system.flows {
        add("flow", &of.name, &OF_FLOW);
    }
    names
}

/// Returns the column names with which every table begins.
pub(super) fn mark() -> String {
    OF_RUN.join(",")
}

/// Simulates a combination and returns its row. If the combination is not a valid system, the
/// column `error` has the reason, and the columns after it are empty.
pub(super) fn row(grid: &Grid, index: u64, columns: usize) -> miette::Result<Row> {
    let mut cells: Vec<String> = grid.values(index).collect();
    let ran = grid.row(index).and_then(|point| results(&point));
    let failed = ran.is_err();
    match ran {
        Ok(results) => {
            cells.push(String::new());
            cells.extend(results);
        }
        Err(error) => cells.push(reason(&error)),
    }
    cells.resize(columns, String::new());
    Ok(Row {
        line: line(&cells)?,
        failed,
    })
}

/// Returns the error as a single line.
fn reason(error: &miette::Report) -> String {
    let text = match error.downcast_ref::<Diagnostics>() {
        Some(diagnostics) => {
            let each = diagnostics.problems().iter().map(Problem::message);
            each.collect::<Vec<_>>().join("; ")
        }
        None => error.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A row of the table.
pub(super) struct Row {
    pub line: Vec<u8>,
    /// Whether the combination was not a valid system.
    pub failed: bool,
}

fn results(point: &Point) -> miette::Result<Vec<String>> {
    let system = &point.system;
    let tally = weir_sim::simulate(system, &point.options).into_diagnostic()?;
    let run = RunAnswer::new(system, &point.feeds, &tally);
    // On Linux, threads handle the packets. The simulation does not include these threads, so the
    // bounds do not apply.
    let has_bounds = point.with && system.linux.interfaces.is_empty();
    let analysis = has_bounds.then(|| weir_analysis::analyse(system));
    let hertz = system.cpu.clock_hz as f64;
    let seconds = |cycles: u64| cycles as f64 / hertz;

    let mut cells = vec![
        verdict::missed(&run).to_string(),
        run.interrupts.to_string(),
    ];
    let duration = point.options.duration.max(1) as f64;
    let shares = run.stages.iter().map(|of| of.cycles as f64 / duration);
    cells.extend(shares.map(|share| share.to_string()));
    for (index, task) in run.tasks.iter().enumerate() {
        let row = analysis.as_ref().and_then(|of| of.row(Part::Task(index)));
        let bound = row.and_then(|row| row.outcome.as_ref().ok());
        cells.extend(of_task(task, bound.map(|of| of.response), seconds));
    }
    for source in &run.sources {
        cells.extend(of_source(source));
    }
    for flow in &run.flows {
        cells.extend(of_flow(flow, seconds));
    }
    Ok(cells)
}

fn of_task(
    task: &TaskAnswer,
    bound: Option<u64>,
    seconds: impl Fn(u64) -> f64,
) -> [String; OF_TASK.len()] {
    let time = |cycles: u64| seconds(cycles).to_string();
    let span =
        |of: fn(&SpanSummary) -> u64| task.responses.as_ref().map(of).map_or(String::new(), time);
    [
        task.released.to_string(),
        task.ended.to_string(),
        task.missed.to_string(),
        span(|of| of.min),
        span(|of| of.median),
        span(|of| of.p99),
        span(|of| of.max),
        bound.map_or(String::new(), time),
        time(task.lateness_cycles),
        time(task.ran_cycles),
        time(task.interrupted_cycles),
        time(task.charged_cycles),
    ]
}

fn of_source(source: &SourceAnswer) -> [String; OF_SOURCE.len()] {
    [
        source.arrived,
        source.interrupts,
        source.refused,
        source.expiries,
        source.served,
        source.missed,
        lost(&source.lost),
    ]
    .map(|count| count.to_string())
}

fn of_flow(flow: &FlowAnswer, seconds: impl Fn(u64) -> f64) -> [String; OF_FLOW.len()] {
    let span = |of: fn(&SpanSummary) -> u64| {
        let cycles = flow.latencies.as_ref().map(of);
        cycles.map_or(String::new(), |cycles| seconds(cycles).to_string())
    };
    [
        flow.arrived.to_string(),
        flow.delivered.to_string(),
        flow.late.to_string(),
        lost(&flow.lost).to_string(),
        span(|of| of.median),
        span(|of| of.max),
    ]
}

fn lost(all: &[LossCount]) -> u64 {
    all.iter().map(|lost| lost.count).sum()
}
