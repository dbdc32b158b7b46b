// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the answer as text.
use weir_model::System;
use weir_report::terminal::wrapped;
use weir_report::{Emphasis, time};

use super::answer::Answer;
use super::{tables, verdict};
use crate::tables::Format;
use crate::words::{CycleClock, list, title};

/// Returns the whole text.
pub(super) fn text(system: &System, duration: u64, answer: &Answer, format: Format) -> String {
    let clock = CycleClock::of(system);
    let mut parts = vec![
        sentence(answer, format),
        defects(answer, clock, format),
        arrivals(system, duration, answer),
        tables::tasks(answer, duration, clock, format),
        bounds(answer),
        tables::sources(answer, format),
        tables::flows(answer, clock, format),
        tables::stages(answer, duration, format),
        tables::charges(answer, duration, format),
    ];
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

fn painted(text: &str, emphasis: Emphasis, format: Format) -> String {
    let lines = text.lines();
    let lines: Vec<String> = lines
        .map(|line| emphasis.paint(line, format.coloured))
        .collect();
    lines.join("\n")
}

fn sentence(answer: &Answer, format: Format) -> String {
    let judged = answer.runs.made().next();
    let emphasis = match judged {
        Some(run) if verdict::misses(run) => Emphasis::Bad,
        _ => Emphasis::Good,
    };
    painted(&wrapped(&answer.sentence, "", "  "), emphasis, format)
}

/// Returns the defects of Weir that the run revealed. There should never be any.
fn defects(answer: &Answer, clock: CycleClock, format: Format) -> String {
    let told = answer.bounds.broken().map(|task| {
        let (seen, bound) = clock.times_apart(
            task.seen_cycles.unwrap_or(0),
            task.bound_cycles.unwrap_or(0),
        );
        let text = format!(
            "A DEFECT OF WEIR: {} took {seen}, and weir check says {bound} at most, though all that this rests on was kept to. \
             Please report it, with the system file and this command.",
            task.name
        );
        painted(&wrapped(&text, "", "  "), Emphasis::Bad, format)
    });
    told.collect::<Vec<_>>().join("\n")
}

/// Describes the arrivals that were simulated.
fn arrivals(system: &System, duration: u64, answer: &Answer) -> String {
    let seconds = duration as f64 / system.cpu.clock_hz as f64;
    let title = format!("{}, for {}", title(system), time(seconds, 6));
    let mut lines = vec![wrapped(&title, "", "  ")];
    for (flood, what) in [(true, "flooded"), (false, "as usual")] {
        let of: Vec<String> = answer
            .arrivals
            .iter()
            .filter(|arrival| arrival.flood == flood)
            .map(|arrival| {
                let name = arrival.flow.unwrap_or(arrival.source);
                format!("{name} at {}", arrival.told)
            })
            .collect();
        if !of.is_empty() {
            lines.push(wrapped(&format!("{what}: {}", list(&of)), "  ", "    "));
        }
    }
    if !answer.silent.is_empty() {
        let silent = list(&answer.silent);
        let text = format!("silent, since the file does not say how much they bring: {silent}");
        lines.push(wrapped(&text, "  ", "    "));
    }
    lines.join("\n")
}

/// Explains why the bounds in the table do not apply to this run.
fn bounds(answer: &Answer) -> String {
    let why = &answer.bounds.not_for_this_run;
    if why.is_empty() || answer.runs.as_described.is_none() {
        return String::new();
    }
    let has_bounds = answer
        .bounds
        .tasks
        .iter()
        .any(|of| of.bound_cycles.is_some());
    let text = if has_bounds {
        format!(
            "The bounds are those of weir check, and this run did not keep to what they rest on: {}.",
            why.join("; ")
        )
    } else {
        format!("The run has no bounds beside it: {}.", why.join("; "))
    };
    wrapped(&text, "", "  ")
}
