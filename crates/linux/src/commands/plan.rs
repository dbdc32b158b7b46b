// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir linux plan` shows what `run` would change, and the consequences.
use miette::IntoDiagnostic as _;
use weir_model::INTERRUPT_URGENCY;
use weir_report::terminal::{Outcome, is_coloured, print_answer, wrapped};
use weir_report::{Align, Emphasis, Grid, count, percent, significant};

use super::{SystemArgs, able};
use crate::plan::{AttachmentPlan, RunPlan};
use crate::programs::Program;
use crate::share::Share;

/// Show everything that `run` would change on this machine, and what a flood can take from whom
/// then
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Nothing is changed. The exit code is 0 if `run` would do that, and 2 if this machine cannot do what the file asks for, with every reason at once."
)]
pub(super) struct Args {
    #[command(flatten)]
    system: SystemArgs,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// Executes the command.
///
/// # Errors
/// Fails if the file describes no system for Linux, or if this machine lacks something.
pub(super) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let node = arguments.system.node()?;
    // Checksums that cannot be checked do not stop the plan. It lists them among the costs.
    able(&node, true)?;
    let plan = RunPlan::new(&node).into_diagnostic()?;
    print_answer(&plan, arguments.json, || text(&plan, is_coloured()))?;
    Ok(Outcome::Good)
}

fn text(plan: &RunPlan, coloured: bool) -> String {
    let mut blocks = vec![format!("{}: mode {}", plan.system, plan.mode)];
    if plan.changes.is_empty() {
        blocks.push("Every setting is as it should be.".to_owned());
    } else {
        let columns = [
            ("setting", Align::Left),
            ("now", Align::Left),
            ("with Weir", Align::Left),
        ];
        let mut grid = Grid::new(&columns, coloured);
        for change in &plan.changes {
            let now = change.now.as_deref().unwrap_or("not there yet");
            let cells = [&change.setting, now, &change.new];
            grid.row(cells.map(|cell| (cell.to_owned(), Emphasis::Plain)));
        }
        blocks.push(grid.text());
    }
    blocks.extend(plan.attached.iter().map(attached));
    blocks.extend(programs(&plan.programs));
    blocks.extend(plan.shares.iter().map(share));
    if !plan.notes.is_empty() {
        blocks.push(format!("Left out:\n  {}", plan.notes.join("\n  ")));
    }
    if !plan.remarks.is_empty() {
        let lines = plan
            .remarks
            .iter()
            .map(|remark| wrapped(remark, "  ", "    "));
        blocks.push(format!(
            "To know:\n{}",
            lines.collect::<Vec<_>>().join("\n")
        ));
    }
    blocks.join("\n\n")
}

/// Describes the attached XDP program and its costs.
fn attached(attached: &AttachmentPlan) -> String {
    let driver = match &attached.driver {
        Some(driver) => format!(" (driver {driver})"),
        None => String::new(),
    };
    let classes: Vec<String> = attached.classes.iter().map(ToString::to_string).collect();
    let mut lines = vec![format!(
        "An XDP program is attached to {}{driver}, which `run` does only with --yes-xdp:",
        attached.interface
    )];
    lines.extend(
        attached
            .costs
            .iter()
            .map(|cost| wrapped(cost, "  ", "    ")),
    );
    lines.push(format!(
        "Packets are given to kernel threads of the urgencies {}, one of each on each CPU,",
        classes.join(", ")
    ));
    lines.push("and of those of other receivers that there are, up to eight in all.".to_owned());
    lines.join("\n")
}

/// Describes the BPF programs that affect all processes of the machine during the run.
fn programs(programs: &[Program]) -> Option<String> {
    let listed = |root_cgroup| {
        let all = programs
            .iter()
            .filter(move |program| program.root_cgroup == root_cgroup);
        all.map(|program| {
            let pays = program.pays.map(|pays| format!(": {pays}"));
            let line = format!(
                "{} ({}){}",
                program.name,
                program.place,
                pays.unwrap_or_default()
            );
            wrapped(&line, "  ", "    ")
        })
        .collect::<Vec<_>>()
    };
    let blocks = [
        (
            "BPF programs are attached to the root of all control groups:",
            listed(true),
        ),
        ("and to events of the kernel:", listed(false)),
    ];
    let lines: Vec<String> = blocks
        .into_iter()
        .filter(|(_, lines)| !lines.is_empty())
        .flat_map(|(title, lines)| std::iter::once(title.to_owned()).chain(lines))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Describes what a flood can take from the receivers.
fn share(share: &Share) -> String {
    let mut lines = vec![format!(
        "A flood from {}, at any rate, takes",
        share.interface
    )];
    match (share.cap, share.urgency) {
        (Some(cap), _) => {
            lines.push(format!(
                "  at most {} of a processor from any task in the long run",
                percent(cap)
            ));
            lines.push(wrapped(
                &match share.poll {
                    Some(time) => format!(
                        "and {} ms more in each period by each queue: the rest of a poll, which the kernel does not end",
                        significant(1000.0 * time, 3)
                    ),
                    None => "and the rest of a poll in each period, which the kernel does not end: the file states no costs"
                        .to_owned(),
                },
"  ", "    "
            ));
            if let Some(time) = share.at_once {
                lines.push(format!(
                    "  and up to {} ms at once by each queue, which then waits the longer",
                    significant(1000.0 * time, 3)
                ));
            }
            if !share.exposed.is_empty() {
                lines.push(wrapped(
                    &format!(
                    "and from {} also the bottom halves of the packets that this lets through, for receivers as urgent or more",
                    share.exposed.join(", ")
                    ),
"  ", "    "
                ));
            }
        }
        (None, urgency) => {
            let urgency = urgency.unwrap_or(0);
            let reason = if urgency == INTERRUPT_URGENCY {
                "the interrupt itself takes packets from the device".to_owned()
            } else {
                format!("not more urgent than {urgency}")
            };
            if !share.safe.is_empty() {
                lines.push(format!(
                    "  nothing from {}: more urgent than {urgency}",
                    share.safe.join(", ")
                ));
            }
            if !share.exposed.is_empty() {
                lines.push(wrapped(
                    &format!(
                        "up to everything from {}: {reason}, and without a cap nothing bounds it",
                        share.exposed.join(", ")
                    ),
                    "  ",
                    "    ",
                ));
            }
        }
    }
    lines.push(match share.interrupts_hz {
        Some(rate) => format!(
            "  and the time of at most {} interrupts a second for each queue",
            significant(rate, 4)
        ),
        None => "  and the time of the interrupts, one per packet at worst: `moderation` would bound them".to_owned(),
    });
    match share.capacity_hz {
        Some(rate) => lines.extend(capacity(share, rate)),
        None => lines
            .push("Its capacity is not known: the file states no costs of its flows.".to_owned()),
    }
    lines.join("\n")
}

/// Describes how many packets can be received, and how many can wait.
fn capacity(share: &Share, rate: f64) -> Vec<String> {
    let packets = |number: f64| count(number.round() as u64);
    let each = share.period.map_or_else(String::new, |period| {
        let time = significant(1000.0 * period, 4);
        format!(": {} in each {time} ms", packets(rate * period))
    });
    let taken = packets(rate);
    let mut lines = vec![format!(
        "Its capacity is {taken} packets a second{each}, by the costs in the file."
    )];
    lines.push(match share.ring {
        Some(ring) => format!(
            "What comes beyond waits in the card, which has room for {} in each receive queue, and drops the rest.",
            count(u64::from(ring))
        ),
        None => "What comes beyond is dropped.".to_owned(),
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_told_for_a_period_and_with_what_waits() {
        let share = |period, ring| Share {
            interface: "eth0".to_owned(),
            cap: None,
            poll: None,
            at_once: None,
            urgency: None,
            safe: Vec::new(),
            exposed: Vec::new(),
            interrupts_hz: None,
            capacity_hz: None,
            period,
            ring,
        };
        assert_eq!(
            capacity(&share(Some(0.1), Some(1024)), 12_000.4),
            [
                "Its capacity is 12,000 packets a second: 1,200 in each 100 ms, by the costs in the file.",
                "What comes beyond waits in the card, which has room for 1,024 in each receive queue, and drops the rest.",
            ]
        );
        assert_eq!(
            capacity(&share(None, None), 200_000.0),
            [
                "Its capacity is 200,000 packets a second, by the costs in the file.",
                "What comes beyond is dropped.",
            ]
        );
    }
}
