// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a limit, after rounding, lies between the expected and the tolerated rate of its
//! source.
use miette::SourceSpan;

use super::units::{CycleClock, Digits};
use crate::diagnostics::{Problem, Problems};
use crate::exact::{ExactRate, Round};
use crate::file::leaf::Worst;
use crate::file::sections::{self as raw, Source};
use crate::file::value::KeyValue;
use crate::system::{Interval, Rates};

/// Resolves the rates of a source, which must not contradict each other.
pub(crate) fn rates(source: &Source, problems: &mut Problems<'_>) -> Option<Rates> {
    if source.rate.is_absent() {
        return Some(Rates {
            expected: None,
            tolerated: None,
            worst: None,
            worst_name: None,
        });
    }
    let rate = source.rate.get()?;
    let hertz = |key: &KeyValue<ExactRate>| key.get().map(|rate| rate.rate.hertz());
    let expected = hertz(&rate.expected);
    if let Some((tolerated, expected)) = hertz(&rate.tolerated).zip(expected) {
        if tolerated < expected {
            problems.add(
                Problem::new(
                    "the tolerated rate is below the expected one",
                    rate.tolerated.at,
                    "tolerated",
                )
                .and_at(rate.expected.at, "expected")
                .help("`tolerated` is the most that the system can bear: write at least the expected rate"),
            );
        }
    }
    let (worst, worst_name) = match rate.worst.optional()? {
        None => (None, None),
        Some(Worst::Rate(worst)) => (Some(worst.rate), None),
        Some(Worst::Named(named)) => (named.rate(), Some(named.id.as_str())),
    };
    if let Some((worst, expected)) = worst.zip(expected) {
        if worst.hertz() < expected {
            problems.add(
                Problem::new(
                    format!("the worst rate, {worst}, is below the expected one"),
                    rate.worst.at,
                    "worst",
                )
                .and_at(rate.expected.at, "expected")
                .help("`worst` is what a broken source can do: at least what a healthy one does"),
            );
        }
    }
    Some(Rates {
        expected: rate.expected.optional()?.map(|rate| rate.rate),
        tolerated: rate.tolerated.optional()?.map(|rate| rate.rate),
        worst,
        worst_name,
    })
}

/// A limit after rounding.
#[derive(Debug, Clone)]
pub(crate) struct Effective {
    /// The events per interval.
    pub events: u64,
    /// The cycles of the interval.
    pub cycles: u64,
    /// The adjacent intervals that are possible.
    pub near: Near,
    /// The place where the file asks for the limit.
    pub at: SourceSpan,
}

/// The next shorter and the next longer interval, in cycles; `None` if there is none.
#[derive(Debug, Clone)]
pub(crate) struct Near {
    pub shorter: Option<u64>,
    pub longer: Option<u64>,
    /// The text that says why no closer interval is possible, for example `8 cycles per tick`.
    pub with: String,
}

impl Near {
    /// The neighbours of an interval that a timer measures.
    pub fn of(interval: Interval) -> Self {
        let Interval { ticks, tick } = interval;
        let cycles = |ticks| Interval { ticks, tick }.cycles();
        Self {
            shorter: ticks.checked_sub(1).filter(|&ticks| ticks > 0).map(cycles),
            longer: ticks.checked_add(1).map(cycles),
            with: format!("{tick} cycle{} per tick", if tick == 1 { "" } else { "s" }),
        }
    }
}

/// Reports a limit outside of its source's band.
pub(crate) fn check(
    rates: &KeyValue<raw::Rates>,
    limit: &Effective,
    clock: CycleClock,
    problems: &mut Problems<'_>,
) {
    let Some(rates) = rates.get() else {
        return;
    };
    let &Effective {
        events,
        cycles,
        ref near,
        at,
    } = limit;
    let outcome = clock.rate_text(events, cycles, Digits::Nearest);
    let to_ask = |cycles: u64| clock.rate_text(events, cycles, Digits::Up);
    let nearest = || {
        let mut all: Vec<String> = [near.shorter, Some(cycles), near.longer]
            .into_iter()
            .flatten()
            .map(to_ask)
            .collect();
        // Intervals that the limiter rounds to the same interval are one limit.
        all.dedup();
        format!(
            "with {} the limits near it are {}",
            near.with,
            all.join(", then ")
        )
    };
    // The interval is compared with the cycles that the rate's events take, so that no precision is
    // lost by a division.
    if let Some(expected) = rates.expected.get() {
        let most = expected.interval(events, clock.hz, Round::Down);
        if most.is_some_and(|most| cycles > most) {
            // The rate that the file asks for may be sufficient, and only its rounding too low.
            let above = near
                .shorter
                .filter(|&above| most.is_some_and(|most| above <= most));
            let enough = above.map_or_else(|| expected.rate.to_string(), to_ask);
            problems.add(
                Problem::new(
                    format!(
                        "the limit lets {outcome} through, less than the {} expected",
                        expected.rate
                    ),
                    at,
                    "too low: a healthy source would be cut",
                )
                .and_at(rates.expected.at, "expected")
                .help(format!(
                    "ask for {enough} or more; {}; a limit is rounded so that it is never above what was asked for",
                    nearest()
                )),
            );
        }
    }
    if let Some(tolerated) = rates.tolerated.get() {
        let least = tolerated.interval(events, clock.hz, Round::Up);
        if least.is_none_or(|least| cycles < least) {
            problems.add(
                Problem::new(
                    format!(
                        "the limit lets {outcome} through, more than the {} tolerated",
                        tolerated.rate
                    ),
                    at,
                    "too high",
                )
                .and_at(rates.tolerated.at, "tolerated")
                .help(format!("ask for {} or less; {}", tolerated.rate, nearest())),
            );
        }
    }
}
