// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves `[freertos]` and the budgets of receivers.
use miette::SourceSpan;
use weir_boards::Port;

use crate::diagnostics::{Problem, Problems};
use crate::exact::ExactRate;
use crate::file::freertos as raw;
use crate::file::leaf::{Name, UrgencyNumber, Whole};
use crate::file::sections::Root;
use crate::file::value::KeyValue;
use crate::freertos::{FrameBudget, FrameLane, Freertos};
use crate::system::{Flow, Receiver};

use super::linux;
use super::processor::Processor;
use super::units::CycleClock;

/// The default of `configTICK_RATE_HZ`.
const TICK_HZ: u64 = 1000;
/// Bytes of a word; the size of a stack is a whole number of words.
const WORD: u64 = 4;

/// Resolves the settings for `weir generate --rtos freertos`; `Some(None)` if the file has none.
/// Returns `None`, and reports at least one problem, if they are wrong.
pub(crate) fn resolve(
    root: &Root,
    processor: &Processor<'_>,
    deadlines: &[NamedDeadline<'_>],
    problems: &mut Problems<'_>,
) -> Option<Option<Freertos>> {
    let clock = processor.clock;
    if root.freertos.is_absent() {
        return budgets_without(root, problems).then_some(None);
    }
    let of = root.freertos.get()?;
    let is_possible = has_port(root, processor, problems)
        & is_alone(root, problems)
        & takes_frames(root, &of.fragments, problems);
    let tick = tick(&of.tick_rate, problems);
    let stack = stack(&of.stack, problems);
    let priorities = of.priorities.get().map(|&Whole(most)| most);
    let lanes = [&of.common, &of.orphans, &of.fragments];
    let fit = priorities.is_none_or(|most| urgencies(root, &lanes, most, problems));
    let budgets = tick.and_then(|hz| budgets(root, hz, problems));
    let [common, orphans, fragments] = lanes.map(|key| lane(key, clock, deadlines, problems));
    Some(Some(Freertos {
        priorities: u32::try_from(priorities?).ok()?,
        tick_hz: tick?,
        tick_cycles: clock.hz.checked_div(tick?)?.max(1),
        stack_bytes: stack?,
        common: common??,
        orphans: orphans?,
        fragments: fragments?,
        budgets: budgets?,
    }))
    .filter(|_| fit && is_possible)
}

/// Whether ports/freertos supports the board. Reports a board that it does not support.
fn has_port(root: &Root, processor: &Processor<'_>, problems: &mut Problems<'_>) -> bool {
    let other = processor
        .board()
        .filter(|(board, _)| board.port != Port::CortexM);
    if let Some((board, _)) = other {
        problems.report(
            format!(
                "ports/freertos has no call that starts it on {}",
                board.name
            ),
            root.freertos.at,
            "not on this board",
            "take the board of a Cortex-M, or leave `[freertos]` out",
        );
    }
    other.is_none()
}

/// Whether FreeRTOS is the only operating system of the file. Reports settings for Linux.
fn is_alone(root: &Root, problems: &mut Problems<'_>) -> bool {
    let of_linux = linux::places(root);
    for at in &of_linux {
        problems.add(
            Problem::new("a file is for FreeRTOS or for Linux", *at, "for Linux")
                .and_at(root.freertos.at, "for FreeRTOS")
                .help("leave one of them out: each system has a file of its own"),
        );
    }
    of_linux.is_empty()
}

/// Whether it is known when each receiver of frames takes them, and no receiver has the urgency of
/// fragments. Fragments stay in their buffers until the rest of the packet comes. Reports the
/// receivers for which this does not hold.
fn takes_frames(
    root: &Root,
    fragments: &KeyValue<raw::FrameLane>,
    problems: &mut Problems<'_>,
) -> bool {
    let with_port = root.flow.elements().iter().filter(|flow| {
        let selector = flow.selector.get();
        selector.is_some_and(|of| of.port.is_stated())
    });
    let names: Vec<&Name> = with_port.filter_map(|flow| flow.receiver.get()).collect();
    let lane = fragments.get().map(|of| &of.urgency);
    let mut fit = true;
    for receiver in root.receiver.elements() {
        let Some(name) = receiver.name.get().filter(|name| names.contains(name)) else {
            continue;
        };
        if receiver.interarrival.is_stated() {
            fit = false;
            problems.report(
                format!(
                    "`{}` takes its frames when a job comes, and `interarrival` does not say how long that can be",
                    name.0
                ),
                receiver.interarrival.at,
                "the least time",
                "write `period`, or leave it out if each frame releases a job",
            );
        }
        let same = lane.filter(|lane| {
            let urgency = receiver.urgency.get().map(|of| of.0);
            urgency.is_some() && lane.get().map(|of| of.0) == urgency
        });
        if let Some(lane) = same {
            fit = false;
            problems.add(
                Problem::new(
                    format!(
                        "fragments stay in their buffers until the others come, and those of `{}` are the same",
                        name.0
                    ),
                    lane.at,
                    "the urgency of fragments",
                )
                .and_at(receiver.urgency.at, "has the same")
                .help("write an urgency that no receiver of frames has"),
            );
        }
    }
    fit
}

/// The name and the urgency of a unit that has a deadline.
pub(crate) struct NamedDeadline<'a> {
    name: &'a str,
    urgency: u8,
}

/// All deadlines of the receivers and flows of a file.
pub(crate) fn deadlines<'a>(
    receivers: Option<&'a [Receiver]>,
    flows: Option<&'a [Flow]>,
) -> Vec<NamedDeadline<'a>> {
    let receivers = receivers.unwrap_or_default();
    let of_flows = flows.unwrap_or_default().iter().filter_map(|flow| {
        flow.deadline?;
        let urgency = receivers.get(flow.receiver)?.urgency;
        Some((&flow.name, urgency))
    });
    let of_receivers = receivers.iter().filter(|of| of.deadline.is_some());
    of_receivers
        .map(|of| (&of.name, of.urgency))
        .chain(of_flows)
        .map(|(name, urgency)| NamedDeadline { name, urgency })
        .collect()
}

/// Whether the file has no budgets. Reports budgets, because nothing would enforce them.
fn budgets_without(root: &Root, problems: &mut Problems<'_>) -> bool {
    let mut none = true;
    for receiver in root.receiver.elements() {
        if receiver.budget.is_stated() {
            none = false;
            problems.report(
                "nothing keeps this budget: it is for code on FreeRTOS, of which the file says nothing",
                receiver.budget.at,
                "a budget",
                "add `[freertos]` with `priorities` and `common`, or leave the budget out",
            );
        }
    }
    none
}

fn tick(key: &KeyValue<ExactRate>, problems: &mut Problems<'_>) -> Option<u64> {
    let Some(rate) = key.optional()? else {
        return Some(TICK_HZ);
    };
    match rate.whole_hertz() {
        Some(hz) if hz > 0 => Some(hz),
        _ => problems.refuse(
            "FreeRTOS's tick has a rate of whole hertz",
            key.at,
            "not whole",
            "write what configTICK_RATE_HZ is, for example \"1kHz\"",
        ),
    }
}

fn stack(key: &KeyValue<Whole<512, 262_140>>, problems: &mut Problems<'_>) -> Option<u32> {
    let Whole(bytes) = key.or(Whole(3072))?;
    if bytes % WORD != 0 {
        return problems.refuse(
            format!("{bytes} bytes are no whole number of words"),
            key.at,
            "not in words",
            format!(
                "write a multiple of {WORD}, such as {}",
                bytes.next_multiple_of(WORD)
            ),
        );
    }
    u32::try_from(bytes).ok()
}

/// Whether all urgencies of the file are below `most`. Reports those that are not.
fn urgencies(
    root: &Root,
    lanes: &[&KeyValue<raw::FrameLane>],
    most: u64,
    problems: &mut Problems<'_>,
) -> bool {
    let receivers = root.receiver.elements().iter().map(|of| &of.urgency);
    let lanes = lanes.iter().filter_map(|lane| lane.get());
    let mut are = true;
    for key in receivers.chain(lanes.map(|lane| &lane.urgency)) {
        let Some(UrgencyNumber(urgency)) = key.get().filter(|of| u64::from(of.0) >= most) else {
            continue;
        };
        are = false;
        problems.add(
            Problem::new(
                format!("FreeRTOS has no priority {urgency}"),
                key.at,
                "too large",
            )
            .and_at(place(root), "of so many")
            .help(format!(
                "write an urgency from 0 to {}, or raise `priorities` and configMAX_PRIORITIES",
                most - 1
            )),
        );
    }
    are
}

/// The place where the file states the number of priorities.
fn place(root: &Root) -> SourceSpan {
    root.freertos
        .get()
        .map_or(root.freertos.at, |of| of.priorities.at)
}

/// The frames that each budget admits per tick, rounded down.
fn budgets(root: &Root, tick_hz: u64, problems: &mut Problems<'_>) -> Option<Vec<FrameBudget>> {
    let mut all = Some(Vec::new());
    for (receiver, of) in root.receiver.elements().iter().enumerate() {
        let Some(stated) = of.budget.optional()? else {
            continue;
        };
        let per_tick = stated.whole_hertz().map(|hz| hz / tick_hz);
        match per_tick.and_then(|frames| u32::try_from(frames).ok()) {
            Some(per_tick) if per_tick > 0 => {
                if let Some(all) = &mut all {
                    all.push(FrameBudget { receiver, per_tick });
                }
            }
            None if per_tick.is_some() => {
                all = None;
                problems.report(
                    "this budget is more than 32 bits count in a tick",
                    of.budget.at,
                    "too large",
                    "leave it out: no card brings so many frames",
                );
            }
            _ => {
                all = None;
                problems.report(
                    "this budget is no whole number of hertz with at least one frame in each tick",
                    of.budget.at,
                    "too small or not whole",
                    format!("write a multiple of \"{tick_hz}Hz\", the rate of FreeRTOS's tick"),
                );
            }
        }
    }
    all
}

/// A lane; `Some(None)` if the file does not state it.
fn lane(
    key: &KeyValue<raw::FrameLane>,
    clock: CycleClock,
    deadlines: &[NamedDeadline<'_>],
    problems: &mut Problems<'_>,
) -> Option<Option<FrameLane>> {
    if key.is_absent() {
        return Some(None);
    }
    let of = key.get()?;
    let bottom_half = clock.cost(&of.bottom_half, problems);
    let Whole(queue) = *of.queue.get()?;
    let urgency = of.urgency.get()?.0;
    let bottom_half = bottom_half?;
    let later = deadlines.iter().find(|of| of.urgency <= urgency);
    if let Some(later) = later.filter(|_| !of.bottom_half.is_stated()) {
        problems.add(
            Problem::new(
                format!(
                    "the file does not say what these frames cost, and the deadline of `{}` waits for them",
                    later.name
                ),
                of.urgency.at,
                format!("`{}` has urgency {}", later.name, later.urgency),
            )
            .help("add `bottom_half`, for example \"9000 cycles\", or write an urgency below that of every deadline"),
        );
        return None;
    }
    Some(Some(FrameLane {
        urgency,
        queue: u16::try_from(queue).ok()?,
        bottom_half,
    }))
}
