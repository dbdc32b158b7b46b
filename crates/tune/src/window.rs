// SPDX-License-Identifier: MIT OR Apache-2.0
//! The periods of a shared timer among which the best one is.
//!
//! Whether deadlines hold is not monotone in the period, since bursts are whole numbers. But two
//! systems that ask for less are monotone: one of the bursts alone, which only grow with the
//! period, and one of the rates and the timer's own interrupts, which only grow as it gets shorter.
//! A deadline that breaks in one of them breaks in the system itself; so two bisections leave a
//! window, which is searched from the longest period to the shortest.

use std::cmp::Reverse;

use weir_model::{EventCosts, Interval, Place, Policy, Source, System, Timer, Timing};

use crate::band::{Band, Percent};
use crate::layout::{BandRule, Layout, periods, plan, suits_owners};
use crate::measure::least_timer_rate;
use crate::plan::{Arrangement, LimitPlan};
use crate::platform::MOST_BURST;
use crate::search::{NEVER, is_in_time};
use crate::task::{TunedSource, TuningTask};

/// The number of periods that are tried before the search takes larger steps.
const PATIENCE: usize = 48;

/// Tries plans from the longest period to the shortest and gives the first result of `judge`. Plans
/// with a higher timer rate than `most_rate` are not tried.
pub fn first<T>(
    task: &TuningTask,
    layout: &Layout,
    scale: Percent,
    bound: BandRule,
    most_rate: Option<f64>,
    judge: impl Fn(&LimitPlan) -> Option<T>,
) -> Option<T> {
    if !suits_owners(task, layout, scale, bound) {
        return None;
    }
    let mut periods = periods(task, layout, scale, bound);
    let at = |period: u64| plan(task, layout, scale, period, bound);
    if let Some(most) = most_rate {
        // Rates that are equal but for rounding are compared by the rest of the objective.
        let is_slow = |&period: &u64| {
            at(period).is_none_or(|plan| {
                let system = plan.apply(task.system, task.platform);
                least_timer_rate(&system) <= most * (1.0 + 1e-9)
            })
        };
        let slow = periods.partition_point(is_slow);
        periods.truncate(slow);
    }
    if layout.contains(&Arrangement::Shared) {
        let works = |system: System| is_in_time(task, &system);
        let is_long = |&period: &u64| !works(bursts_alone(task, layout, scale, period));
        let from = periods.partition_point(is_long);
        periods.drain(..from);
        let is_not_short = |&period: &u64| works(rates_alone(task, layout, scale, period));
        let to = periods.partition_point(is_not_short);
        periods.truncate(to);
    }
    let judge = |&period: &u64| judge(&at(period)?);
    let (mut next, mut seen) = (0, 0);
    let mut skipped = Vec::new();
    let mut unseen = 0..0;
    while let Some(period) = periods.get(next) {
        if let Some(found) = judge(period) {
            // A period that was skipped may be better.
            return periods.get(unseen)?.iter().find_map(judge).or(Some(found));
        }
        seen += 1;
        let step = 1 + seen / PATIENCE;
        unseen = next + 1..(next + step).min(periods.len());
        skipped.extend(unseen.clone());
        next += step;
    }
    // Only what was tried is denied.
    skipped
        .into_iter()
        .find_map(|index| periods.get(index).and_then(judge))
}

/// A system that asks for less than one with a shared timer of this period: each source that shares
/// it has its burst once, and the rest evenly. The timer costs nothing.
pub(crate) fn bursts_alone(
    task: &TuningTask,
    layout: &Layout,
    scale: Percent,
    period: u64,
) -> System {
    let clock = task.system.cpu.clock_hz;
    loosened(task, layout, scale, |tuned, source| {
        let spacing = spacing(tuned, scale, clock);
        let arrival = line(source, clock);
        let entry = source.limit.costs.request_served;
        let skew = entry.saturating_add(task.system.cpu.longest_instruction + 1);
        let burst = Band::burst(tuned.band.asked(scale), period, clock, MOST_BURST)
            .map_or(u64::from(MOST_BURST), u64::from);
        // A bursty limiter lets through 2 N and N per period: never less than N and one per
        // spacing. The bucket's own jitter takes some of N.
        let tokens = burst.saturating_sub(skew.div_ceil(spacing));
        let may_be_held = arrival.is_none_or(|arrival| arrival.saturating_mul(burst) < period);
        match u32::try_from(tokens) {
            Ok(tokens) if tokens > 1 && may_be_held => {
                source.limit.policy = Policy::Bucket;
                source.limit.timing = Timing::Eager;
                source.limit.place = Place::Software;
                source.limit.burst = tokens;
                source.limit.interval = Interval::of_cycles(spacing);
            }
            _ => evenly(source, spacing.max(arrival.unwrap_or(0))),
        }
    })
}

/// A system that asks for less than one with a shared timer of this period: each source that shares
/// it has one request per period or, if that is more, its rate evenly; and the timer runs.
pub(crate) fn rates_alone(
    task: &TuningTask,
    layout: &Layout,
    scale: Percent,
    period: u64,
) -> System {
    let clock = task.system.cpu.clock_hz;
    let mut sharing = Vec::new();
    let mut system = loosened(task, layout, scale, |tuned, source| {
        sharing.push(tuned.source);
        let spacing = spacing(tuned, scale, clock).min(period);
        evenly(source, spacing.max(line(source, clock).unwrap_or(0)));
    });
    // The least urgent timer that may be taken delays the fewest units.
    let channels = task.platform.channels.iter();
    let least_urgent = channels
        .filter_map(|channel| Some((&channel.level, channel.shared.as_ref()?)))
        .min_by_key(|(level, _)| (level.group, Reverse(level.order)));
    if let Some((level, offer)) = least_urgent {
        let clears = sharing
            .iter()
            .filter_map(|source| offer.costs.get(*source))
            .fold(0_u64, |sum, costs| sum.saturating_add(costs.expiry_empty));
        system.timers.push(Timer {
            name: String::new(),
            channel: String::new(),
            level: level.clone(),
            period: Interval::of_cycles(period),
            base: offer.base.saturating_add(clears),
        });
    }
    system
}

/// The system with limiters that cost nothing and serve one request after the other. `loosen`
/// changes the sources that share the timer, which is silent.
fn loosened(
    task: &TuningTask,
    layout: &Layout,
    scale: Percent,
    mut loosen: impl FnMut(&TunedSource, &mut Source),
) -> System {
    let mut system = task.system.clone();
    let clock = system.cpu.clock_hz;
    for (tuned, way) in task.tuned.iter().zip(layout) {
        let Some(source) = system.sources.get_mut(tuned.source) else {
            continue;
        };
        source.limit.expiry = None;
        source.limit.lag = 0;
        source.limit.costs = EventCosts {
            request_served: least_cost(task, tuned.source, *way)
                .unwrap_or(task.system.cpu.unlimited.request_served),
            ..EventCosts::default()
        };
        if source.moderation.is_some() {
            // Moderation makes requests rarer in ways that are not modelled here.
            evenly(source, NEVER);
        } else if *way == Arrangement::Shared {
            loosen(tuned, source);
        } else {
            let spacing = spacing(tuned, scale, clock);
            evenly(source, spacing.max(line(source, clock).unwrap_or(0)));
        }
    }
    if let Some(timer) = task
        .slot
        .timer
        .and_then(|timer| system.timers.get_mut(timer))
    {
        timer.base = 0;
        timer.period = Interval::of_cycles(NEVER);
    }
    system
}

/// The system with limiters that cost nothing and let through just what is asked for: no limits of
/// the tuned sources ask for less.
#[must_use]
pub fn ideal(task: &TuningTask, scale: Percent) -> System {
    let cheapest = task.tuned.iter().map(|tuned| {
        let ways = tuned.ways.iter().copied();
        ways.min_by_key(|&way| least_cost(task, tuned.source, way).unwrap_or(u64::MAX))
            .unwrap_or(Arrangement::Hardware)
    });
    let layout: Layout = cheapest.collect();
    let clock = task.system.cpu.clock_hz;
    loosened(task, &layout, scale, |tuned, source| {
        let spacing = spacing(tuned, scale, clock);
        evenly(source, spacing.max(line(source, clock).unwrap_or(0)));
    })
}

/// The least cost of a request of this source in this arrangement; none: no channel says.
fn least_cost(task: &TuningTask, source: usize, way: Arrangement) -> Option<u64> {
    if way == Arrangement::Hardware {
        return Some(task.system.cpu.unlimited.request_served);
    }
    let of_channels = task
        .platform
        .channels
        .iter()
        .filter_map(|channel| match way {
            Arrangement::Shared => channel.shared.as_ref()?.costs.get(source),
            Arrangement::Own(policy, timing, _) => channel.offer(policy, timing)?.costs.get(source),
            Arrangement::Hardware => None,
        });
    of_channels.map(|costs| costs.request_served).min()
}

/// The longest spacing of single requests whose rate is still below the one that the limit has to
/// let through.
fn spacing(tuned: &TunedSource, scale: Percent, clock_hz: u64) -> u64 {
    Band::longest(tuned.band.asked(scale), 1, clock_hz).saturating_add(1)
}

/// Limits a source to one request per interval, at no cost.
fn evenly(source: &mut Source, interval: u64) {
    source.limit.policy = Policy::Strict;
    source.limit.place = Place::Hardware;
    source.limit.interval = Interval::of_cycles(interval);
    source.limit.burst = 1;
    source.limit.silicon = None;
}

/// The least cycles between two requests of the line; none without bound.
fn line(source: &Source, clock_hz: u64) -> Option<u64> {
    let worst = source.rates.worst?;
    Some((worst.period_cycles(clock_hz).ceil() as u64).max(1))
}
