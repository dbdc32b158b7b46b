// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds which kind of limiter a file asks for, and checks that the keys of a limit go together.
use miette::SourceSpan;
use weir_boards::Range;

use super::costs::{self, CostTable};
use super::limit_keys::Keys;
use super::processor::Processor;
use super::timers::{Bank, TimerKind};
use super::wish::IntervalWish;
use crate::diagnostics::{Problem, Problems};
use crate::exact::Round;
use crate::file::leaf::{Name, Vector, Whole};
use crate::file::sections::{Limit, Source};
use crate::file::words::Trigger;
use crate::system::{Place, Policy, Timing};

/// A limit whose timer's prescaler is not known yet.
#[derive(Debug)]
pub(crate) enum LimitDraft {
    Off,
    Hardware {
        policy: Policy,
        burst: u32,
        /// The least number of cycles of the interval.
        cycles: u64,
        at: SourceSpan,
        is_level: bool,
    },
    Own {
        table: CostTable,
        burst: u32,
        wish: IntervalWish,
    },
    Shared {
        timer: usize,
        burst: u32,
        /// The shortest period in cycles that keeps the rate of the limit; `None` if the limit
        /// states no rate. A limit may state one although the timer's period decides.
        at_least: Option<u64>,
        at: SourceSpan,
    },
}

/// Drafts the limit of `source`.
pub(crate) fn plan(
    source: &Source,
    processor: &Processor<'_>,
    bank: &Bank,
    problems: &mut Problems<'_>,
) -> Option<LimitDraft> {
    if source.limit.is_absent() {
        return Some(LimitDraft::Off);
    }
    let limit = source.limit.get()?;
    let policy = *limit.policy.get()?;
    if policy == Policy::Off {
        let keys = Keys::of(limit);
        keys.refuse(
            &Keys::ALL,
            "policy = \"off\", which lets everything through",
            "choose another policy",
            problems,
        );
        return Some(LimitDraft::Off);
    }
    if limit.place.or(Place::Software)? == Place::Hardware {
        return hardware(source, limit, policy, processor, problems);
    }
    software(source, limit, policy, processor, bank, problems)
}

fn hardware(
    source: &Source,
    limit: &Limit,
    policy: Policy,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<LimitDraft> {
    if !matches!(policy, Policy::Strict | Policy::Bucket | Policy::Bursty) {
        return problems.refuse_with(
            Problem::new(
                format!(
                    "a limit in hardware is strict, bucket or bursty, not {}",
                    policy.name()
                ),
                limit.policy.at,
                "not in hardware",
            )
            .and_at(limit.place.at, "the place")
            .help("write policy = \"strict\", or leave `place` out for a limit in software"),
        );
    }
    is_outside(source, processor, problems)?;
    let keys = Keys::of(limit);
    keys.refuse(
        &Limit::OF_SOFTWARE,
        "a limit in hardware, which counts by itself",
        "leave `place` out",
        problems,
    );
    if policy == Policy::Strict {
        keys.refuse(&["burst"], ONE_AT_A_TIME, "choose another policy", problems);
    }
    let Whole(burst) = limit.burst.or(Whole(1))?;
    let (cycles, at) = interval(limit, burst, processor, problems)?;
    Some(LimitDraft::Hardware {
        policy,
        burst: u32::try_from(burst).ok()?,
        cycles,
        at,
        is_level: limit.trigger.or(Trigger::Edge)? == Trigger::Level,
    })
}

/// Whether the source uses a line of the board, in front of which a limiter in silicon can be
/// placed.
fn is_outside(
    source: &Source,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<()> {
    let Some((board, _)) = processor.board() else {
        return Some(());
    };
    let Vector::Named(Name(vector)) = source.vector.get()? else {
        return None;
    };
    if board.is_line(vector) || board.vector(vector).is_none() {
        return Some(());
    }
    problems.refuse(
        format!(
            "a limiter in silicon stands in front of a line, and {vector} is none of {}'s: it has {}",
            board.name,
            board.line_names().join(", ")
        ),
        source.vector.at,
        "not a line",
        "state the worst rate of a source that bounds itself and leave the limit out",
    )
}

/// The reason why a strict limit has no burst, for messages.
const ONE_AT_A_TIME: &str = "policy = \"strict\", which lets one through at a time";

fn software(
    source: &Source,
    limit: &Limit,
    policy: Policy,
    processor: &Processor<'_>,
    bank: &Bank,
    problems: &mut Problems<'_>,
) -> Option<LimitDraft> {
    if let Some((board, _)) = processor
        .board()
        .filter(|(board, _)| board.channels().next().is_none())
    {
        return problems.refuse(format!("the costs of a limit in software have not been measured on {}", board.name), limit.at, "in software", "add place = \"hardware\", or leave `board` out and state clock, interrupts, timers and costs (docs/generated/system-file.md)");
    }
    let keys = Keys::of(limit);
    if !keys.refuse(
        &Limit::OF_HARDWARE,
        "a limit in software, whose port knows how its lines ask",
        "write place = \"hardware\"",
        problems,
    ) {
        return None;
    }
    let quoted = format!("policy = \"{}\"", policy.name());
    if !policy.counts()
        && !keys.refuse(
            &["burst"],
            &format!("{quoted}, which lets one through at a time"),
            "choose another policy",
            problems,
        )
    {
        return None;
    }
    if let (Policy::Poll, Some((board, _))) = (policy, processor.board()) {
        return problems.refuse(
            format!("no port has code for policy = \"poll\", so it cannot be kept on {}", board.name),
            limit.policy.at,
            "only analysed",
            "write policy = \"strict\" and the same rate: it lets no more through, and takes no time while nothing asks. To analyse polling, leave `board` out and state the costs in [cpu.costs]",
        );
    }
    if policy == Policy::Poll
        && !keys.refuse(
            &["timing"],
            &format!("{quoted}, which masks nothing"),
            "choose another policy",
            problems,
        )
    {
        return None;
    }
    if limit.timing.get() == Some(&Timing::OneShot) && policy != Policy::Bursty {
        return problems.refuse_with(
            Problem::new(
                format!(
                    "timing = \"one_shot\" is of bursty limits, not of {}",
                    policy.name()
                ),
                limit.timing.at,
                "not with this policy",
            )
            .and_at(limit.policy.at, "the policy")
            .help("write \"lazy\" or \"eager\", or leave it out"),
        );
    }
    if limit.timer.is_absent() {
        let bits = processor.rules().map(|rules| rules.own_bits);
        let mut known: Vec<&str> = if policy == Policy::Bursty {
            bank.shared
                .iter()
                .map(|timer| timer.name.as_str())
                .collect()
        } else {
            Vec::new()
        };
        known.extend(bank.names(|have| bits.is_none_or(|need| need == have)));
        known.dedup();
        return problems.refuse(
            "this limit has no timer",
            limit.at,
            "needs `timer`",
            if known.is_empty() {
                "describe one: [[timer]] with name, width and order, and add timer = \"NAME\" here"
                    .to_owned()
            } else {
                format!("add timer = \"…\"; there are {}", known.join(", "))
            },
        );
    }
    let Name(timer) = limit.timer.get()?;
    let burst = limit.burst.or(Whole(1))?.0;
    match bank.find(timer, limit.timer.at, problems)? {
        TimerKind::Shared(timer) => {
            shared(source, limit, policy, timer, burst, processor, problems)
        }
        TimerKind::Channel(channel) => own(
            source, limit, policy, channel, burst, processor, bank, problems,
        ),
    }
}

fn shared(
    source: &Source,
    limit: &Limit,
    policy: Policy,
    timer: usize,
    burst: u64,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<LimitDraft> {
    const WHY: &str =
        "a shared timer clears counts: it serves policy = \"bursty\" with timing = \"eager\"";
    if policy != Policy::Bursty {
        return problems.refuse_with(
            Problem::new(
                format!("a limit on a shared timer is bursty, not {}", policy.name()),
                limit.policy.at,
                "not on a shared timer",
            )
            .and_at(limit.timer.at, "the timer")
            .help(format!("{WHY}; other policies need a channel of their own")),
        );
    }
    if limit.timing.or(Timing::Eager)? != Timing::Eager {
        return problems.refuse_with(
            Problem::new(
                "a limit on a shared timer is eager",
                limit.timing.at,
                "not on a shared timer",
            )
            .and_at(limit.timer.at, "the timer")
            .help(format!("{WHY}; leave `timing` out")),
        );
    }
    let keys = Keys::of(limit);
    if !keys.refuse(
        &["interval", "prescaler"],
        "a shared timer, which has its own",
        "name a channel of its own as `timer`",
        problems,
    ) {
        return None;
    }
    is_line(source, true, processor, problems)?;
    let at_least = match limit.rate.optional()? {
        None => None,
        Some(rate) => {
            let cycles = rate.interval(burst, processor.clock.hz, Round::Up);
            Some(cycles.or_else(|| processor.clock.too_long(limit.rate.at, problems))?)
        }
    };
    let at = [
        (limit.rate.is_stated(), limit.rate.at),
        (limit.burst.is_stated(), limit.burst.at),
    ]
    .into_iter()
    .find(|key| key.0)
    .map_or(limit.timer.at, |key| key.1);
    Some(LimitDraft::Shared {
        timer,
        burst: u32::try_from(burst).ok()?,
        at_least,
        at,
    })
}

#[expect(
    clippy::too_many_arguments,
    reason = "all of them are what a limit depends on"
)]
fn own(
    source: &Source,
    limit: &Limit,
    policy: Policy,
    channel: usize,
    burst: u64,
    processor: &Processor<'_>,
    bank: &Bank,
    problems: &mut Problems<'_>,
) -> Option<LimitDraft> {
    let rules = processor.rules();
    let default = rules
        .filter(|_| policy == Policy::Strict)
        .map_or(Timing::Lazy, |rules| rules.strict_timing);
    let timing = limit.timing.optional()?.unwrap_or(default);
    is_line(source, false, processor, problems)?;
    let table = if policy == Policy::Poll {
        CostTable::Poll
    } else {
        CostTable::Own(policy, timing)
    };
    let (cycles, at) = interval(limit, burst, processor, problems)?;
    let counter = bank.counter_of(channel)?;
    let offer =
        |burst| rules.map(|rules| (rules, (rules.offers)(policy, timing, burst, counter.bits)));
    let bursts = rules.map_or(1..=u64::MAX, |rules| (rules.bursts)(policy));
    // A policy or timing that the flavour lacks is reported before the bounds of its timers.
    let range = match offer(burst.clamp(*bursts.start(), *bursts.end())) {
        None => Range::of_core(policy, burst, counter.bits),
        Some((rules, Some(range))) => {
            let flavour = processor.board().map_or("", |(_, flavour)| flavour.name());
            let bits = rules.own_bits;
            if bits != counter.bits {
                return problems.refuse(
                    format!(
                        "the flavour `{flavour}` limits with {bits}-bit timers, and {} has {} bits",
                        counter.name, counter.bits
                    ),
                    limit.timer.at,
                    "not this timer",
                    format!("take one of {}", bank.names(|have| have == bits).join(", ")),
                );
            }
            if !bursts.contains(&burst) {
                let (least, most) = (bursts.start(), bursts.end());
                let help = if burst < *least {
                    format!(
                        "write burst = {least}, or policy = \"strict\", which lets one through at a time"
                    )
                } else {
                    format!("write a burst of at most {most}, or flavour = \"c\"")
                };
                return problems.refuse(
                    format!(
                        "in the flavour `{flavour}`, {} has bursts of {least} to {most}",
                        policy.name()
                    ),
                    if limit.burst.is_stated() {
                        limit.burst.at
                    } else {
                        limit.policy.at
                    },
                    format!("a burst of {burst}"),
                    help,
                );
            }
            range
        }
        Some((_, None)) => {
            // This call reports what the flavour has instead.
            costs::events(processor, table, None, limit.policy.at, problems);
            return None;
        }
    };
    let name = source.name.get().map_or("", |name| name.0.as_str());
    let prescaler = limit.prescaler.optional()?;
    Some(LimitDraft::Own {
        table,
        burst: u32::try_from(burst).ok()?,
        wish: IntervalWish {
            who: format!("the limit of `{name}`"),
            at,
            channel,
            channel_at: limit.timer.at,
            cycles,
            events: if policy == Policy::Bursty { burst } else { 1 },
            range,
            prescaler: prescaler.map(|prescaler| (prescaler.0, limit.prescaler.at)),
            in_group: rules.is_some_and(|rules| rules.group > 1),
        },
    })
}

/// The least number of cycles between two requests (of a period, if the limit is bursty), and the
/// place where they are stated. `burst` is that of a bursty limit or bucket.
fn interval(
    limit: &Limit,
    burst: u64,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<(u64, SourceSpan)> {
    let clock = processor.clock;
    let events = if limit.policy.get() == Some(&Policy::Bursty) {
        burst
    } else {
        1
    };
    if limit.rate.is_stated() && limit.interval.is_stated() {
        return problems.refuse_with(
            Problem::new(
                "a limit has a rate or an interval, not both",
                limit.interval.at,
                "the interval",
            )
            .and_at(limit.rate.at, "the rate")
            .help("leave one of them out"),
        );
    }
    if let Some(&time) = limit.interval.get() {
        let cycles = clock.at_least(time, limit.interval.at, problems)?;
        return Some((cycles, limit.interval.at));
    }
    if limit.rate.is_absent() && limit.interval.is_absent() {
        return problems.refuse("this limit does not say how much it lets through", limit.at, "needs `rate`", "add rate = \"1kHz\", the most that it lets through in the long run, or interval = \"1ms\"");
    }
    let rate = limit.rate.get()?;
    let cycles = rate.interval(events, clock.hz, Round::Up);
    let cycles = cycles.or_else(|| clock.too_long(limit.rate.at, problems))?;
    Some((cycles, limit.rate.at))
}

/// Whether the source is one of the lines that the board's port can limit.
pub(crate) fn is_line(
    source: &Source,
    shared: bool,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<()> {
    let Some((board, flavour)) = processor.board() else {
        return Some(());
    };
    let Vector::Named(Name(vector)) = source.vector.get()? else {
        return None;
    };
    let mut lines = board.line_names();
    let most = processor.rules().and_then(|rules| rules.shared_lines);
    if let Some(most) = most.filter(|_| shared) {
        lines.truncate(most);
    }
    // A vector that does not exist has already been reported.
    if lines.contains(&vector.as_str()) || board.vector(vector).is_none() {
        return Some(());
    }
    problems.refuse(
        format!(
            "the flavour `{}` of {}'s port limits {}, and not {vector}",
            flavour.name(),
            board.name,
            lines.join(", ")
        ),
        source.vector.at,
        "not one of these lines",
        "state the worst rate of a source that bounds itself and leave the limit out",
    )
}

/// Reports a second source with a timer of its own, if the flavour supports only one.
pub(crate) fn refuse_second(
    sources: &[(&Source, &LimitDraft)],
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) {
    let Some((_, flavour)) = processor
        .board()
        .filter(|_| processor.rules().is_some_and(|rules| rules.limits_one))
    else {
        return;
    };
    let own = |plan: &LimitDraft| matches!(plan, LimitDraft::Own { .. });
    let Some((first, _)) = sources.iter().find(|(_, plan)| own(plan)) else {
        return;
    };
    for (source, plan) in sources {
        let other = !std::ptr::eq(*source, *first);
        if other && (own(plan) || matches!(plan, LimitDraft::Shared { .. })) {
            problems.add(
                Problem::new(
                    format!(
                        "the flavour `{}` limits one source, or up to four that share a timer",
                        flavour.name()
                    ),
                    source.limit.at,
                    "one more",
                )
                .and_at(first.limit.at, "this one has a timer of its own")
                .help(
                    "let them share a [[timer]], limit one of them only, or write flavour = \"c\"",
                ),
            );
        }
    }
}

/// Reports a limit on a second shared timer, because the ports of boards only support one.
pub(crate) fn refuse_second_shared(
    sources: &[(&Source, &LimitDraft)],
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) {
    let Some((board, _)) = processor.board() else {
        return;
    };
    let shared = sources.iter().filter_map(|(source, plan)| match plan {
        LimitDraft::Shared { timer, .. } => Some((source.limit.get()?.timer.at, *timer)),
        _ => None,
    });
    let mut seen: Vec<(SourceSpan, usize)> = Vec::new();
    for (at, timer) in shared {
        if seen.iter().any(|of| of.1 == timer) {
            continue;
        }
        if let Some(&(first, _)) = seen.first() {
            problems.add(
                Problem::new(
                    format!(
                        "limits share two timers, and the port of {} has code for one",
                        board.name
                    ),
                    at,
                    "the other one",
                )
                .and_at(first, "a shared timer")
                .help("let all of them share one, or give some a channel of their own"),
            );
        }
        seen.push((at, timer));
    }
}
