// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[linux]`, and the keys of sources and receivers that only `weir linux` uses.
use std::time::Duration;

use miette::SourceSpan;
use toml_edit::{Item, Table};

use super::processor::Processor;
use super::units::CycleClock;
use crate::diagnostics::{Problem, Problems};
use crate::file::leaf::{UrgencyNumber, Whole, YesNo};
use crate::file::linux as raw;
use crate::file::sections::Root;
use crate::file::value::Value;
use crate::linux::{Interface, LONGEST_TICK, Linux, LinuxMode, Match, Predict, TopHalf};
use crate::system::{Place, Policy};

/// The highest priority of SCHED_FIFO that a file may state.
const URGENCY_MOST: u8 = 99;
/// The shortest runtime of SCHED_DEADLINE (the kernel's DL_SCALE).
const RUNTIME_LEAST: Duration = Duration::from_nanos(1024);
/// The bounds on the periods of SCHED_DEADLINE (sched_deadline_period_min_us and _max_us, the
/// latter rounded down).
const PERIODS: std::ops::RangeInclusive<Duration> =
    Duration::from_micros(100)..=Duration::from_secs(4);
/// The share of a processor that the kernel leaves to real-time tasks, in percent
/// (sched_rt_runtime_us).
const SHARE_MOST: u32 = 95;

/// Resolves the settings for `weir linux`. Returns `None`, and reports at least one problem, if
/// they are wrong.
pub(crate) fn resolve(
    root: &Root,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<Linux> {
    let clock = processor.clock;
    let is_possible = has_processor(root, processor, problems) & is_kept(root, problems);
    let interfaces = interfaces(root);
    let matches = matches(root, problems);
    let section = stated(root, problems);
    let top_half = section
        .as_ref()
        .and_then(|section| top_half(section, clock, problems));
    let overhead = section
        .as_ref()
        .and_then(|section| overhead(section, clock, problems));
    let is_for_linux = root.linux.is_stated() || interfaces.as_ref().is_none_or(|i| !i.is_empty());
    let tick = section
        .as_ref()
        .and_then(|section| tick(section, clock, problems));
    let urgencies = !is_for_linux || urgencies(root, problems);
    let section = section?;
    Some(Linux {
        mode: section.mode.or(LinuxMode::default())?,
        predict: section.predict.or(Predict::default())?,
        accounting: section.accounting.optional()?,
        interrupt_overhead: overhead?,
        cap_timer: section.cap_timer.or(YesNo(false))?.0,
        tick: tick?,
        receive_buffer: section
            .receive_buffer
            .optional()?
            .map(|Whole(bytes)| u32::try_from(bytes).unwrap_or(u32::MAX)),
        receive_ring: section
            .receive_ring
            .optional()?
            .map(|Whole(packets)| u32::try_from(packets).unwrap_or(u32::MAX)),
        top_half: top_half?,
        interfaces: interfaces?,
        threads: Vec::new(),
        matches: matches?,
    })
    .filter(|_| urgencies && is_possible)
}

/// Whether the file describes a processor that runs Linux. If it does not, reports each setting
/// that is for Linux.
fn has_processor(root: &Root, processor: &Processor<'_>, problems: &mut Problems<'_>) -> bool {
    let Some((board, _)) = processor.board() else {
        return true;
    };
    let for_linux = places(root);
    for &at in &for_linux {
        problems.report(
            format!("no Linux runs on {}, so nothing would look at this", board.name),
            at,
            "for Linux",
            "leave it out, or leave `board` out and describe the machine: `weir linux inspect` drafts its file",
        );
    }
    for_linux.is_empty()
}

/// Whether something enforces the limits of interfaces. Reports limits that nothing would enforce,
/// because Linux has no code for a limit in software.
fn is_kept(root: &Root, problems: &mut Problems<'_>) -> bool {
    let mut is = true;
    for source in root.source.elements() {
        let limit = source.limit.get().filter(|limit| {
            let policy = limit.policy.get();
            policy.is_some_and(|&policy| policy != Policy::Off)
                && limit.place.get() != Some(&Place::Hardware)
        });
        if let Some(limit) = limit.filter(|_| source.interface.is_stated()) {
            is = false;
            problems.add(
                Problem::new(
                    "`weir linux` keeps no limit of a source, so nobody would keep this one",
                    limit.policy.at,
                    "the limit",
                )
                .and_at(source.interface.at, "the interface")
                .help("leave the limit out and give the thread of the interface a cap: [linux] with top_half = { runtime = \"1ms\", period = \"10ms\" }"),
            );
        }
    }
    is
}

/// The places of all settings for Linux: `[linux]`, and the interfaces of sources.
pub(crate) fn places(root: &Root) -> Vec<SourceSpan> {
    let interfaces = root.source.elements().iter().map(|of| &of.interface);
    let interfaces = interfaces.filter(|key| key.is_stated()).map(|key| key.at);
    let section = root.linux.is_stated().then_some(root.linux.at);
    interfaces.chain(section).collect()
}

/// The section `[linux]`, or an empty section if the file does not have it.
fn stated<'a>(root: &'a Root, problems: &mut Problems<'_>) -> Option<LinuxSection<'a>> {
    if root.linux.is_stated() {
        return root.linux.get().map(LinuxSection::There);
    }
    let nothing = Item::Table(Table::new());
    raw::Linux::read(&nothing, root.linux.at, problems)
        .map(|section| LinuxSection::Absent(Box::new(section)))
}

enum LinuxSection<'a> {
    There(&'a raw::Linux),
    Absent(Box<raw::Linux>),
}

impl std::ops::Deref for LinuxSection<'_> {
    type Target = raw::Linux;

    fn deref(&self) -> &raw::Linux {
        match self {
            Self::There(section) => section,
            Self::Absent(section) => section,
        }
    }
}

fn interfaces(root: &Root) -> Option<Vec<Interface>> {
    let mut interfaces = Vec::new();
    for (source, of) in root.source.elements().iter().enumerate() {
        if let Some(raw::InterfaceName(name)) = of.interface.optional()? {
            interfaces.push(Interface { source, name });
        }
    }
    Some(interfaces)
}

fn matches(root: &Root, problems: &mut Problems<'_>) -> Option<Vec<Match>> {
    let mut matches = Vec::new();
    for (receiver, of) in root.receiver.elements().iter().enumerate() {
        if of.matches.is_absent() {
            continue;
        }
        let of = of.matches.get()?;
        let cgroup = of.cgroup.optional()?.map(|cgroup| cgroup.0);
        let command = of.command.optional()?.map(|command| command.0);
        let user = of.user.optional()?.map(|user| user.0);
        if command.is_some() && user.is_none() {
            return problems.refuse("any process of any user can give itself this name", of.command.at, "whose?", "add `user`, the name or number of the user that the program runs as, for example `user = \"root\"`");
        }
        if cgroup.is_some() || user.is_some() {
            matches.push(Match {
                receiver,
                cgroup,
                command,
                user,
            });
        }
    }
    Some(matches)
}

/// Whether all urgencies are in the range of Linux. Reports those that are not.
fn urgencies(root: &Root, problems: &mut Problems<'_>) -> bool {
    let mut are = true;
    for receiver in root.receiver.elements() {
        if let Some(UrgencyNumber(urgency)) = receiver.urgency.get().filter(|u| u.0 > URGENCY_MOST)
        {
            are = false;
            problems.report(format!("Linux has no urgency {urgency}"), receiver.urgency.at, "too large", format!(
                    "in a file for `weir linux` write 0 for SCHED_OTHER, or a priority of SCHED_FIFO from 1 to {URGENCY_MOST}"
                ));
        }
    }
    are
}

/// The cost of an interrupt without its handler; 0 if the file does not state it.
fn overhead(
    section: &raw::Linux,
    clock: CycleClock,
    problems: &mut Problems<'_>,
) -> Option<Duration> {
    let stated = &section.interrupt_overhead;
    let cycles = clock.optional(stated, problems)?.unwrap_or(0);
    wall_time(cycles, clock, stated.at, problems)
}

/// The tick of the kernel's clock; `Some(None)` if the file does not say.
fn tick(
    section: &raw::Linux,
    clock: CycleClock,
    problems: &mut Problems<'_>,
) -> Option<Option<Duration>> {
    let stated = &section.tick;
    let Some(cycles) = clock.optional(stated, problems)? else {
        return Some(None);
    };
    let tick = wall_time(cycles, clock, stated.at, problems)?;
    if tick > LONGEST_TICK {
        return problems.refuse(
            "no kernel has so long a tick",
            stated.at,
            "too long",
            "write 1/CONFIG_HZ, for example \"4ms\" for 250 Hz; CONFIG_HZ is at least 100",
        );
    }
    Some(Some(tick))
}

/// The settings of the top half; `Some(None)` if the file states none.
fn top_half(
    section: &raw::Linux,
    clock: CycleClock,
    problems: &mut Problems<'_>,
) -> Option<Option<TopHalf>> {
    const EITHER: &str = "write `runtime` and `period`, or `urgency`, or `thread = false`";
    if section.top_half.is_absent() {
        return Some(None);
    }
    let of = section.top_half.get()?;
    let (caps, place) = (
        of.runtime.is_stated() || of.period.is_stated(),
        of.urgency.is_stated(),
    );
    if caps && place {
        let (at, label) = if of.runtime.is_stated() {
            (of.runtime.at, "the cap")
        } else {
            (of.period.at, "the cap's period")
        };
        return problems.refuse_with(
            Problem::new(
                "the top half has a cap or an urgency, not both: SCHED_DEADLINE has no priority",
                of.urgency.at,
                "the urgency",
            )
            .and_at(at, label)
            .help(EITHER),
        );
    }
    if of.thread.optional()? == Some(YesNo(false)) {
        if caps || place {
            return problems.refuse(
                "without a thread the top half has neither a cap nor an urgency: it precedes every task",
                of.thread.at,
                "no thread",
                EITHER,
            );
        }
        return Some(Some(TopHalf::Interrupt));
    }
    if let Some(Whole(urgency)) = of.urgency.optional()? {
        return u8::try_from(urgency).ok().map(TopHalf::Urgency).map(Some);
    }
    let runtime = clock.optional(&of.runtime, problems);
    let period = clock.optional(&of.period, problems);
    let mut missing = |at: SourceSpan, message: &str| problems.refuse(message, at, "here", EITHER);
    match (runtime?, period?) {
        (None, None) => missing(of.at, "this says nothing of the top half"),
        (Some(_), None) => missing(of.runtime.at, "a runtime needs the period that it is of"),
        (None, Some(_)) => missing(of.period.at, "a period needs the runtime in it"),
        (Some(runtime), Some(period)) => {
            let cap = (
                wall_time(runtime, clock, of.runtime.at, problems)?,
                wall_time(period, clock, of.period.at, problems)?,
            );
            cap_of(cap, of, problems).map(Some)
        }
    }
}

/// The time of `cycles`, rounded down to whole nanoseconds.
fn wall_time(
    cycles: u64,
    clock: CycleClock,
    at: SourceSpan,
    problems: &mut Problems<'_>,
) -> Option<Duration> {
    let nanoseconds = u128::from(cycles) * 1_000_000_000 / u128::from(clock.hz);
    match u64::try_from(nanoseconds) {
        Ok(nanoseconds) => Some(Duration::from_nanos(nanoseconds)),
        Err(_) => clock.too_long(at, problems),
    }
}

/// Reports a cap that the kernel would refuse.
fn cap_of(
    (runtime, period): (Duration, Duration),
    of: &raw::TopHalf,
    problems: &mut Problems<'_>,
) -> Option<TopHalf> {
    if !PERIODS.contains(&period) {
        return problems.refuse(
            "Linux refuses such a period of SCHED_DEADLINE",
            of.period.at,
            "too short or too long",
            "write a period from \"100us\" to \"4s\"",
        );
    }
    let most = period * SHARE_MOST / 100;
    if (RUNTIME_LEAST..=most).contains(&runtime) {
        return Some(TopHalf::Cap { runtime, period });
    }
    problems.refuse_with(
        Problem::new(
            "Linux refuses such a runtime of SCHED_DEADLINE",
            of.runtime.at,
            if runtime > most {
                "too long"
            } else {
                "too short"
            },
        )
        .and_at(of.period.at, "of this period")
        .help(format!(
            "write at least \"{}ns\" and at most {SHARE_MOST} % of the period, \"{}us\"",
            RUNTIME_LEAST.as_nanos(),
            most.as_micros()
        )),
    )
}
