// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the system in a certificate is possible. The equations rely on these conditions.

use std::collections::HashMap;

use crate::curve::TooLarge;
use crate::format::{BadInput, Expiry, Place, Policy, Source, System, Tasks, Timing};

fn bad(place: String, what: impl Into<String>) -> BadInput {
    BadInput::System {
        place,
        what: what.into(),
    }
}

/// # Errors
/// Fails for an index that is out of range, a period of zero, or a limit that contradicts itself.
pub(crate) fn validate(system: &System) -> Result<(), BadInput> {
    positive("system.cpu", "time_slice", system.cpu.time_slice)?;
    if system.cpu.tasks == Tasks::Cooperative && system.cpu.time_slice.is_some() {
        return Err(bad(
            "system.cpu.time_slice".to_owned(),
            "cooperative tasks run to their end and take no turns: null",
        ));
    }
    // Timers are checked before limits, which refer to them.
    for (index, timer) in system.timers.iter().enumerate() {
        positive(
            &format!("system.timers[{index}]"),
            "period",
            Some(timer.period),
        )?;
    }
    for (index, source) in system.sources.iter().enumerate() {
        let place = format!("system.sources[{index}]");
        positive(&place, "max_work", source.max_work)?;
        positive(&place, "packet_units", source.packet_units)?;
        positive(&place, "queue", source.queue)?;
        positive(&place, "interarrival", source.interarrival)?;
        if let Some(of) = source.moderation {
            positive(&place, "moderation.absolute", Some(of.absolute))?;
            positive(&place, "moderation.packet", of.packet)?;
            positive(&place, "moderation.count", of.count)?;
            positive(&place, "moderation.tick", of.tick)?;
        }
        validate_limit(&format!("{place}.limit"), source, system)?;
    }
    for (index, receiver) in system.receivers.iter().enumerate() {
        positive(
            &format!("system.receivers[{index}]"),
            "period",
            receiver.period,
        )?;
    }
    for (index, flow) in system.flows.iter().enumerate() {
        let place = format!("system.flows[{index}]");
        positive(&place, "interarrival", flow.interarrival)?;
        within(&place, "source", flow.source, system.sources.len())?;
        within(&place, "receiver", flow.receiver, system.receivers.len())?;
    }
    validate_budgets(system)
}

/// Checks that each receiver has a single budget, and that all budgets are replenished at the same
/// ticks.
fn validate_budgets(system: &System) -> Result<(), BadInput> {
    let mut tick = None;
    let mut frames = HashMap::new();
    for (index, flow) in system.flows.iter().enumerate() {
        let place = format!("system.flows[{index}].budget");
        let Some(budget) = flow.budget else { continue };
        positive(&place, "frames", Some(budget.frames))?;
        positive(&place, "tick", Some(budget.tick))?;
        let tick = *tick.get_or_insert(budget.tick);
        if tick != budget.tick {
            return Err(bad(
                format!("{place}.tick"),
                format!("{} is not that of the flows before: {tick}", budget.tick),
            ));
        }
        let frames = *frames.entry(flow.receiver).or_insert(budget.frames);
        if frames != budget.frames {
            return Err(bad(
                format!("{place}.frames"),
                format!(
                    "{} is not that of the receiver's flows before: {frames}",
                    budget.frames
                ),
            ));
        }
    }
    Ok(())
}

fn positive(place: &str, key: &str, number: Option<u64>) -> Result<(), BadInput> {
    if number == Some(0) {
        return Err(bad(format!("{place}.{key}"), "0 is too little: at least 1"));
    }
    Ok(())
}

fn within(place: &str, key: &str, index: usize, count: usize) -> Result<(), BadInput> {
    if index < count {
        return Ok(());
    }
    Err(bad(
        format!("{place}.{key}"),
        format!("there is no number {index}: there are {count}, counted from 0"),
    ))
}

fn validate_limit(place: &str, source: &Source, system: &System) -> Result<(), BadInput> {
    let limit = &source.limit;
    if limit.policy == Policy::Off {
        return match limit.expiry {
            None if limit.delay != 0 || limit.place == Place::Hardware => Err(bad(
                format!("{place}.delay"),
                "a source without limit is not delayed: 0, and `software`",
            )),
            None => Ok(()),
            Some(_) => Err(bad(
                format!("{place}.expiry"),
                "a source without limit has no timer: null",
            )),
        };
    }
    positive(place, "interval", Some(limit.interval))?;
    positive(place, "burst", Some(limit.burst))?;
    if limit.timing == Timing::OneShot && limit.policy != Policy::Bursty {
        return Err(bad(
            format!("{place}.timing"),
            "only a bursty limit is `one_shot`: `eager` or `lazy`",
        ));
    }
    match (limit.place, &limit.expiry) {
        (Place::Hardware, Some(_)) => Err(bad(
            format!("{place}.expiry"),
            "a limit in hardware has no timer interrupt: null",
        )),
        (Place::Hardware, None) => match (limit.policy, limit.timing) {
            (Policy::Strict | Policy::Bucket, Timing::Eager)
            | (Policy::Bursty, Timing::OneShot) => Ok(()),
            _ => Err(bad(
                format!("{place}.policy"),
                "a limit in hardware is `strict` or `bucket` and `eager`, or `bursty` and `one_shot`",
            )),
        },
        (Place::Software, _) if limit.delay != 0 => Err(bad(
            format!("{place}.delay"),
            "only a limit in hardware delivers with a delay: 0",
        )),
        (Place::Software, Some(Expiry::Own(_))) => Ok(()),
        (Place::Software, None) => Err(bad(
            format!("{place}.expiry"),
            "a limit in software has a timer: {\"own\": level} or {\"shared\": number of the timer}",
        )),
        (Place::Software, &Some(Expiry::Shared(timer))) => {
            within(place, "expiry.shared", timer, system.timers.len())?;
            if limit.policy != Policy::Bursty || limit.timing != Timing::Eager {
                return Err(bad(
                    format!("{place}.policy"),
                    "a limit on a shared timer is `bursty` and `eager`",
                ));
            }
            let period = system.timers.get(timer).map(|timer| timer.period);
            if period != Some(limit.interval) {
                return Err(bad(
                    format!("{place}.interval"),
                    format!(
                        "{} is not the period of system.timers[{timer}]",
                        limit.interval
                    ),
                ));
            }
            Ok(())
        }
    }
}

impl From<TooLarge> for BadInput {
    fn from(_: TooLarge) -> Self {
        bad(
            "system".to_owned(),
            "a jitter, a moderation delay or the costs and ticks by which a limit is late are more than 2^62 cycles",
        )
    }
}
