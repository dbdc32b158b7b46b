// SPDX-License-Identifier: MIT OR Apache-2.0
//! Narrows the periods of a shared timer to those among which the best one lies.
//!
//! Whether deadlines hold is not monotone in the period, since bursts are whole numbers. Two
//! systems with less demand are monotone, however. One has the bursts alone, which only grow with
//! the period. The other has the rates and the timer's own interrupts, which only grow as the
//! period gets shorter. A deadline that breaks in one of them also breaks in the system itself. Two
//! bisections therefore leave a window, which is searched from the longest period to the shortest.
//! A part of the window is skipped if even the bursts of its shortest period break deadlines with
//! its longest period, because every plan of that part has more demand.

use std::cmp::Reverse;

use crate::limiter::request_interarrival;
use weir_model::{EventCosts, Interval, Place, Policy, Source, System, Timer, Timing};

use crate::tune::band::{Band, Percent};
use crate::tune::layout::{BandRule, Layout, periods, plan, suits_owners};
use crate::tune::measure::{least_timer_rate, longest_delay};
use crate::tune::plan::{Arrangement, Choice, LimitPlan};
use crate::tune::platform::MOST_BURST;
use crate::tune::task::{TunedSource, TuningTask};
use crate::{analyse, units_hold};

/// An interval in cycles that is longer than any system runs.
pub(crate) const NEVER: u64 = 1 << 44;

/// Tries plans from the longest period to the shortest and returns the first result of `judge`.
/// Plans with a higher timer rate than `most_rate` are not tried.
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
        // Rates that differ only by rounding count as equal. The rest of the objective decides
        // between them.
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
        keep_window(task, layout, scale, &mut periods);
    }
    let mut plans: Vec<LimitPlan> = periods.into_iter().filter_map(at).collect();
    plans.dedup();
    let mut alike = plans.chunk_by(is_alike);
    alike.find_map(|plans| first_of(task, plans, &judge))
}

/// Keeps only the periods of the window.
fn keep_window(task: &TuningTask, layout: &Layout, scale: Percent, periods: &mut Vec<u64>) {
    let is_long = |period: u64| !is_in_time(task, &bursts_alone(task, layout, scale, period));
    let is_not_short = |period: u64| is_in_time(task, &rates_alone(task, layout, scale, period));
    // Most windows are empty, and their two ends are enough to show that.
    let is_empty = periods.last().is_none_or(|&shortest| is_long(shortest))
        || periods
            .first()
            .is_none_or(|&longest| !is_not_short(longest));
    if is_empty {
        periods.clear();
    }
    let from = periods.partition_point(|&period| is_long(period));
    periods.drain(..from);
    let to = periods.partition_point(|&period| is_not_short(period));
    periods.truncate(to);
}

/// Whether the layout may keep the deadlines at `scale`, for any bursts of limiters with their own
/// channels. The window does not depend on these bursts.
pub(crate) fn may_hold(task: &TuningTask, layout: &Layout, scale: Percent) -> bool {
    let mut periods = periods(task, layout, scale, BandRule::Ignored);
    // A layout without a shared timer has one period, and the same demand in both systems.
    keep_window(task, layout, scale, &mut periods);
    !periods.is_empty()
}

/// Whether the plans differ only in the period of the shared timer, in whole ticks, and in the
/// bursts.
pub(crate) fn is_alike(a: &LimitPlan, b: &LimitPlan) -> bool {
    let timer = |plan: &LimitPlan| {
        let setting = plan.shared.map(|of| of.setting);
        setting.map(|of| (of.channel, of.interval.tick))
    };
    let others = |plan: &LimitPlan| {
        let choices = plan.choices.iter().copied();
        let others = choices.filter(|(_, choice)| !matches!(choice, Choice::Shared { .. }));
        others.collect::<Vec<_>>()
    };
    timer(a) == timer(b) && others(a) == others(b)
}

/// The first result of `judge` for plans that are alike (see `is_alike`), from the longest period
/// to the shortest.
fn first_of<T>(
    task: &TuningTask,
    plans: &[LimitPlan],
    judge: &impl Fn(&LimitPlan) -> Option<T>,
) -> Option<T> {
    let (longest, others) = plans.split_first()?;
    if let Some(found) = judge(longest) {
        return Some(found);
    }
    let (next, shortest) = (others.first()?, others.last()?);
    if is_refuted(task, next, shortest) {
        return None;
    }
    let (longer, shorter) = others.split_at(others.len().div_ceil(2));
    first_of(task, longer, judge).or_else(|| first_of(task, shorter, judge))
}

/// Whether it is known that no plan from `longest` to `shortest` keeps the deadlines. This is so if
/// deadlines break even with the bursts of the shortest period at the period of the longest.
pub(crate) fn is_refuted(task: &TuningTask, longest: &LimitPlan, shortest: &LimitPlan) -> bool {
    if longest == shortest {
        return false;
    }
    let clock = task.system.cpu.clock_hz;
    let period = |plan: &LimitPlan| plan.shared.map_or(0, |of| of.setting.interval.cycles());
    // A source that is too slow for its limit is bounded by its own rate and not by the limit.
    let is_held = longest
        .choices
        .iter()
        .all(|&(source, choice)| match choice {
            Choice::Shared { burst } => {
                let of = task.system.sources.get(source);
                let apart = of.and_then(|of| request_interarrival(of, clock));
                apart.is_none_or(|apart| apart.saturating_mul(burst.into()) < period(shortest))
            }
            _ => true,
        });
    let less = LimitPlan {
        shared: longest.shared,
        choices: shortest.choices.clone(),
    };
    is_held && !is_in_time(task, &less.apply(task.system, task.platform))
}

/// A system with less demand than one with a shared timer of this period. Each source that shares
/// the timer has its burst once, and then evenly spaced requests. The timer costs nothing.
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
        // A bursty limiter lets through 2 N requests and then N per period, which is never less
        // than N and one per spacing. The bucket's own jitter reduces its N.
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

/// A system with less demand than one with a shared timer of this period. Each source that shares
/// the timer has one request per period or, if that is more, evenly spaced requests at its rate.
/// The timer's own interrupts are included.
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
    // Of the timers that may be used, the least urgent one delays the fewest units.
    let channels = task.platform.channels.iter();
    let least_urgent = channels
        .filter_map(|channel| Some((&channel.level, channel.shared.as_ref()?)))
        .min_by_key(|(level, _)| (level.group, Reverse(level.order)));
    if let Some((level, offer)) = least_urgent.filter(|_| !sharing.is_empty()) {
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
/// changes the sources that share the timer; the timer itself never interrupts.
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
            // Moderation makes requests rarer in ways that are not modelled here, so only one
            // request is counted.
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

/// The system with limiters that cost nothing and let through exactly what is asked for. No limits
/// of the tuned sources have less demand.
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

/// The least cost, in cycles, of a request of this source in this arrangement; `None` if no channel
/// has the arrangement.
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

/// The longest spacing of single requests, in cycles, whose rate is still below the rate that the
/// limit has to let through.
fn spacing(tuned: &TunedSource, scale: Percent, clock_hz: u64) -> u64 {
    Band::longest(tuned.band.asked(scale), 1, clock_hz).saturating_add(1)
}

/// Limits a source to one request per interval, at no cost.
pub(crate) fn evenly(source: &mut Source, interval: u64) {
    source.limit.policy = Policy::Strict;
    source.limit.place = Place::Hardware;
    source.limit.interval = Interval::of_cycles(interval);
    source.limit.burst = 1;
    source.limit.silicon = None;
}

/// The least number of cycles between two requests of the line; `None` if there is no bound.
fn line(source: &Source, clock_hz: u64) -> Option<u64> {
    let worst = source.rates.worst?;
    Some((worst.period_cycles(clock_hz).ceil() as u64).max(1))
}

/// Whether every deadline holds and no interrupt takes longer than the user allows.
pub(crate) fn is_in_time(task: &TuningTask, system: &System) -> bool {
    units_hold(system)
        && task.options.longest_delay.is_none_or(|most| {
            longest_delay(system, &analyse(system).latencies).is_some_and(|delay| delay <= most)
        })
}
