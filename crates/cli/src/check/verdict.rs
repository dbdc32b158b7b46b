// SPDX-License-Identifier: MIT OR Apache-2.0
//! States the verdict in one sentence.
use weir_analysis::check::{Bound, BoundState, Cause, CheckReport, FlowRow, Row, Verdict};
use weir_report::percent;

use crate::words::{CycleClock, list, list_with_more, plural};

/// Returns the first words of the sentence, which are emphasised.
pub(super) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Guaranteed => "guaranteed",
        Verdict::NotGuaranteed => "not guaranteed",
        Verdict::NotProven => "not proven",
    }
}

/// Returns the sentence after the first words and their colon.
pub(super) fn sentence(report: &CheckReport, clock: CycleClock) -> String {
    match report.verdict {
        Verdict::Guaranteed => guaranteed(report),
        Verdict::NotGuaranteed => not_guaranteed(report, clock),
        Verdict::NotProven => not_proven(report),
    }
}

fn guaranteed(report: &CheckReport) -> String {
    let of = &report.assumptions;
    let mut sentence = "every deadline holds".to_owned();
    let relied_on: Vec<&str> = of
        .worst_rates
        .iter()
        .chain(&of.flow_rates)
        .map(String::as_str)
        .collect();
    if relied_on.is_empty() {
        sentence += " whatever the sources do";
    } else {
        let rate = if of.flow_rates.is_empty() {
            "worst rate"
        } else {
            "stated rate"
        };
        let keep = if relied_on.len() == 1 {
            "keeps to its"
        } else {
            "keep to their"
        };
        let plural = if relied_on.len() == 1 { "" } else { "s" };
        sentence += &format!(" as long as {} {keep} {rate}{plural}", list(&relied_on));
    }
    let endless: Vec<&str> = report
        .rows
        .iter()
        .filter(|row| row.bound.state == BoundState::Unbounded)
        .map(|row| row.name.as_str())
        .collect();
    if !endless.is_empty() {
        sentence += &format!("; {}, without deadline, may never run", list(&endless));
    }
    sentence
}

fn not_proven(report: &CheckReport) -> String {
    let missing = &report.assumptions.max_work_missing;
    if missing.is_empty() {
        return "nothing has a deadline: give the tasks, sources or flows that matter one"
            .to_owned();
    }
    let states = if missing.len() == 1 {
        "states no max_work, so one interrupt of it"
    } else {
        "state no max_work, so one interrupt of them"
    };
    format!("{} {states} may take any time", list(missing))
}

fn not_guaranteed(report: &CheckReport, clock: CycleClock) -> String {
    let rows = report.missing_rows().count();
    let flows = report.missing_flows().count();
    let (first, rows, flows) = match (report.missing_rows().next(), report.missing_flows().next()) {
        (Some(row), _) => (of_row(report, row, clock), rows - 1, flows),
        (None, Some(flow)) => (of_flow(report, flow, clock), 0, flows - 1),
        (None, None) => return "a deadline is missed".to_owned(),
    };
    let more: Vec<String> = [(rows, "more row"), (flows, "flow")]
        .into_iter()
        .filter(|&(count, _)| count > 0)
        .map(|(count, what)| plural(count, what))
        .collect();
    match rows + flows {
        0 => first,
        1 => format!("{first}; {} misses its deadline, too", more.join(" and ")),
        _ => format!("{first}; {} miss their deadlines, too", more.join(" and ")),
    }
}

fn of_row(report: &CheckReport, row: &Row, clock: CycleClock) -> String {
    late(
        report,
        &row.name,
        &row.bound,
        row.deadline_cycles.unwrap_or(0),
        clock,
    )
}

fn of_flow(report: &CheckReport, flow: &FlowRow, clock: CycleClock) -> String {
    let packet = format!("a packet of {}", flow.name);
    if flow.bound.state == BoundState::Ok && flow.overflows() != Some(true) {
        return format!(
            "{packet} may find the budget of {} used up: {} may come between two ticks, and it gets {} in each",
            flow.receiver,
            flow.budget_needed
                .map_or("any number".to_owned(), |of| of.to_string()),
            flow.budget.unwrap_or(0),
        );
    }
    if flow.bound.state == BoundState::Ok {
        let (needed, room) = (
            flow.queue_needed
                .map_or("any number of".to_owned(), |of| of.to_string()),
            flow.queue.unwrap_or(0),
        );
        return format!(
            "{packet} may find its queue full: {needed} may wait, and there is room for {room}"
        );
    }
    late(
        report,
        &packet,
        &flow.bound,
        flow.deadline_cycles.unwrap_or(0),
        clock,
    )
}

fn late(
    report: &CheckReport,
    name: &str,
    bound: &Bound,
    deadline: u64,
    clock: CycleClock,
) -> String {
    match (&bound.cause, bound.response_cycles) {
        (None, Some(response)) => {
            let (response, deadline) = clock.times_apart(response, deadline);
            format!("{name} can take {response} against its deadline of {deadline}")
        }
        (Some(Cause::Starved { by, count }), _)
            if by.len() == 1 && *count == 1 && by.iter().any(|of| of == name) =>
        {
            format!("{name} may interrupt without end: it has neither a limit nor a worst rate")
        }
        (Some(Cause::Starved { by, count }), _) => {
            let have = if *count == 1 { "has" } else { "have" };
            format!(
                "{name} may never run: it is starved by {}, which {have} neither a limit nor a worst rate",
                list_of(by, *count)
            )
        }
        (Some(Cause::Overload), _) => {
            let asked = report.utilisation.map_or(String::new(), |of| {
                format!(" ({} of it in all)", percent(of))
            });
            format!(
                "{name} may never end: it and what is more urgent ask for all of the processor{asked}"
            )
        }
        (Some(Cause::QueueUnstated { source }), _) => format!(
            "{name} may wait for any number of interrupts, behind as many packets as {source} holds: state the source's `queue`"
        ),
        (Some(Cause::TooLong), _) | (None, None) => {
            format!("{name} takes too long for any bound to be found")
        }
    }
}

fn list_of(names: &[String], count: usize) -> String {
    if names.len() == count {
        list(names)
    } else {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        list_with_more(&names, count - names.len())
    }
}
