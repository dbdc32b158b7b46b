// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the tables: rows, effect of the limits, sources, flows.
use weir_analysis::check::{
    Bound, BoundState, Cause, CheckReport, Headroom, Row, RowKind, SourceRow, Verdict,
};
use weir_model::{DEADLINE_URGENCY, INTERRUPT_URGENCY};
use weir_report::{Align, Emphasis, Grid, percent};

use crate::tables::{Format, NONE, fold, hidden, note, or_none, plain};
use crate::words::{CycleClock, factor, hertz, list, plural};

use Align::{Left, Right};
use weir_report::terminal::wrapped;

/// The most rows of a large system's first table.
const MOST_ROWS: usize = 40;
/// The most rows of each other table.
const MOST_OTHERS: usize = 15;

/// Returns the table of all interrupts, tasks and bottom halves.
pub(super) fn rows(report: &CheckReport, clock: CycleClock, format: Format) -> String {
    let mut grid = Grid::new(
        &[
            ("row", Left),
            ("at", Left),
            ("use %", Right),
            ("C", Right),
            ("T", Right),
            ("jitter", Right),
            ("response", Right),
            ("deadline", Right),
            ("slack", Right),
            ("", Left),
        ],
        format.coloured,
    );
    let shown = fold(&report.rows, format.most(MOST_ROWS), |row| {
        tightness(row.deadline_cycles, &row.bound)
    });
    for row in &shown {
        let arrivals = row.arrivals;
        let period = arrivals.map(|of| match of.events {
            1 => clock.time(of.period_cycles),
            events => format!("{events}/{}", clock.time(of.period_cycles)),
        });
        let (mark, emphasis) = mark(&row.bound, row.deadline_cycles);
        let name = if row.misses() {
            Emphasis::Bad
        } else {
            Emphasis::Plain
        };
        grid.row([
            (row.name.clone(), name),
            plain(place(row, report)),
            or_none(row.utilisation.map(|share| format!("{:.1}", 100.0 * share))),
            plain(clock.time(row.cost_cycles)),
            or_none(period),
            or_none(arrivals.map(|of| clock.time(of.jitter_cycles))),
            or_none(row.bound.response_cycles.map(|of| clock.time(of))),
            or_none(row.deadline_cycles.map(|of| clock.time(of))),
            or_none(row.bound.slack_cycles.map(|of| clock.signed(of))),
            (mark.to_owned(), emphasis),
        ]);
    }
    let misses = report.missing_rows().count();
    let hidden_misses = misses - shown.iter().filter(|row| row.misses()).count();
    let why = if hidden_misses > 0 {
        let miss = if hidden_misses == 1 {
            "misses its deadline"
        } else {
            "miss their deadlines"
        };
        format!("{hidden_misses} of which {miss}")
    } else {
        "with more slack, or without deadline".to_owned()
    };
    let hidden = hidden(shown.len(), report.rows.len(), "row", &why);
    let asked = match report.utilisation {
        Some(share) => format!("at most {} of the processor", percent(share)),
        None => "without bound".to_owned(),
    };
    let asked = note(&format!("Asked for in the long run: {asked}."));
    format!("{}{hidden}{asked}", grid.text())
}

/// Returns where a row runs: the vector of an interrupt, or the urgency of a task.
fn place(row: &Row, report: &CheckReport) -> String {
    let is_thread = report.assumptions.kernel_threads.contains(&row.name);
    match (row.kind, &row.vector, row.urgency) {
        (_, Some(vector), _) => vector.clone(),
        (RowKind::BottomHalf, ..) => "bottom half".to_owned(),
        (_, _, Some(DEADLINE_URGENCY)) if is_thread => "SCHED_DEADLINE".to_owned(),
        (_, _, Some(INTERRUPT_URGENCY)) if is_thread => "interrupt".to_owned(),
        (_, _, Some(urgency)) => format!("urgency {urgency}"),
        _ => NONE.to_owned(),
    }
}

/// Returns a row's slack as a fraction of its deadline, by which rows are sorted. A smaller value
/// is closer to a missed deadline. Rows without a deadline have the greatest value.
fn tightness(deadline: Option<u64>, bound: &Bound) -> f64 {
    match (deadline, bound.slack_cycles) {
        (Some(_), None) => f64::NEG_INFINITY,
        (Some(deadline), Some(slack)) => slack as f64 / deadline.max(1) as f64,
        (None, _) if bound.state == BoundState::Unbounded => f64::MAX,
        (None, _) => f64::INFINITY,
    }
}

fn mark(bound: &Bound, deadline: Option<u64>) -> (&'static str, Emphasis) {
    match (bound.state, deadline) {
        (BoundState::Ok, Some(_)) => ("ok", Emphasis::Good),
        (BoundState::Ok, None) => ("", Emphasis::Plain),
        (BoundState::Missed, _) => ("MISSED", Emphasis::Bad),
        (BoundState::Unbounded, Some(_)) => ("unbounded", Emphasis::Bad),
        (BoundState::Unbounded, None) => ("unbounded", Emphasis::Strong),
    }
}

/// Returns the deadlines that would be missed, and the rows that would starve, without the limits.
pub(super) fn without_limits(report: &CheckReport, clock: CycleClock, format: Format) -> String {
    if report.rows.iter().all(|row| row.without_limits.is_none()) {
        return String::new();
    }
    let lost: Vec<&Row> = report
        .rows
        .iter()
        .filter(|row| row.needs_limits())
        .collect();
    if lost.is_empty() {
        let text = match report.verdict {
            Verdict::NotGuaranteed => {
                "The limits save nothing: without them the same rows would hold."
            }
            _ => "The limits are not needed: without them every deadline would hold, too.",
        };
        return wrapped(text, "", "  ");
    }
    let mut grid = Grid::new(
        &[
            ("row", Left),
            ("at", Left),
            ("deadline", Right),
            ("with limits", Right),
            ("without", Right),
            ("", Left),
        ],
        format.coloured,
    );
    let shown = fold(&lost, format.most(MOST_OTHERS), |row| {
        row.without_limits
            .as_ref()
            .map_or(0.0, |bound| tightness(row.deadline_cycles, bound))
    });
    for row in &shown {
        let Some(without) = &row.without_limits else {
            continue;
        };
        let (mark, emphasis) = lost_mark(without);
        grid.row([
            plain(row.name.clone()),
            plain(place(row, report)),
            or_none(row.deadline_cycles.map(|of| clock.time(of))),
            or_none(row.bound.response_cycles.map(|of| clock.time(of))),
            or_none(without.response_cycles.map(|of| clock.time(of))),
            (mark, emphasis),
        ]);
    }
    let hidden = hidden(shown.len(), lost.len(), "row", "lost alike");
    format!("{}\n{}{hidden}", buy(report, &lost), grid.text())
}

fn lost_mark(bound: &Bound) -> (String, Emphasis) {
    let words = match &bound.cause {
        None => "MISSED",
        Some(Cause::Starved { .. }) => "starved",
        Some(Cause::Overload) => "overload",
        Some(Cause::TooLong | Cause::QueueUnstated { .. }) => "unbounded",
    };
    (words.to_owned(), Emphasis::Bad)
}

/// Returns a sentence about the effect of the limits.
fn buy(report: &CheckReport, lost: &[&Row]) -> String {
    let missed = lost
        .iter()
        .filter(|row| {
            row.without_limits
                .as_ref()
                .is_some_and(|of| of.state == BoundState::Missed)
        })
        .count();
    let endless = lost.len() - missed;
    let mut by: Vec<&str> = lost
        .iter()
        .filter_map(|row| match row.without_limits.as_ref()?.cause.as_ref()? {
            Cause::Starved { by, .. } => Some(by.iter().map(String::as_str)),
            _ => None,
        })
        .flatten()
        .collect();
    by.sort_unstable();
    by.dedup();
    let starved = if by.is_empty() {
        flooded(report)
    } else {
        format!(", starved by {}", list(&by))
    };
    let total = plural(report.rows.len(), "row");
    let what = match (endless, missed) {
        (0, missed) => format!("{missed} of {total} could be too late{}", flooded(report)),
        (endless, 0) => format!("{endless} of {total} might never run{starved}"),
        (endless, missed) => {
            format!("{endless} of {total} might never run{starved}, and {missed} be too late")
        }
    };
    wrapped(
        &format!("What the limits buy: without them {what}."),
        "",
        "  ",
    )
}

/// Returns the name of the source that would use the largest part of the processor without limits.
/// Each source must have a worst rate.
fn flooded(report: &CheckReport) -> String {
    report
        .sources
        .iter()
        .filter(|source| source.policy != "off")
        .filter_map(|source| Some((source.unlimited_utilisation?, source)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(String::new(), |(share, source)| {
            format!(
                ", since {} alone could ask for {} of the processor",
                source.name,
                percent(share)
            )
        })
}

/// Returns the table of the sources with their limits and their headroom.
pub(super) fn sources(report: &CheckReport, format: Format) -> String {
    if report.sources.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new(
        &[
            ("source", Left),
            ("limit", Left),
            ("expected", Right),
            ("effective", Right),
            ("tolerated", Right),
            ("worst", Right),
            ("holds up to", Left),
            ("then misses", Left),
        ],
        format.coloured,
    );
    let shown = fold(&report.sources, format.most(MOST_OTHERS), |source| {
        source.headroom.factor.unwrap_or(f64::INFINITY)
    });
    for source in &shown {
        let emphasis = match source.headroom.factor {
            Some(factor) if factor < 1.0 => Emphasis::Bad,
            _ if report.most_critical.as_ref() == Some(&source.name) => Emphasis::Strong,
            _ => Emphasis::Plain,
        };
        grid.row([
            (source.name.clone(), emphasis),
            plain(limit(source)),
            or_none(source.expected_hz.map(hertz)),
            or_none(source.effective_hz.map(hertz)),
            or_none(source.tolerated_hz.map(hertz)),
            plain(source.worst_hz.map_or("no bound".to_owned(), hertz)),
            (up_to(&source.headroom), emphasis),
            or_none(source.headroom.binding.clone()),
        ]);
    }
    let hidden = hidden(
        shown.len(),
        report.sources.len(),
        "source",
        "whose rates could rise further",
    );
    let critical = critical(report);
    format!("{}{hidden}{critical}", grid.text())
}

fn limit(source: &SourceRow) -> String {
    let burst = source
        .burst
        .filter(|_| matches!(source.policy, "bursty" | "bucket"));
    let mut text = match source.policy {
        "off" => "none".to_owned(),
        policy => policy.to_owned(),
    };
    if source.place == Some("hardware") {
        text += " hardware";
    }
    match source.timing {
        Some("one_shot") => text += " one-shot",
        Some(timing) => text += &format!(" {timing}"),
        None => {}
    }
    if let Some(burst) = burst {
        text += &format!(" {burst}");
    }
    text
}

fn up_to(headroom: &Headroom) -> String {
    let at_least = if headroom.exact { "" } else { "≥ " };
    match headroom.factor {
        None => "any rate".to_owned(),
        Some(factor) if factor <= 0.0 && headroom.exact => "no rate".to_owned(),
        Some(factor) if factor <= 0.0 => "not known".to_owned(),
        Some(of) => {
            let rate = headroom
                .hz
                .map_or(String::new(), |hz| format!(" ({})", hertz(hz)));
            format!("{at_least}{}{rate}", factor(of))
        }
    }
}

/// Returns a sentence about the source that is closest to breaking a deadline.
fn critical(report: &CheckReport) -> String {
    let Some(source) = report
        .most_critical
        .as_ref()
        .and_then(|name| report.sources.iter().find(|source| &source.name == name))
    else {
        return note(match report.verdict {
            Verdict::NotGuaranteed => {
                "No source alone can be made slow enough for every deadline to hold."
            }
            _ => "No source can break a deadline, however fast it may be.",
        });
    };
    let headroom = &source.headroom;
    let of = headroom.factor.unwrap_or(f64::INFINITY);
    let name = &source.name;
    let then = headroom.binding.as_ref().map_or(String::new(), |row| {
        format!(", then {row} misses its deadline")
    });
    let rate = headroom
        .hz
        .map_or(String::new(), |hz| format!(" ({})", hertz(hz)));
    let may = if of < 1.0 { "has to fall" } else { "may rise" };
    let text = format!(
        "Most critical: {name}. Its rate {may} to {}{rate}{then}.",
        factor(of)
    );
    note(&text)
}

/// Returns the table of the flows and their stages.
pub(super) fn flows(report: &CheckReport, clock: CycleClock, format: Format) -> String {
    if report.flows.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new(
        &[
            ("flow", Left),
            ("device", Right),
            ("limit", Right),
            ("interrupt", Right),
            ("bottom", Right),
            ("latency", Right),
            ("deadline", Right),
            ("queue", Right),
            ("", Left),
        ],
        format.coloured,
    );
    let shown = fold(&report.flows, format.most(MOST_OTHERS), |flow| {
        tightness(flow.deadline_cycles, &flow.bound)
    });
    for flow in &shown {
        let (mark, emphasis) = match mark(&flow.bound, flow.deadline_cycles) {
            _ if flow.bound.state == BoundState::Ok && flow.overflows() == Some(true) => {
                ("QUEUE SHORT", Emphasis::Bad)
            }
            _ if flow.bound.state == BoundState::Ok && flow.misses() => {
                ("BUDGET SHORT", Emphasis::Bad)
            }
            mark => mark,
        };
        let needed = flow
            .queue_needed
            .map_or("?".to_owned(), |needed| needed.to_string());
        let queue = match flow.queue {
            Some(room) => format!("{needed} of {room}"),
            None => needed,
        };
        grid.row([
            plain(format!("{} → {}", flow.name, flow.receiver)),
            or_none(flow.moderation_cycles.map(|of| clock.time(of))),
            or_none(flow.limit_cycles.map(|of| clock.time(of))),
            or_none(flow.interrupt_cycles.map(|of| clock.time(of))),
            or_none(flow.bottom_half_cycles.map(|of| clock.time(of))),
            or_none(flow.bound.response_cycles.map(|of| clock.time(of))),
            or_none(flow.deadline_cycles.map(|of| clock.time(of))),
            plain(queue),
            (mark.to_owned(), emphasis),
        ]);
    }
    grid.text()
        + &hidden(
            shown.len(),
            report.flows.len(),
            "flow",
            "with more slack, or without deadline",
        )
}
