// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses prescalers: one per counter, such that every interval on the counter fits.
use std::collections::{BTreeMap, HashMap};

use miette::SourceSpan;
use weir_boards::Misfit;

use super::timers::{Bank, BankCounter};
use super::units::{CycleClock, Digits};
use super::wish::IntervalWish;
use crate::diagnostics::{Problem, Problems};
use crate::system::Interval;

/// Chooses the ticks of every interval; `None` for an interval that does not fit, which is
/// reported.
pub(crate) fn allocate(
    bank: &Bank,
    uses: &[&IntervalWish],
    clock: CycleClock,
    problems: &mut Problems<'_>,
) -> Vec<Option<Interval>> {
    one_per_channel(bank, uses, problems);
    let mut of_counter: BTreeMap<usize, Vec<&IntervalWish>> = BTreeMap::new();
    for &one in uses {
        if let Some(channel) = bank.channels.get(one.channel) {
            of_counter.entry(channel.counter).or_default().push(one);
        }
    }
    let divisors: BTreeMap<usize, u64> = of_counter
        .into_iter()
        .filter_map(|(index, uses)| {
            let counter = bank.counters.get(index)?;
            Some((index, divisor(counter, &uses, clock, problems)?))
        })
        .collect();
    uses.iter()
        .map(|one| {
            let counter = bank.counter_of(one.channel)?;
            let divisor = *divisors.get(&bank.channels.get(one.channel)?.counter)?;
            Some(Interval {
                ticks: ticks(counter, one, divisor).ok()?,
                tick: divisor.saturating_mul(counter.clock_cycles),
            })
        })
        .collect()
}

/// The least number of ticks of an interval with this divisor.
fn ticks(counter: &BankCounter, one: &IntervalWish, divisor: u64) -> Result<u64, Misfit> {
    let clocks = one.cycles.div_ceil(counter.clock_cycles.max(1));
    one.range.ticks(clocks, divisor)
}

fn one_per_channel(bank: &Bank, uses: &[&IntervalWish], problems: &mut Problems<'_>) {
    let mut first: HashMap<usize, &IntervalWish> = HashMap::new();
    for &one in uses.iter().filter(|one| !one.in_group) {
        let Some(before) = first.insert(one.channel, one) else {
            continue;
        };
        let name = bank
            .channels
            .get(one.channel)
            .map_or("", |channel| channel.name.as_str());
        problems.add(
            Problem::new(
                format!("{} and {} both run on {name}", before.who, one.who),
                one.channel_at,
                "again here",
            )
            .and_at(before.channel_at, "first here")
            .help("give each its own channel, or let bursty limits share a [[timer]] with a rate"),
        );
    }
}

/// The prescaler of a counter. It is the one that the file states, or otherwise the smallest with
/// which all intervals fit.
fn divisor(
    counter: &BankCounter,
    uses: &[&IntervalWish],
    clock: CycleClock,
    problems: &mut Problems<'_>,
) -> Option<u64> {
    if let Some((wanted, at)) = stated(counter, uses, problems)? {
        if !counter.divisors.contains(&wanted) {
            let least = uses.iter().map(|one| one.range.least_divisor);
            let least = least.fold(1, u64::max);
            let usable = counter.divisors.iter().copied();
            let usable: Vec<u64> = usable.filter(|&divisor| divisor >= least).collect();
            return problems.refuse(
                format!("{} has no prescaler {wanted}", counter.name),
                at,
                "unknown prescaler",
                format!("write one of {}", list(&usable)),
            );
        }
        let mut all = true;
        for one in uses {
            if let Err(misfit) = ticks(counter, one, wanted) {
                problems.add(
                    unfit(counter, one, Some(wanted), misfit, clock)
                        .and_at(at, "with this prescaler"),
                );
                all = false;
            }
        }
        return all.then_some(wanted);
    }
    let fit = |one: &IntervalWish| -> Vec<u64> {
        let fits = |&divisor: &u64| ticks(counter, one, divisor).is_ok();
        counter.divisors.iter().copied().filter(fits).collect()
    };
    let chosen = counter
        .divisors
        .iter()
        .copied()
        .find(|divisor| uses.iter().all(|one| fit(one).contains(divisor)));
    if chosen.is_some() {
        return chosen;
    }
    let mut alone = true;
    for one in uses.iter().filter(|one| fit(one).is_empty()) {
        problems.add(unfit(counter, one, None, misfit(counter, one), clock));
        alone = false;
    }
    if let (true, [first, rest @ ..]) = (alone, uses) {
        let mut problem = Problem::new(
            format!(
                "no prescaler of {} fits all that use it, and its channels have it in common",
                counter.name
            ),
            first.at,
            format!("{} needs {}", first.who, list(&fit(first))),
        )
        .help("give one of them a channel of another timer");
        for one in rest {
            problem = problem.and_at(one.at, format!("{} needs {}", one.who, list(&fit(one))));
        }
        problems.add(problem);
    }
    None
}

/// The prescaler that the limits on a counter state; `Some(None)` if they state none. Returns
/// `None` if they differ in it, which is reported.
fn stated(
    counter: &BankCounter,
    uses: &[&IntervalWish],
    problems: &mut Problems<'_>,
) -> Option<Option<(u64, SourceSpan)>> {
    let mut all = uses.iter().filter_map(|one| one.prescaler);
    let Some(first) = all.next() else {
        return Some(None);
    };
    for (other, at) in all {
        if other != first.0 {
            return problems.refuse_with(
                Problem::new(
                    format!("{} has one prescaler for all its channels", counter.name),
                    at,
                    format!("{other} here"),
                )
                .and_at(first.1, format!("and {} here", first.0))
                .help("state the same, or take a channel of another timer"),
            );
        }
    }
    Some(Some(first))
}

/// The reason why an interval does not fit, even with the best prescaler.
fn misfit(counter: &BankCounter, one: &IntervalWish) -> Misfit {
    let largest = counter.divisors.last().copied().unwrap_or(1);
    match ticks(counter, one, largest) {
        Err(Misfit::TooLong) => Misfit::TooLong,
        _ => Misfit::TooShort,
    }
}

fn unfit(
    counter: &BankCounter,
    one: &IntervalWish,
    prescaler: Option<u64>,
    misfit: Misfit,
    clock: CycleClock,
) -> Problem {
    let range = &one.range;
    let usable = |divisor: &&u64| **divisor >= range.least_divisor;
    let smallest = counter.divisors.iter().find(usable).copied().unwrap_or(1);
    let largest = counter.divisors.last().copied().unwrap_or(1);
    let bounds = |ticks: u64, divisor: u64, time: Digits, rate: Digits| {
        let cycles = ticks
            .saturating_mul(divisor)
            .saturating_mul(counter.clock_cycles);
        format!(
            "{} (a rate of {})",
            clock.time_text(cycles, time),
            clock.rate_text(one.events, cycles, rate)
        )
    };
    let fits: Vec<u64> = counter
        .divisors
        .iter()
        .copied()
        .filter(|&divisor| ticks(counter, one, divisor).is_ok())
        .collect();
    let with = prescaler.map_or_else(String::new, |prescaler| {
        format!(" with prescaler {prescaler}")
    });
    let interval = clock.time_text(one.cycles, Digits::Nearest);
    let (message, label, bound) = match misfit {
        Misfit::TooLong => (
            format!("{} cannot hold {interval}{with}", counter.name),
            format!("{} has at most {} ticks", one.who, range.most),
            format!(
                "the longest interval of {} is {}, with prescaler {largest}",
                counter.name,
                bounds(range.most, largest, Digits::Down, Digits::Up)
            ),
        ),
        Misfit::TooShort => (
            format!("{} is too coarse for {interval}{with}", counter.name),
            format!("{} has at least {} ticks", one.who, range.least),
            format!(
                "the shortest interval of {} is {}, with prescaler {smallest}",
                counter.name,
                bounds(range.least, smallest, Digits::Up, Digits::Down)
            ),
        ),
        Misfit::Divisor => (
            format!("{} counts too fast for {interval}{with}", counter.name),
            "the port needs a larger prescaler".to_owned(),
            if range.least_divisor > 1 {
                format!(
                    "{} needs a prescaler of {} or more",
                    one.who, range.least_divisor
                )
            } else {
                format!(
                    "{} needs a prescaler of {} or more where it has at most {} ticks",
                    one.who, range.short_divisor, range.short
                )
            },
        ),
    };
    let help = if fits.is_empty() {
        format!("{bound}: take another interval or another timer")
    } else {
        format!("{bound}; this interval fits with prescaler {}", list(&fits))
    };
    Problem::new(message, one.at, label).help(help)
}

fn list(numbers: &[u64]) -> String {
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    texts.join(", ")
}
