// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the tasks' response times.
use weir_model::System;
use weir_report::{Colour, RangeRow, Ranges, Stroke};

use super::answer::{Answer, RunAnswer};

/// Returns a picture of each task's response times in each run, with the bound of `check` and the
/// deadline.
pub(super) fn plot(system: &System, answer: &Answer) -> Ranges {
    let seconds = |cycles: u64| cycles as f64 / system.cpu.clock_hz as f64;
    let runs: Vec<&RunAnswer> = answer.runs.made().collect();
    let span = |run: &RunAnswer, task: usize| {
        let of = run.tasks[task].responses.as_ref()?;
        Some(weir_report::Span {
            least: seconds(of.min),
            median: seconds(of.median),
            high: seconds(of.p99),
            most: seconds(of.max),
        })
    };
    let rows = system.receivers.iter().enumerate().map(|(index, task)| {
        let bound = answer.bounds.tasks[index].bound_cycles;
        RangeRow {
            label: task.name.clone(),
            spans: runs.iter().map(|run| span(run, index)).collect(),
            marks: vec![bound.map(seconds), task.deadline.map(seconds)],
        }
    });
    let (described, without) = (&answer.runs.as_described, &answer.runs.without);
    let described = described.as_ref().map(|_| ("as described", Colour::Blue));
    let without = without.as_ref().map(|_| ("without", Colour::Vermilion));
    let series = described.into_iter().chain(without);
    Ranges {
        title: format!("{}: how long its tasks took", system.name),
        series: series
            .map(|(label, colour)| (label.to_owned(), colour))
            .collect(),
        marks: vec![
            (
                "bound of weir check".to_owned(),
                Colour::Black,
                Stroke::Solid,
            ),
            ("deadline".to_owned(), Colour::Purple, Stroke::Dashed),
        ],
        rows: rows.collect(),
    }
}
