// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves groups: sources of one priority whose limits share the alarm of one timer
//! (LIMIT-SHARED-1). Only boards whose interrupts have priorities have groups.
use weir_boards::{Board, Flavour, PortRules, cortex_m};

use super::limits::LimitDraft;
use super::processor::Processor;
use super::timers::Bank;
use crate::diagnostics::{Problem, Problems};
use crate::file::sections::Source as RawSource;
use crate::system::{EventCosts, Expiry, Interval, Source, Timer};

/// The sources that share a channel.
#[derive(Debug)]
pub(crate) struct AlarmGroup {
    channel: usize,
    members: usize,
    /// The cost of an interrupt of the alarm in which nothing is due, with one source in the group.
    idle: u64,
    /// The cost that each further source adds to any interrupt of the alarm.
    further: u64,
}

impl AlarmGroup {
    /// The cost that all sources except the first add to an interrupt.
    fn beside(&self) -> u64 {
        let others = u64::try_from(self.members.saturating_sub(1)).unwrap_or(u64::MAX);
        self.further.saturating_mul(others)
    }

    /// The alarm's interrupts in which nothing is due, as a timer. The alarm of a group at rest
    /// interrupts to age its sources.
    pub fn alarm(&self, bank: &Bank, sources: &[Source]) -> Option<Timer> {
        let channel = bank.channels.get(self.channel)?;
        let mut own = sources.iter().map(|source| &source.limit);
        let limit = own.find(|limit| matches!(&limit.expiry, Some(Expiry::Own { channel: name, .. }) if *name == channel.name))?;
        Some(Timer {
            name: format!("{} at rest", channel.name),
            channel: channel.name.clone(),
            level: channel.level.clone(),
            period: Interval {
                ticks: cortex_m::REST_TICKS,
                tick: limit.interval.tick,
            },
            base: self.idle.saturating_add(self.beside()),
        })
    }
}

/// The rules of groups; `None` if the board has no groups.
pub(super) fn rules(
    processor: &Processor<'_>,
) -> Option<(&'static PortRules, (&'static Board, Flavour))> {
    let rules = processor.rules().filter(|rules| rules.group > 1);
    rules.zip(processor.board())
}

/// Forms the groups of a system, and reports what is wrong about them.
pub(crate) fn of(
    sources: &[(&RawSource, &LimitDraft)],
    bank: &Bank,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Vec<AlarmGroup> {
    let Some((rules, (board, flavour))) = rules(processor) else {
        return Vec::new();
    };
    let (idle, further) = board.group_costs(flavour);
    let mut groups: Vec<(usize, Vec<&RawSource>)> = Vec::new();
    for (source, draft) in sources {
        let LimitDraft::Own { wish, .. } = draft else {
            continue;
        };
        at_least_one(source, board, problems);
        match groups
            .iter_mut()
            .find(|(channel, _)| *channel == wish.channel)
        {
            Some((_, members)) => members.push(source),
            None => groups.push((wish.channel, vec![source])),
        }
    }
    for (channel, members) in &groups {
        let name = bank
            .channels
            .get(*channel)
            .map_or("", |of| of.name.as_str());
        same_priority(members, name, problems);
        if let Some(extra) = members.get(rules.group) {
            let at = extra.limit.get().map_or(extra.at, |limit| limit.timer.at);
            problems.report(
                format!("{name} serves at most {} sources", rules.group),
                at,
                format!("the {}th", rules.group + 1),
                "take another timer, or state the worst rate of a source that bounds itself and leave its limit out",
            );
        }
    }
    let group = |(channel, members): (usize, Vec<&RawSource>)| AlarmGroup {
        channel,
        members: members.len(),
        idle,
        further,
    };
    groups.into_iter().map(group).collect()
}

/// Reports a limited source whose priority no limiter can hold back.
pub(super) fn at_least_one(source: &RawSource, board: &Board, problems: &mut Problems<'_>) {
    let priority = source.priority.get().map(|priority| priority.0);
    if priority.is_some_and(|of| of < u64::from(cortex_m::MOST_URGENT_GROUP)) {
        let step = board.priorities.map_or(1, |priorities| priorities.step);
        let limit = if source.limit.is_absent() {
            "its limit is to be chosen"
        } else {
            "the limit"
        };
        problems.add(
            Problem::new(cortex_m::TOO_URGENT, source.priority.at, "too urgent")
                .and_at(source.limit.at, limit)
                .help(format!(
                    "write {step} or more, or limit = {{ policy = \"off\" }}"
                )),
        );
    }
}

/// Reports sources that name the same timer but differ in priority.
fn same_priority(members: &[&RawSource], timer: &str, problems: &mut Problems<'_>) {
    let of = |source: &RawSource| source.priority.get().map(|priority| priority.0);
    let Some((first, others)) = members.split_first() else {
        return;
    };
    for other in others.iter().filter(|other| of(other) != of(first)) {
        problems.add(
            Problem::new(
                format!("sources that share the timer {timer} have one priority"),
                other.priority.at,
                "another priority",
            )
            .and_at(first.priority.at, "the priority of the first")
            .help("write the same priority, or take another timer"),
        );
    }
}

/// The costs of a limit whose group has as many of `sources` as it can have.
pub(crate) fn most(processor: &Processor<'_>, sources: usize, alone: EventCosts) -> EventCosts {
    let Some((board, flavour)) = processor.board() else {
        return alone;
    };
    let (idle, further) = board.group_costs(flavour);
    let members = processor
        .rules()
        .map_or(1, |rules| rules.group.min(sources));
    let group = AlarmGroup {
        channel: 0,
        members,
        idle,
        further,
    };
    costs(&[group], 0, alone)
}

/// The costs of a limit on a channel. Its expiries are interrupts of the whole group.
pub(crate) fn costs(groups: &[AlarmGroup], channel: usize, alone: EventCosts) -> EventCosts {
    let group = groups.iter().find(|group| group.channel == channel);
    let beside = group.map_or(0, AlarmGroup::beside);
    let more = |cost: u64| match cost {
        0 => 0,
        cost => cost.saturating_add(beside),
    };
    EventCosts {
        expiry_served: more(alone.expiry_served),
        expiry_empty: more(alone.expiry_empty),
        ..alone
    }
}
