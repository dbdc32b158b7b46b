// SPDX-License-Identifier: MIT OR Apache-2.0
//! States the verdict in one sentence: which deadlines were missed, and what difference Weir makes.
use std::cmp::Reverse;

use weir_report::count;

use super::answer::{RunAnswer, Runs};
use crate::words::list;

/// The missed deadlines of a task, a source or a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DeadlineCount {
    name: String,
    missed: u64,
    of: u64,
    /// True for a flow: the deadlines are those of its packets.
    packets: bool,
}

/// Returns the parts of a run that have deadlines: first the tasks by descending urgency, then the
/// sources, then the flows that are not flooded themselves.
fn judged(run: &RunAnswer) -> Vec<DeadlineCount> {
    let mut tasks: Vec<_> = run.tasks.iter().collect();
    tasks.sort_by_key(|task| Reverse(task.urgency));
    let tasks = tasks
        .into_iter()
        .filter(|task| task.deadline_cycles.is_some())
        .map(|task| DeadlineCount {
            name: task.name.to_owned(),
            missed: task.missed,
            of: task.released,
            packets: false,
        });
    let sources = run.sources.iter();
    let sources = sources
        .filter(|source| source.deadline_cycles.is_some())
        .map(|source| DeadlineCount {
            name: source.name.to_owned(),
            missed: source.missed,
            of: source.served + source.overdue,
            packets: false,
        });
    let flows = run.flows.iter();
    let flows = flows
        .filter(|flow| flow.deadline_cycles.is_some() && !flow.flooded)
        .map(|flow| DeadlineCount {
            name: flow.name.to_owned(),
            missed: flow.missed(),
            of: flow.arrived,
            packets: true,
        });
    tasks.chain(sources).chain(flows).collect()
}

/// Returns the number of missed deadlines.
pub(crate) fn missed(run: &RunAnswer) -> u64 {
    judged(run).iter().map(|of| of.missed).sum()
}

/// Returns whether a deadline was missed.
pub(super) fn misses(run: &RunAnswer) -> bool {
    missed(run) > 0
}

/// Returns the sentence. `without` names the parts that are disabled in the second run.
pub(super) fn sentence(runs: &Runs, without: &[&str]) -> String {
    let what = list(without);
    match (&runs.as_described, &runs.without) {
        (Some(with), Some(run)) => {
            let them = match without {
                ["limits"] | [_, _, ..] => "them",
                _ => "it",
            };
            both(&judged(with), &judged(run), &what, them)
        }
        (Some(run), None) => one(&judged(run), ""),
        (None, Some(run)) if without.is_empty() => one(&judged(run), ""),
        (None, Some(run)) => one(&judged(run), &format!(" without {what}")),
        (None, None) => one(&[], ""),
    }
}

fn one(run: &[DeadlineCount], how: &str) -> String {
    if run.is_empty() {
        return "nothing has a deadline".to_owned();
    }
    match first(run) {
        None => format!("no deadline is missed{how}"),
        Some((of, more)) => format!("{} misses {}{how}{}", of.name, share(of), too(more)),
    }
}

fn both(with: &[DeadlineCount], without: &[DeadlineCount], what: &str, them: &str) -> String {
    if with.is_empty() {
        return "nothing has a deadline".to_owned();
    }
    match (first(with), first(without)) {
        (None, None) => format!("no deadline is missed, with {what} or without"),
        (None, Some((of, more))) => format!(
            "{} misses {} without its {what}, none with {them}{}",
            of.name,
            share(of),
            too(more)
        ),
        (Some((of, more)), _) => {
            let is_same =
                |other: &&DeadlineCount| (&other.name, other.packets) == (&of.name, of.packets);
            let other = without.iter().find(is_same);
            let other = match other.map_or(0, |other| other.missed) {
                0 => "none".to_owned(),
                missed => count(missed),
            };
            format!(
                "{} misses {} with its {what}, {other} without {them}{}",
                of.name,
                share(of),
                too(more)
            )
        }
    }
}

/// Returns the first entry that misses deadlines, and the number of further ones. `None` if no
/// entry does.
fn first(run: &[DeadlineCount]) -> Option<(&DeadlineCount, usize)> {
    let mut late = run.iter().filter(|of| of.missed > 0);
    let first = late.next()?;
    Some((first, late.count()))
}

fn share(of: &DeadlineCount) -> String {
    let (missed, all) = (count(of.missed), count(of.of));
    let plural = if of.of == 1 { "" } else { "s" };
    if of.packets {
        format!("the deadlines of {missed} of {all} packet{plural}")
    } else {
        format!("{missed} of {all} deadline{plural}")
    }
}

fn too(more: usize) -> String {
    match more {
        0 => String::new(),
        1 => "; 1 more misses deadlines, too".to_owned(),
        _ => format!("; {more} more miss deadlines, too"),
    }
}
