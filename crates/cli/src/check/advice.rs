// SPDX-License-Identifier: MIT OR Apache-2.0
//! Advice for a system that misses a deadline: the largest consumer of time, and limits.
use std::path::Path;

use weir_analysis::check::{CheckReport, FlowRow, LargestPart, Verdict, WorkKind};
use weir_model::System;
use weir_report::percent;
use weir_report::terminal::{printable, wrapped};

use crate::words::CycleClock;

/// Returns the advice. The text is empty if no deadline is missed.
pub(super) fn text(
    system: &System,
    report: &CheckReport,
    clock: CycleClock,
    file: &Path,
) -> String {
    if report.verdict != Verdict::NotGuaranteed {
        return String::new();
    }
    // The advice is about the row of the verdict, or about the flow if there is no row.
    let part = match (report.missing_rows().next(), report.missing_flows().next()) {
        (Some(row), _) => {
            let part = row.largest_part.as_ref();
            part.map(|part| of_row(&row.name, part, clock))
        }
        (None, Some(flow)) => of_flow(flow, clock),
        (None, None) => None,
    };
    let lines = part.into_iter().chain(limits(system, file));
    let lines: Vec<String> = lines.map(|line| wrapped(&line, "", "  ")).collect();
    lines.join("\n")
}

fn of_row(row: &str, part: &LargestPart, clock: CycleClock) -> String {
    let name = part.name.as_deref().unwrap_or_default();
    let work = match part.kind {
        WorkKind::Own => format!("{row} itself"),
        WorkKind::Blocking => "less urgent work, or code that keeps interrupts off".to_owned(),
        WorkKind::Source => format!("interrupts of {name}"),
        WorkKind::Timer => format!("the timer {name}"),
        WorkKind::Task => format!("the task {name}"),
        WorkKind::BottomHalf => format!("the bottom halves of {name}"),
    };
    match (part.cycles, part.of_cycles, part.utilisation) {
        (Some(cycles), Some(all), _) => format!(
            "The largest part of it: {work}, {} of {}.",
            clock.time(cycles),
            clock.time(all)
        ),
        (_, _, Some(share)) => format!(
            "The largest part of it: {work}, {} of the processor.",
            percent(share)
        ),
        _ => format!("The largest part of it: {work}."),
    }
}

fn of_flow(flow: &FlowRow, clock: CycleClock) -> Option<String> {
    let parts = [
        (
            "the wait for more packets (moderation)",
            flow.moderation_cycles,
        ),
        ("the wait for the limit", flow.limit_cycles),
        ("the interrupts until it is taken", flow.interrupt_cycles),
        (
            "its bottom half, and the wait for it",
            flow.bottom_half_cycles,
        ),
    ];
    let (what, cycles) = parts
        .into_iter()
        .filter_map(|(what, cycles)| Some((what, cycles?)))
        .max_by_key(|(_, cycles)| *cycles)?;
    let all = flow.bound.response_cycles?;
    Some(format!(
        "The largest part of it: {what}, {} of {}.",
        clock.time(cycles),
        clock.time(all)
    ))
}

/// Returns the command that chooses limits. `None` if it could choose none, as for Linux, whose
/// interfaces have no limits.
fn limits(system: &System, file: &Path) -> Option<String> {
    let mut sources = system.sources.iter();
    if system.sources.is_empty() || !system.linux.interfaces.is_empty() {
        return None;
    }
    let is_known = sources.any(|of| of.rates.expected.is_some() || of.rates.tolerated.is_some());
    Some(if is_known {
        format!(
            "weir tune {} looks for limits with which every deadline holds.",
            printable(file)
        )
    } else {
        "State what a healthy source does, rate = { expected = \"300Hz\" }: then weir tune looks for \
         limits with which every deadline holds."
            .to_owned()
    })
}
