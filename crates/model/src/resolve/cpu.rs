// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves the processor, which is that of a board or one that the file describes.
use miette::SourceSpan;
use weir_boards::{Board, Flavour};

use super::costs;
use super::processor::{Hardware, Processor};
use super::units::CycleClock;
use crate::diagnostics::{Problem, Problems, did_you_mean};
use crate::file::leaf::Text;
use crate::file::sections::{self as raw, Root};
use crate::file::value::{KeyValue, printable};
use crate::system::{Cpu, EventCosts, Nesting, TaskModel};

/// The default flavour of a port.
const FLAVOUR: &str = "c";

/// Resolves the section `cpu`.
pub(crate) fn resolve<'a>(
    cpu: &'a raw::Cpu,
    root: &Root,
    problems: &mut Problems<'_>,
) -> Option<Processor<'a>> {
    let hardware = hardware(cpu, problems)?;
    let board = match &hardware {
        Hardware::Own => None,
        Hardware::Board { board, .. } => Some(*board),
    };
    let clock_hz = clock(cpu, board, problems);
    refuse_clock(cpu, board, clock_hz, problems);
    let nesting = nesting(cpu, board, problems);
    let clock = CycleClock { hz: clock_hz? };
    let longest_instruction = match board.filter(|_| cpu.longest_instruction.is_absent()) {
        Some(board) => Some(board.interrupt.longest_instruction_cycles),
        None => stated(
            &cpu.longest_instruction,
            "longest_instruction",
            "\"12 cycles\"",
            cpu.at,
            problems,
        )
        .and_then(|&amount| clock.amount(amount, cpu.longest_instruction.at, problems)),
    };
    let critical_section = clock.cost(&cpu.critical_section, problems);
    let context_switch = clock.cost(&cpu.context_switch, problems);
    let time_slice = time_slice(cpu, clock, problems);
    let tasks = cpu.tasks.or(TaskModel::Preemptive)?;
    let mut processor = Processor {
        cpu: Cpu {
            board: board.map(|board| board.name.clone()),
            flavour: None,
            clock_hz: clock.hz,
            nesting: nesting?,
            longest_instruction: longest_instruction?,
            critical_section: critical_section?,
            context_switch: context_switch?,
            tasks,
            time_slice: time_slice?,
            unlimited: EventCosts::default(),
            costs_from: costs::origin(board, cpu.costs.get()),
        },
        clock,
        hardware,
        costs: cpu.costs.get(),
    };
    processor.cpu.flavour = processor
        .board()
        .map(|(_, flavour)| flavour.name().to_owned());
    // A file without sources does not need costs.
    if let Some(first) = root.source.elements().first() {
        processor.cpu.unlimited = costs::unlimited(&processor, first.at, problems)?;
    }
    Some(processor)
}

fn hardware(cpu: &raw::Cpu, problems: &mut Problems<'_>) -> Option<Hardware> {
    let Some(Text(name)) = cpu.board.optional()? else {
        if cpu.flavour.is_stated() {
            problems.report(
                "`flavour` is of a board's port, and there is no board",
                cpu.flavour.at,
                "without `board`",
                "add the board, or leave `flavour` out and state the costs in [cpu.costs]",
            );
        }
        return Some(Hardware::Own);
    };
    if let Some((folder, error)) = Board::refused().iter().find(|(folder, _)| *folder == name) {
        return problems.refuse(
            format!("the board `{folder}` cannot be used: boards/{folder}/{error}"),
            cpu.board.at,
            "this board",
            "mend that file, and build Weir again",
        );
    }
    let Some(board) = Board::named(&name) else {
        let known: Vec<&str> = Board::all()
            .iter()
            .map(|board| board.name.as_str())
            .collect();
        return problems.refuse(format!("there is no board `{}`", printable(&name)), cpu.board.at, "unknown board", format!(
                "{}; for another chip leave `board` out and state clock, interrupts and costs (docs/generated/system-file.md)",
                did_you_mean(&name, "boards", &known)
            ));
    };
    let flavour = cpu.flavour.or(Text(FLAVOUR.to_owned()))?.0;
    let known = board.flavours();
    let Some(of_port) = Flavour::named(&flavour).filter(|of| known.contains(&of.name())) else {
        return problems.refuse(
            format!(
                "the port of {} has no flavour `{}`",
                board.name,
                printable(&flavour)
            ),
            cpu.flavour.at,
            "unknown flavour",
            did_you_mean(&flavour, "flavours", &known),
        );
    };
    Some(Hardware::Board {
        board,
        flavour: of_port,
    })
}

fn clock(cpu: &raw::Cpu, board: Option<&Board>, problems: &mut Problems<'_>) -> Option<u64> {
    if let Some(board) = board.filter(|_| cpu.clock.is_absent()) {
        return Some(board.clock_hz);
    }
    let rate = stated(&cpu.clock, "clock", "\"16MHz\"", cpu.at, problems)?;
    let whole = rate.whole_hertz();
    if whole.is_none() {
        problems.report(
            format!("a clock of {} is not whole hertz", rate.rate),
            cpu.clock.at,
            "not whole",
            "write whole hertz, for example \"7372800Hz\" or \"7.3728MHz\"",
        );
    }
    whole
}

/// Refuses a clock that differs from the board's, if the board's timers run from another clock.
fn refuse_clock(
    cpu: &raw::Cpu,
    board: Option<&Board>,
    clock_hz: Option<u64>,
    problems: &mut Problems<'_>,
) {
    let has_own = |board: &&Board| board.timers.iter().any(|timer| timer.clock_cycles > 1);
    let fixed = board.filter(has_own).map(|board| (board, board.clock_hz));
    if let Some((board, right)) = fixed.filter(|(_, right)| clock_hz.is_some_and(|hz| hz != *right))
    {
        problems.report(
            format!("the clock of {} is {right} Hz, and no other", board.name),
            cpu.clock.at,
            "another clock",
            "leave `clock` out",
        );
    }
}

fn nesting(cpu: &raw::Cpu, board: Option<&Board>, problems: &mut Problems<'_>) -> Option<Nesting> {
    let Some(board) = board else {
        return stated(&cpu.interrupts, "interrupts", "\"flat\"", cpu.at, problems).copied();
    };
    // Interrupts preempt each other if the program chooses their priorities. On other boards they
    // run with interrupts disabled.
    let (right, what, help) = if board.priorities.is_some() {
        (
            Nesting::Grouped,
            "the more urgent interrupt preempts the other",
            "leave `interrupts` out; sources of the same `priority` do not preempt each other",
        )
    } else {
        (
            Nesting::Flat,
            "no interrupt preempts another",
            "leave `interrupts` out, or write \"flat\"",
        )
    };
    if cpu.interrupts.or(right)? != right {
        return problems.refuse(
            format!("on {} {what}", board.name),
            cpu.interrupts.at,
            "not on this board",
            help,
        );
    }
    Some(right)
}

/// The time slice, rounded down, because a shorter slice means more switches.
fn time_slice(
    cpu: &raw::Cpu,
    clock: CycleClock,
    problems: &mut Problems<'_>,
) -> Option<Option<u64>> {
    if cpu.time_slice.is_stated() && cpu.tasks.get() == Some(&TaskModel::Cooperative) {
        return problems.refuse_with(
            Problem::new(
                "cooperative tasks run to their end and take no turns",
                cpu.time_slice.at,
                "the time slice",
            )
            .and_at(cpu.tasks.at, "how tasks share the processor")
            .help("leave one of them out"),
        );
    }
    clock.optional(&cpu.time_slice, problems)
}

/// The value of a key that a system without a board must state.
pub(crate) fn stated<'a, T>(
    key: &'a KeyValue<T>,
    name: &str,
    example: &str,
    section: SourceSpan,
    problems: &mut Problems<'_>,
) -> Option<&'a T> {
    if key.is_absent() {
        problems.report(
            format!("without a board, the key `{name}` is needed"),
            section,
            "in this section",
            format!("add {name} = {example}, or a board in [cpu]"),
        );
    }
    key.get()
}
