// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the costs of limiters' interrupts: the numbers of the file, or otherwise those of the
//! board.
use miette::SourceSpan;
use weir_boards::{Board, Events};

use super::processor::Processor;
use super::units::CycleClock;
use crate::diagnostics::Problems;
use crate::file::leaf::Amount;
use crate::file::sections as raw;
use crate::file::value::KeyValue;
use crate::system::{EventCosts, Policy, Timing};

/// The table of costs that applies to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CostTable {
    /// An ordinary interrupt without a limiter.
    Off,
    Poll,
    /// A bursty limiter that a shared timer clears.
    Shared,
    /// A limiter of this policy and timing with a timer of its own.
    Own(Policy, Timing),
}

/// The key of an event that has a cost, and the function that reads the cost.
type Need = (&'static str, fn(&Events) -> Option<u64>);

impl CostTable {
    /// The path of the table in costs.toml and below [cpu.costs].
    pub fn path(self) -> Vec<&'static str> {
        let (policy, timing) = match self {
            Self::Off => return vec!["off"],
            Self::Poll => return vec!["poll"],
            Self::Shared => return vec!["shared"],
            Self::Own(policy, timing) => (policy, timing),
        };
        vec![policy.name(), timing.name()]
    }

    /// The events of a limiter that has the costs of `table`. `clear_served` depends on the port:
    /// it does not happen where a waiting request has an interrupt of its own.
    fn needs(self) -> &'static [Need] {
        match self {
            Self::Off => &[("request_served", |e| e.request_served)],
            Self::Poll => &[
                ("expiry_served", |e| e.expiry_served),
                ("expiry_empty", |e| e.expiry_empty),
            ],
            Self::Shared => &[
                ("request_served", |e| e.request_served),
                ("expiry_base", |e| e.expiry_base),
                ("clear_empty", |e| e.clear_empty),
            ],
            Self::Own(_, Timing::Lazy) => &[
                ("request_served", |e| e.request_served),
                ("request_refused", |e| e.request_refused),
                ("expiry_served", |e| e.expiry_served),
                ("expiry_empty", |e| e.expiry_empty),
            ],
            Self::Own(_, Timing::Eager | Timing::OneShot) => &[
                ("request_served", |e| e.request_served),
                ("expiry_served", |e| e.expiry_served),
                ("expiry_empty", |e| e.expiry_empty),
            ],
        }
    }
}

/// The cost of an ordinary interrupt. `at` is the place that needs it.
pub(crate) fn unlimited(
    processor: &Processor<'_>,
    at: SourceSpan,
    problems: &mut Problems<'_>,
) -> Option<EventCosts> {
    events(processor, CostTable::Off, None, at, problems)
        .map(|events| costs(CostTable::Off, &events))
}

/// The costs of the events of `table`, on `channel` if there is one. `at` is the place of the limit
/// that needs them.
pub(crate) fn events(
    processor: &Processor<'_>,
    table: CostTable,
    channel: Option<&str>,
    at: SourceSpan,
    problems: &mut Problems<'_>,
) -> Option<Events> {
    let path = table.path();
    let of_file = of_file(processor, table, problems)?;
    let Some((board, flavour)) = processor.board() else {
        let Some(missing) = missing(table, &of_file) else {
            return Some(of_file);
        };
        return problems.refuse(
            format!(
                "what an interrupt of `{}` costs is not stated",
                path.join(".")
            ),
            at,
            "needed here",
            format!("add to {missing}"),
        );
    };
    let Some(of_board) = board.events(flavour, &path, channel) else {
        return problems.refuse(
            format!(
                "the flavour `{}` has no limit `{}`",
                flavour.name(),
                path.join(".")
            ),
            at,
            "not in this flavour",
            format!("it has {}", board.abilities(flavour).join(", ")),
        );
    };
    Some(of_file.or(of_board))
}

fn of_file(
    processor: &Processor<'_>,
    table: CostTable,
    problems: &mut Problems<'_>,
) -> Option<Events> {
    match processor.costs.and_then(|costs| written(costs, table)) {
        Some(written) => read(written, processor.clock, problems),
        None => Some(Events::default()),
    }
}

/// The keys that a file without a board lacks to state the costs of `table`; `None` if it states
/// all.
pub(crate) fn missing_in_file(
    processor: &Processor<'_>,
    table: CostTable,
    problems: &mut Problems<'_>,
) -> Option<String> {
    if processor.board().is_some() {
        return None;
    }
    missing(table, &of_file(processor, table, problems)?)
}

/// The keys that the file lacks, as a user would write them; `None` if it lacks none.
fn missing(table: CostTable, of_file: &Events) -> Option<String> {
    let needs = table.needs().iter();
    let missing: Vec<String> = needs
        .filter(|(_, get)| get(of_file).is_none())
        .map(|(name, _)| format!("{name} = \"… cycles\""))
        .collect();
    let path = table.path().join(".");
    (!missing.is_empty()).then(|| format!("[cpu.costs.{path}]: {}", missing.join(", ")))
}

/// The costs in the form of the analysis, where an event that does not exist costs 0.
pub(crate) fn costs(table: CostTable, events: &Events) -> EventCosts {
    let shared = table == CostTable::Shared;
    EventCosts {
        request_served: events.request_served.unwrap_or(0),
        request_refused: events.request_refused.unwrap_or(0),
        expiry_served: if shared {
            events.clear_served
        } else {
            events.expiry_served
        }
        .unwrap_or(0),
        expiry_empty: if shared {
            events.clear_empty
        } else {
            events.expiry_empty
        }
        .unwrap_or(0),
    }
}

fn written(costs: &raw::Costs, table: CostTable) -> Option<&raw::Events> {
    match table {
        CostTable::Off => costs.off.get(),
        CostTable::Poll => costs.poll.get(),
        CostTable::Shared => costs.shared.get(),
        CostTable::Own(Policy::Bursty, timing) => {
            let timings = costs.bursty.get()?;
            match timing {
                Timing::Lazy => timings.lazy.get(),
                Timing::Eager => timings.eager.get(),
                Timing::OneShot => timings.one_shot.get(),
            }
        }
        CostTable::Own(Policy::Strict, timing) => timed(&costs.strict, timing),
        CostTable::Own(Policy::Paced, timing) => timed(&costs.paced, timing),
        CostTable::Own(Policy::Bucket, timing) => timed(&costs.bucket, timing),
        CostTable::Own(Policy::Off | Policy::Poll, _) => None,
    }
}

fn timed(timings: &KeyValue<raw::Timings>, timing: Timing) -> Option<&raw::Events> {
    let timings = timings.get()?;
    match timing {
        Timing::Lazy => timings.lazy.get(),
        Timing::Eager => timings.eager.get(),
        Timing::OneShot => None,
    }
}

fn read(events: &raw::Events, clock: CycleClock, problems: &mut Problems<'_>) -> Option<Events> {
    let mut amount = |key: &KeyValue<Amount>| match key.optional()? {
        None => Some(None),
        Some(amount) => clock.amount(amount, key.at, problems).map(Some),
    };
    Some(Events {
        request_served: amount(&events.request_served)?,
        request_refused: amount(&events.request_refused)?,
        expiry_served: amount(&events.expiry_served)?,
        expiry_empty: amount(&events.expiry_empty)?,
        expiry_base: amount(&events.expiry_base)?,
        clear_empty: amount(&events.clear_empty)?,
        clear_served: amount(&events.clear_served)?,
    })
}

/// The text that says where the costs come from.
pub(crate) fn origin(board: Option<&Board>, of_file: Option<&raw::Costs>) -> String {
    match (board, of_file) {
        (Some(board), None) => board.costs_from(),
        (Some(board), Some(_)) => {
            format!("{}; the file's [cpu.costs] before it", board.costs_from())
        }
        (None, _) => "the file's [cpu.costs]".to_owned(),
    }
}
