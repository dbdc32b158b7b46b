// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves the ranks of interrupts: the board's vectors, or the groups and orders that the file
//! states.
use std::collections::HashMap;

use miette::SourceSpan;
use weir_boards::Board;

use super::cpu::stated;
use super::processor::Processor;
use crate::Level;
use crate::diagnostics::{Problem, Problems, did_you_mean};
use crate::file::leaf::{Name, Vector};
use crate::file::sections::{Number32, Source};
use crate::file::value::KeyValue;
use crate::system::Nesting;

/// The rank of a source's interrupt.
pub(crate) fn of_source(
    source: &Source,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<Level> {
    let vector = source.vector.get()?;
    if let Some((board, _)) = processor.board() {
        for key in [&source.group, &source.order] {
            refuse_own(key, board, problems);
        }
        let group = group(source, board, problems);
        return match vector {
            Vector::Named(Name(name)) => of_board(board, name, group?, source.vector.at, problems),
            Vector::Own(own) => {
                refuse_place(own.at, board, problems);
                None
            }
        };
    }
    if source.priority.is_stated() {
        problems.report(
            "priorities are those of a board's interrupts, and there is no board",
            source.priority.at,
            "without `board`",
            "write `group`: a higher one preempts a lower one",
        );
    }
    match vector {
        Vector::Named(name) => own(
            &name.0,
            &source.group,
            &source.order,
            source.at,
            processor,
            problems,
        ),
        Vector::Own(vector) => {
            for key in [&source.group, &source.order] {
                if key.is_stated() {
                    problems.add(
                        Problem::new("the vector's place is stated twice", key.at, "here")
                            .and_at(source.vector.at, "and here")
                            .help("leave one of them out"),
                    );
                }
            }
            own(
                &vector.name.get()?.0,
                &vector.group,
                &vector.order,
                vector.at,
                processor,
                problems,
            )
        }
    }
}

/// The preemption group of a source on a board. It follows from the source's priority if the
/// program chooses priorities. On other boards no interrupt preempts another, so there is one
/// group.
fn group(source: &Source, board: &Board, problems: &mut Problems<'_>) -> Option<u32> {
    let Some(priorities) = board.priorities else {
        if source.priority.is_stated() {
            problems.report(
                format!("on {} the vectors' order is their priority", board.name),
                source.priority.at,
                "not on this board",
                "leave it out",
            );
        }
        return Some(0);
    };
    let right = format!(
        "a multiple of {} up to {}, for example 128: the smaller number preempts the larger",
        priorities.step, priorities.most
    );
    if source.priority.is_absent() {
        return problems.refuse(
            format!("on {} each interrupt has a priority", board.name),
            source.at,
            "in this section",
            format!("add priority = …, {right}"),
        );
    }
    let priority = source.priority.get()?.0;
    let group = priorities.group(priority);
    if group.is_none() {
        problems.report(
            format!(
                "the interrupts of {} have no priority {priority}",
                board.name
            ),
            source.priority.at,
            "not one of theirs",
            format!("write {right}"),
        );
    }
    group
}

fn of_board(
    board: &Board,
    name: &str,
    group: u32,
    at: SourceSpan,
    problems: &mut Problems<'_>,
) -> Option<Level> {
    let level = of_vector(board, name, group);
    if level.is_none() {
        let known: Vec<&str> = board.vectors.iter().map(String::as_str).collect();
        problems.report(
            format!("{} has no vector `{name}`", board.name),
            at,
            "unknown vector",
            did_you_mean(name, "vectors", &known),
        );
    }
    level
}

/// The rank of a board's vector in a preemption group. The vector's number is the order.
pub(crate) fn of_vector(board: &Board, vector: &str, group: u32) -> Option<Level> {
    Some(Level {
        vector: vector.to_owned(),
        group,
        order: board.vector(vector)?,
    })
}

/// Reports a group or an order that is stated although there is a board.
pub(crate) fn refuse_own<T>(key: &KeyValue<T>, board: &Board, problems: &mut Problems<'_>) {
    if key.is_stated() {
        refuse_place(key.at, board, problems);
    }
}

fn refuse_place(at: SourceSpan, board: &Board, problems: &mut Problems<'_>) {
    problems.report(
        format!(
            "the places of interrupts on {} are those of its vector table",
            board.name
        ),
        at,
        "a place of one's own",
        "leave it out: the vector's name says enough",
    );
}

/// The rank of an interrupt of a system without a board.
pub(crate) fn own(
    name: &str,
    group: &KeyValue<Number32>,
    order: &KeyValue<Number32>,
    section: SourceSpan,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<Level> {
    let group = match processor.cpu.nesting {
        Nesting::Grouped => stated(group, "group", "1", section, problems).map(|group| group.0),
        Nesting::Flat => {
            let number = group.or(crate::file::leaf::Whole(0))?.0;
            if number != 0 {
                problems.report(
                    "flat interrupts have no groups",
                    group.at,
                    "a group",
                    "leave it out, or write interrupts = \"grouped\" in [cpu]",
                );
            }
            Some(0)
        }
    };
    let order = stated(order, "order", "3", section, problems)?.0;
    Some(Level {
        vector: name.to_owned(),
        group: u32::try_from(group?).ok()?,
        order: u32::try_from(order).ok()?,
    })
}

/// An interrupt and its owner.
#[derive(Debug)]
pub(crate) struct VectorOwner<'a> {
    pub level: &'a Level,
    pub at: SourceSpan,
    /// The owner in words, for messages, for example "the source `encoder`".
    pub by: String,
}

/// Reports vectors, and ranks in a group, that two owners use.
pub(crate) fn unique(taken: &[VectorOwner<'_>], problems: &mut Problems<'_>) {
    let mut vectors: HashMap<&str, &VectorOwner<'_>> = HashMap::new();
    let mut places: HashMap<(u32, u32), &VectorOwner<'_>> = HashMap::new();
    for one in taken {
        if let Some(before) = vectors.insert(&one.level.vector, one) {
            problems.add(
                Problem::new(
                    format!(
                        "{} and {} have the same vector, {}",
                        before.by, one.by, one.level.vector
                    ),
                    one.at,
                    "again here",
                )
                .and_at(before.at, "first here")
                .help("give one of them another vector, or another channel"),
            );
        } else if let Some(before) = places.insert((one.level.group, one.level.order), one) {
            problems.add(
                Problem::new(
                    format!(
                        "{} and {} both have order {} in group {}",
                        before.by, one.by, one.level.order, one.level.group
                    ),
                    one.at,
                    "again here",
                )
                .and_at(before.at, "first here")
                .help("an order says which of two interrupts of a group is served first, so each has its own"),
            );
        }
    }
}
