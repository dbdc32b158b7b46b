// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the assumptions of the answer, with a line for each kind.
use weir_analysis::check::{AssumedCost, CheckReport};
use weir_model::Origin;
use weir_report::terminal::wrapped;

use crate::words::{CycleClock, list, plural};

/// Returns the list of assumptions with its heading.
pub(super) fn text(report: &CheckReport, clock: CycleClock) -> String {
    let of = &report.assumptions;
    let mut lines = vec![
        execution_times(report),
        format!("costs of interrupts: {}", of.interrupt_costs),
        max_work(report),
    ];
    lines.push(stated(
        "code outside interrupts keeps them off once in a busy window, for at most",
        of.critical_section,
        clock,
    ));
    if let Some(cycles) = of.instruction_between {
        lines.push(format!(
            "between two interrupts one instruction of the interrupted program runs, whichever it is, \
             for at most {} ({}): it counts as the ready task's",
            clock.time(cycles),
            plural_cycles(cycles)
        ));
    }
    lines.push(stated("a switch of tasks costs", of.context_switch, clock));
    if let Some(slice) = of.time_slice {
        lines.push(format!(
            "tasks of the same urgency take turns, none shorter than {} unless its work ends",
            clock.time(slice)
        ));
    }
    if of.tasks > 0 {
        lines.push("tasks do not suspend themselves".to_owned());
    }
    if !of.budgets.is_empty() {
        lines.push(format!(
            "FreeRTOS's ticks are less than a tick late: the budget begins anew at each, of {}",
            list(&of.budgets)
        ));
    }
    if !of.gathering.is_empty() {
        lines.push(format!(
            "FreeRTOS's ticks are less than a tick late: they end the waits of frames of {}",
            list(&of.gathering)
        ));
    }
    if !of.emptying.is_empty() {
        lines.push(format!(
            "each job takes all frames that wait, of {}",
            list(&of.emptying)
        ));
    }
    if !of.kernel_threads.is_empty() {
        lines.push(format!(
            "Linux: {} take packets for one receive queue of each source, at most 64 in a poll; what else the kernel does is not in the file",
            list(&of.kernel_threads)
        ));
    }
    if of.cap_timer {
        lines.push(
            "Linux: a timer ends caps (`cap_timer`), for which the kernel needs HRTICK_DL in debugfs: `weir linux plan` says whether this machine has it"
                .to_owned(),
        );
    }
    if !of.worst_rates.is_empty() {
        lines.push(format!(
            "worst rates that are kept, without a limit that enforces it: {}",
            list(&of.worst_rates)
        ));
    }
    if !of.flow_rates.is_empty() {
        lines.push(format!(
            "rates of flows that are kept: {}",
            list(&of.flow_rates)
        ));
    }
    if of.software_limits > 0 {
        lines.push(format!(
            "{} kept by software as core/CONTRACTS.md promises",
            plural(of.software_limits, "limit")
        ));
    }
    if !of.packet_deadlines.is_empty() {
        lines.push(
            "a device holds no more packets than its queue, and an interrupt takes all that wait, but for what is beyond max_work"
                .to_owned(),
        );
        lines.push(
            "a packet that finds its device full, such as in a flood, is lost: deadlines are those of the others"
                .to_owned(),
        );
    }
    let lines: Vec<String> = lines
        .iter()
        .map(|line| wrapped(line, "  - ", "    "))
        .collect();
    format!("This rests on:\n{}", lines.join("\n"))
}

fn execution_times(report: &CheckReport) -> String {
    let times = &report.assumptions.execution_times;
    match (times.declared.len(), times.measured.as_slice()) {
        (0, []) => "execution times: none is stated".to_owned(),
        (_, []) => "execution times: all declared".to_owned(),
        (0, _) => "execution times: all measured, that is seen, not proven".to_owned(),
        (declared, measured) => format!(
            "execution times: {declared} declared, {} measured, that is seen, not proven ({})",
            measured.len(),
            list(measured)
        ),
    }
}

fn max_work(report: &CheckReport) -> String {
    let of = &report.assumptions;
    let stated = of.max_work_stated;
    match (stated, of.max_work_missing.as_slice()) {
        (0, []) => "there is no source".to_owned(),
        (_, []) => "max_work, the most work of one interrupt: stated by every source".to_owned(),
        (_, missing) => format!(
            "max_work, the most work of one interrupt: NOT STATED by {}; 1 is taken",
            list(missing)
        ),
    }
}

fn stated(what: &str, cost: AssumedCost, clock: CycleClock) -> String {
    let origin = match cost.origin {
        Origin::Declared => "declared",
        Origin::Measured => "measured: seen, not proven",
        Origin::Default => "not stated",
    };
    let time = match cost.cycles {
        0 => "0 cycles".to_owned(),
        cycles => format!("{} ({})", clock.time(cycles), plural_cycles(cycles)),
    };
    format!("{what} {time}: {origin}")
}

fn plural_cycles(cycles: u64) -> String {
    format!("{cycles} cycle{}", if cycles == 1 { "" } else { "s" })
}
