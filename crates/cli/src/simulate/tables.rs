// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the tables of tasks, sources, flows, stages and charges. With two runs, each row has two
//! lines.
use weir_report::{Align, Emphasis, Grid, count, percent, time};
use weir_sim::tally::Stage;

use super::answer::{Answer, FlowAnswer, LossCount, RunAnswer, SourceAnswer, TaskAnswer};
use crate::tables::{Format, fold, hidden, note, or_none, plain};
use crate::words::CycleClock;

use Align::{Left, Right};

/// The most rows of each table of a large system.
const MOST_TASKS: usize = 20;
const MOST_OTHERS: usize = 10;
const DIGITS: u8 = 3;

type Cell = (String, Emphasis);

/// Returns the runs with the labels of their lines.
fn runs<'a>(answer: &'a Answer) -> Vec<(&'static str, &'a RunAnswer<'a>)> {
    let runs = &answer.runs;
    let described = runs.as_described.iter().map(|run| ("with", run));
    let without = runs.without.iter().map(|run| ("without", run));
    described.chain(without).collect()
}

/// Makes a table that has a line per run for each item of `shown`. With two runs, each line is
/// labelled.
fn lines(
    answer: &Answer,
    columns: &[(&str, Align)],
    shown: &[usize],
    name: impl Fn(usize) -> String,
    cells: impl Fn(&RunAnswer, usize) -> Vec<Cell>,
    format: Format,
) -> String {
    let runs = runs(answer);
    let is_twice = runs.len() > 1;
    let mut all = columns.to_vec();
    if is_twice {
        all.insert(1, ("", Left));
    }
    let mut grid = Grid::new(&all, format.coloured);
    for &index in shown {
        for (place, &(what, run)) in runs.iter().enumerate() {
            let name = if place == 0 {
                name(index)
            } else {
                String::new()
            };
            let first = std::iter::once(plain(name));
            let which = is_twice.then(|| plain(what));
            grid.row(first.chain(which).chain(cells(run, index)));
        }
    }
    grid.text()
}

/// Returns the indices that are shown, `most` of `count`: those with the least `worth`.
fn shown(count: usize, most: usize, format: Format, worth: impl Fn(usize) -> f64) -> Vec<usize> {
    let all: Vec<usize> = (0..count).collect();
    let shown = fold(&all, format.most(most), |&index| worth(index));
    shown.into_iter().copied().collect()
}

fn number(of: u64) -> Cell {
    plain(count(of))
}

/// Returns a cell for a number that should be 0.
fn bad(of: u64) -> Cell {
    let emphasis = match of {
        0 => Emphasis::Plain,
        _ => Emphasis::Bad,
    };
    (count(of), emphasis)
}

fn missed(of: u64, deadline: Option<u64>) -> Cell {
    match deadline {
        Some(_) => bad(of),
        None => or_none(None),
    }
}

/// Returns the table of the tasks' response times and the bounds of `check`.
pub(super) fn tasks(answer: &Answer, duration: u64, clock: CycleClock, format: Format) -> String {
    let Some(first) = answer.runs.made().next() else {
        return String::new();
    };
    if first.tasks.is_empty() {
        return String::new();
    }
    let columns = [
        ("task", Left),
        ("min", Right),
        ("median", Right),
        ("99 %", Right),
        ("max", Right),
        ("bound", Right),
        ("deadline", Right),
        ("missed", Right),
        ("late", Right),
    ];
    let slack = |index: usize| {
        let slack = |run: &RunAnswer| {
            let task: &TaskAnswer = &run.tasks[index];
            let max = task.responses.as_ref().map_or(0.0, |of| of.max as f64);
            task.deadline_cycles.map_or(f64::INFINITY, |deadline| {
                -max / deadline.max(1) as f64 - task.missed as f64
            })
        };
        answer.runs.made().map(slack).fold(f64::INFINITY, f64::min)
    };
    let shown = shown(first.tasks.len(), MOST_TASKS, format, slack);
    let text = lines(
        answer,
        &columns,
        &shown,
        |index| first.tasks[index].name.to_owned(),
        |run, index| {
            let task = &run.tasks[index];
            let of = task.responses.as_ref();
            let span = |cycles: Option<u64>| or_none(cycles.map(|of| clock.time(of)));
            let is_described = answer
                .runs
                .as_described
                .as_ref()
                .is_some_and(|described| std::ptr::eq(described, run));
            let bound = answer.bounds.tasks[index].bound_cycles;
            vec![
                span(of.map(|of| of.min)),
                span(of.map(|of| of.median)),
                span(of.map(|of| of.p99)),
                span(of.map(|of| of.max)),
                span(bound.filter(|_| is_described)),
                span(task.deadline_cycles),
                missed(task.missed, task.deadline_cycles),
                late(task, duration),
            ]
        },
        format,
    );
    let hidden = hidden(shown.len(), first.tasks.len(), "task", "with more slack");
    let late = note("late: lateness per second, added up over the jobs that ended.");
    format!("{text}{hidden}{late}")
}

/// Returns the lateness that accumulated per second (behnke2021 §III-A).
fn late(task: &TaskAnswer, duration: u64) -> Cell {
    let share = task.lateness_cycles as f64 / duration.max(1) as f64;
    let is_known = task.deadline_cycles.is_some() && task.ended > 0;
    or_none(is_known.then(|| time(share, DIGITS)))
}

/// Returns the table of the sources' requests and what happened to them.
pub(super) fn sources(answer: &Answer, format: Format) -> String {
    let Some(first) = answer.runs.made().next() else {
        return String::new();
    };
    if first.sources.is_empty() {
        return String::new();
    }
    let columns = [
        ("source", Left),
        ("arrived", Right),
        ("taken", Right),
        ("refused", Right),
        ("timer", Right),
        ("served", Right),
        ("missed", Right),
        ("lost", Left),
    ];
    let busy = |index: usize| {
        let source: &SourceAnswer = &first.sources[index];
        -(source.arrived as f64)
    };
    let shown = shown(first.sources.len(), MOST_OTHERS, format, busy);
    let text = lines(
        answer,
        &columns,
        &shown,
        |index| first.sources[index].name.to_owned(),
        |run, index| {
            let source = &run.sources[index];
            vec![
                number(source.arrived),
                number(source.interrupts),
                number(source.refused),
                number(source.expiries),
                number(source.served),
                missed(source.missed, source.deadline_cycles),
                plain(lost(&source.lost)),
            ]
        },
        format,
    );
    let hidden = hidden(
        shown.len(),
        first.sources.len(),
        "source",
        "which asked less",
    );
    format!("{text}{hidden}{}", note(SOURCES))
}

const SOURCES: &str = "taken: interrupts of its line; refused: of those, by its limiter; timer: interrupts of its limiter's own timer.";

fn lost(all: &[LossCount]) -> String {
    let each = all
        .iter()
        .map(|lost| format!("{} {}", count(lost.count), lost.why.reason()));
    each.collect::<Vec<_>>().join(", ")
}

/// Returns the table of the flows' packets and what happened to them.
pub(super) fn flows(answer: &Answer, clock: CycleClock, format: Format) -> String {
    let Some(first) = answer.runs.made().next() else {
        return String::new();
    };
    if first.flows.is_empty() {
        return String::new();
    }
    let columns = [
        ("flow", Left),
        ("arrived", Right),
        ("delivered", Right),
        ("median", Right),
        ("max", Right),
        ("deadline", Right),
        ("late", Right),
        ("lost", Left),
    ];
    let busy = |index: usize| {
        let flow: &FlowAnswer = &first.flows[index];
        -(flow.arrived as f64)
    };
    let shown = shown(first.flows.len(), MOST_OTHERS, format, busy);
    let text = lines(
        answer,
        &columns,
        &shown,
        |index| {
            let flow = &first.flows[index];
            format!("{} → {}", flow.name, flow.receiver)
        },
        |run, index| {
            let flow = &run.flows[index];
            let of = flow.latencies.as_ref();
            vec![
                number(flow.arrived),
                number(flow.delivered),
                or_none(of.map(|of| clock.time(of.median))),
                or_none(of.map(|of| clock.time(of.max))),
                or_none(flow.deadline_cycles.map(|of| clock.time(of))),
                missed(flow.late, flow.deadline_cycles),
                plain(lost(&flow.lost)),
            ]
        },
        format,
    );
    let hidden = hidden(shown.len(), first.flows.len(), "flow", "which brought less");
    format!("{text}{hidden}")
}

/// Returns the table of the time that each stage took.
pub(super) fn stages(answer: &Answer, duration: u64, format: Format) -> String {
    let runs = runs(answer);
    let mut columns = vec![("processor's time", Left)];
    match runs[..] {
        [_] => columns.push(("share", Right)),
        _ => columns.extend(runs.iter().map(|(what, _)| (*what, Right))),
    }
    let mut grid = Grid::new(&columns, format.coloured);
    for (place, stage) in Stage::ALL.into_iter().enumerate() {
        let cycles: Vec<u64> = runs
            .iter()
            .map(|(_, run)| run.stages[place].cycles)
            .collect();
        if cycles.iter().all(|&cycles| cycles == 0) {
            continue;
        }
        let shares = cycles.iter().map(|&cycles| share(cycles, duration));
        grid.row(std::iter::once(plain(name(stage))).chain(shares));
    }
    let interrupts = runs.iter().map(|(_, run)| number(run.interrupts));
    grid.row(std::iter::once(plain("interrupts taken")).chain(interrupts));
    grid.text()
}

fn share(cycles: u64, duration: u64) -> Cell {
    plain(percent(cycles as f64 / duration.max(1) as f64))
}

fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Handlers => "handlers and top halves",
        Stage::Limit => "limiting",
        Stage::Demux => "early demultiplexing",
        Stage::BottomHalves => "bottom halves",
        Stage::Tick => "clock tick",
        Stage::Tasks => "tasks",
        Stage::Switches => "switching tasks",
        Stage::Idle => "idle",
    }
}

/// Returns the table of the time taken from each receiver and the time spent for each receiver.
pub(super) fn charges(answer: &Answer, duration: u64, format: Format) -> String {
    let Some(first) = answer.runs.made().next() else {
        return String::new();
    };
    if first.tasks.is_empty() {
        return String::new();
    }
    let (packets, ticks) = (!first.flows.is_empty(), answer.has_tick());
    let mut columns = vec![("receiver", Left), ("ran", Right), ("taken from it", Right)];
    if packets {
        columns.extend([
            ("by others' packets", Right),
            ("done for it", Right),
            ("received", Right),
        ]);
    }
    if ticks {
        columns.push(("ticks charged", Right));
    }
    let taken = |index: usize| {
        let of = |run: &RunAnswer| run.tasks[index].interrupted_cycles as f64;
        -answer.runs.made().map(of).fold(0.0, f64::max)
    };
    let shown = shown(first.tasks.len(), MOST_OTHERS, format, taken);
    let text = lines(
        answer,
        &columns,
        &shown,
        |index| first.tasks[index].name.to_owned(),
        |run, index| {
            let task = &run.tasks[index];
            let mut cells = vec![
                share(task.ran_cycles, duration),
                share(task.interrupted_cycles, duration),
            ];
            if packets {
                cells.extend([
                    share(task.interrupted_by_bottom_halves_cycles, duration),
                    share(task.charged_cycles, duration),
                    number(task.received),
                ]);
            }
            if ticks {
                cells.push(plain(task.ticks.to_string()));
            }
            cells
        },
        format,
    );
    let hidden = hidden(
        shown.len(),
        first.tasks.len(),
        "receiver",
        "from which less was taken",
    );
    let orphans: Vec<String> = runs(answer)
        .into_iter()
        .filter(|(_, run)| run.orphans_cycles > 0)
        .map(|(what, run)| {
            let (cycles, _) = share(run.orphans_cycles, duration);
            format!("{cycles} ({what})")
        })
        .collect();
    let orphans = match orphans.join(", ") {
        none if none.is_empty() => none,
        shares => note(&format!("done for packets without a receiver: {shares}")),
    };
    format!("{text}{hidden}{orphans}")
}
