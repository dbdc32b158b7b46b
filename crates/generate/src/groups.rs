// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks sources that share a timer's alarm on a chip whose interrupts have priorities
//! (LIMIT-SHARED-1) against the rules of ports/cortex-m.
use weir_boards::{Board, PortRules, cortex_m};

use crate::plan::PlannedSource;
use crate::port::Lack;

/// The errors of the groups, each with the source that it concerns.
pub(crate) fn lacks<'a>(
    chip: &Board,
    rules: &PortRules,
    sources: &[PlannedSource<'a>],
) -> Vec<(&'a str, Lack)> {
    let mut found = Vec::new();
    if rules.group <= 1 {
        return found;
    }
    // The channel of each group, with the group's priority and the number of its sources so far.
    let mut groups: Vec<(&str, Option<u32>, usize)> = Vec::new();
    for source in sources {
        if chip.priorities.is_some() && source.priority.is_none() {
            let lack = Lack::new(
                "its preemption group is none of a priority",
                "write priority = 128, for example",
            );
            found.push((source.name, lack));
        }
        let Some(limit) = &source.limit else {
            continue;
        };
        let channel = limit.channel.as_str();
        if source
            .priority
            .is_some_and(|priority| priority < cortex_m::MOST_URGENT_GROUP)
        {
            let lack = Lack::new(
                cortex_m::TOO_URGENT,
                "write a priority of 1 or more, or leave the limit out",
            );
            found.push((source.name, lack));
        }
        let Some((_, priority, members)) = groups.iter_mut().find(|(of, ..)| *of == channel) else {
            groups.push((channel, source.priority, 1));
            continue;
        };
        *members += 1;
        if *priority != source.priority {
            let lack = Lack::new(
                format!("sources that share {channel} have one priority, and this one differs"),
                "write the same priority, or take another timer",
            );
            found.push((source.name, lack));
        }
        if *members == rules.group + 1 {
            let lack = Lack::new(
                format!("{channel} serves at most {} sources", rules.group),
                "take another timer",
            );
            found.push((source.name, lack));
        }
    }
    found
}
