// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the result as text of at most 100 columns.
use std::path::Path;

use weir_report::terminal;
use weir_report::{Align, Emphasis, Grid, percent, rate, time};

use weir_analysis::tune::Aim;

use super::summary::{Alternative, Summary, TunedSource};
use crate::tables::plain;

const DIGITS: u8 = 4;
/// The number of rows of the front that are printed. The JSON and the plot contain all rows.
const MOST_ROWS: usize = 8;

/// The system file, and the file to which the limits were written.
pub(super) struct File<'a> {
    pub name: &'a Path,
    pub written: Option<&'a Path>,
}

/// Returns the whole text.
pub(super) fn text(summary: &Summary, file: &File, coloured: bool) -> String {
    let mut parts = vec![
        format!("{}: {}", summary.system, headline(summary)),
        sources(summary, coloured),
        figures(summary),
        front(summary, coloured),
    ];
    parts.extend(notes(summary));
    parts.push(what_next(summary, file));
    parts.join("\n\n")
}

/// Returns what `weir check` will conclude for these limits.
fn headline(summary: &Summary) -> &'static str {
    if summary.has_deadlines && summary.without_max_work.is_empty() {
        "every deadline holds with these limits"
    } else {
        "nothing misses a deadline with these limits, and nothing is proven: see the notes"
    }
}

fn seconds(cycles: u64, summary: &Summary) -> f64 {
    cycles as f64 / summary.clock_hz as f64
}

fn sources(summary: &Summary, coloured: bool) -> String {
    let mut grid = Grid::new(
        &[
            ("source", Align::Left),
            ("asked", Align::Right),
            ("let through", Align::Right),
            ("above", Align::Right),
            ("limit", Align::Left),
            ("burst", Align::Right),
            ("interval", Align::Right),
            ("timer", Align::Left),
        ],
        coloured,
    );
    for source in &summary.sources {
        grid.row([
            plain(source.name.clone()),
            plain(rate(source.asked_hz, DIGITS)),
            plain(rate(source.effective_hz, DIGITS)),
            plain(percent(source.over_admission.max(0.0))),
            plain(limit(source)),
            plain(match source.policy {
                "bursty" | "bucket" => source.burst.to_string(),
                _ => "–".to_owned(),
            }),
            plain(time(seconds(source.interval_cycles, summary), DIGITS)),
            plain(timer(source)),
        ]);
    }
    grid.text()
}

fn limit(source: &TunedSource) -> String {
    if source.in_hardware {
        format!("{} in hardware", source.policy)
    } else {
        format!("{} {}", source.policy, source.timing.replace('_', "-"))
    }
}

fn timer(source: &TunedSource) -> String {
    match (&source.timer, &source.channel) {
        (Some(timer), Some(channel)) if timer != channel => {
            format!("{timer} ({channel} / {})", source.prescaler)
        }
        (_, Some(channel)) => format!("{channel} / {}", source.prescaler),
        _ => "–".to_owned(),
    }
}

/// Prints the objective, line by line, followed by further figures.
fn figures(summary: &Summary) -> String {
    let measure = &summary.measure;
    let mut lines = Vec::new();
    if summary.scaled {
        let within = if measure.scale_percent < 100 {
            ", with the policies and timers that the file states"
        } else {
            ""
        };
        lines.push((
            "tolerated rates",
            format!(
                "{} % of them: the largest share at which every deadline holds{within}",
                measure.scale_percent
            ),
        ));
    }
    let timers: Vec<String> = summary
        .timers
        .iter()
        .map(|timer| format!("{} at {}", timer.name, rate(timer.rate_hz, DIGITS)))
        .collect();
    let timers = if timers.is_empty() {
        String::new()
    } else {
        format!("; shared: {}", timers.join(", "))
    };
    lines.push((
        "timer interrupts",
        format!(
            "{} a second at worst{timers}",
            weir_report::significant(measure.timer_rate_hz, DIGITS)
        ),
    ));
    lines.push((
        "over-admission",
        format!("{} at most", percent(measure.over_admission)),
    ));
    lines.push((
        "overhead",
        format!(
            "{} of the processor in overload, beyond limiters in hardware, which need none",
            percent(measure.overhead)
        ),
    ));
    lines.push((
        "longest delay",
        match measure.longest_delay {
            Some(delay) => format!(
                "{}, for which interrupts together can keep tasks waiting",
                time(seconds(delay, summary), DIGITS)
            ),
            None => "no bound: a source without a limit may interrupt without end".to_owned(),
        },
    ));
    let lines: Vec<String> = lines
        .into_iter()
        .map(|(name, value)| {
            let first = format!("  {name:<17} ");
            terminal::wrapped(&value, &first, &" ".repeat(first.len()))
        })
        .collect();
    lines.join("\n")
}

fn front(summary: &Summary, coloured: bool) -> String {
    let mut columns = vec![
        ("", Align::Left),
        ("longest delay", Align::Right),
        ("overhead", Align::Right),
        ("timer interrupts", Align::Right),
    ];
    // The limits in the file may admit another fraction of the tolerated rates.
    if summary.scaled {
        columns.push(("of tolerated", Align::Right));
    }
    columns.extend([("above", Align::Right), ("limits", Align::Left)]);
    let mut grid = Grid::new(&columns, coloured);
    let all = summary.front.len();
    for index in shown(summary) {
        let Some(of) = summary.front.get(index) else {
            continue;
        };
        let emphasis = if of.chosen {
            Emphasis::Strong
        } else {
            Emphasis::Plain
        };
        let cells = row(summary, of, if of.chosen { "chosen" } else { "" });
        grid.row(cells.into_iter().map(|cell| (cell, emphasis)));
    }
    if let Some(before) = summary.before.as_ref().filter(|_| summary.changed) {
        let cells = row(summary, before, "file's now");
        grid.row(cells.into_iter().map(|cell| (cell, Emphasis::Plain)));
    }
    let hidden = all.saturating_sub(shown(summary).len());
    let more = if hidden > 0 {
        format!("\n  {hidden} more between them: --json and --plot show all")
    } else {
        String::new()
    };
    let title = if all > 1 {
        "What else would do, and what it costs"
    } else {
        "Nothing else that was tried would do: policies and timers that the file states stay"
    };
    format!(
        "{}\n{}{more}\n{}",
        wrapped(title),
        grid.text(),
        why(summary)
    )
}

fn row(summary: &Summary, of: &Alternative, mark: &str) -> Vec<String> {
    let mut cells = vec![
        mark.to_owned(),
        of.measure.longest_delay.map_or_else(
            || "no bound".to_owned(),
            |delay| time(seconds(delay, summary), DIGITS),
        ),
        percent(of.measure.overhead),
        format!(
            "{}/s",
            weir_report::significant(of.measure.timer_rate_hz, DIGITS)
        ),
    ];
    if summary.scaled {
        cells.push(format!("{} %", of.measure.scale_percent));
    }
    cells.extend([
        percent(of.measure.over_admission.max(0.0)),
        of.limits.clone(),
    ]);
    cells
}

/// Returns the indices of the rows that are printed: evenly spaced, including the chosen row.
fn shown(summary: &Summary) -> Vec<usize> {
    let all = summary.front.len();
    if all <= MOST_ROWS {
        return (0..all).collect();
    }
    let mut rows: Vec<usize> = (0..MOST_ROWS)
        .map(|row| row * (all - 1) / (MOST_ROWS - 1))
        .collect();
    rows.extend(summary.front.iter().position(|of| of.chosen));
    rows.sort_unstable();
    rows.dedup();
    rows
}

fn why(summary: &Summary) -> String {
    let share = if summary.scaled {
        "the largest share of the tolerated rates, then "
    } else {
        ""
    };
    let aim = match summary.aim {
        Aim::Knee => {
            "the least product of overhead and longest delay. --aim fewest-interrupts takes bursts as \
             large as deadlines allow"
        }
        Aim::FewestInterrupts => "the fewest timer interrupts, then the least over-admission",
    };
    let front = if summary.front.len() > 1 && is_front(&summary.front) {
        "None of these rows, the file's aside, is both cheaper and quicker than another. "
    } else {
        ""
    };
    wrapped(&format!(
        "{front}The chosen one has {share}{aim}. For shorter delays say --longest-delay TIME."
    ))
}

/// Returns whether no choice is dominated by another one, which is at least as cheap and as quick,
/// and better in one of the two.
fn is_front(all: &[Alternative]) -> bool {
    let delay = |of: &Alternative| of.measure.longest_delay.unwrap_or(u64::MAX);
    let overhead = |of: &Alternative| of.measure.overhead;
    let is_better = |a: &Alternative, b: &Alternative| {
        delay(a) <= delay(b)
            && overhead(a) <= overhead(b)
            && (delay(a) < delay(b) || overhead(a) < overhead(b))
    };
    !all.iter().any(|a| all.iter().any(|b| is_better(a, b)))
}

fn notes(summary: &Summary) -> Vec<String> {
    let mut notes: Vec<String> = summary
        .lowered
        .iter()
        .map(|of| {
            format!(
                "note: the burst of {} is lowered from {} to {}: no limits do with more",
                of.name, of.stated, of.burst
            )
        })
        .collect();
    notes.extend(
        summary
            .not_tried
            .iter()
            .map(|reason| format!("note: {reason}")),
    );
    if !summary.without_max_work.is_empty() {
        notes.push(format!(
            "note: nothing is proven: the work per interrupt is not stated of {}; state max_work",
            summary.without_max_work.join(", ")
        ));
    }
    if !summary.has_deadlines {
        notes.push(
            "note: no deadline bounds the bursts: state the tasks with their deadlines, or --longest-delay TIME"
                .to_owned(),
        );
    }
    notes.extend(
        summary
            .not_reached
            .iter()
            .map(|reason| format!("note: {reason}")),
    );
    if !summary.idle_timers.is_empty() {
        notes.push(format!(
            "note: no limit uses the timer {} any more; it still interrupts: remove it from the file",
            summary.idle_timers.join(", ")
        ));
    }
    notes.iter().map(|note| wrapped(note)).collect()
}

fn what_next(summary: &Summary, file: &File) -> String {
    let text = match file.written {
        Some(path) if summary.changed => format!("Written to {}.", path.display()),
        Some(path) => format!("{}: the file had these limits already.", path.display()),
        None if !summary.changed => "The file has these limits already.".to_owned(),
        None => format!(
            "Nothing was written: `weir tune {} --write` writes these limits into the file, --output FILE into a copy.",
            file.name.display()
        ),
    };
    wrapped(&text)
}

pub(super) fn wrapped(text: &str) -> String {
    terminal::wrapped(text, "", "  ")
}
