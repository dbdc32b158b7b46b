// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search for the best limits: decision 0005.
//!
//! Of one layout every period is looked at that can be the best ([`crate::layout::periods`]), so there the result is exact; which sources share the timer is
//! searched through completely while there are few (`layouts`), and by steps from the best after that.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use weir_analysis::{analyse, holds};
use weir_model::{Place, System};

use crate::band::{Percent, WHOLE};
use crate::layout::{Bound, Layout, is_in_band, layout_of, layouts, neighbours, periods, plan};
use crate::measure::{Key, Measure, least_timer_rate, longest_delay, measure};
use crate::plan::{Choice, Plan, Way};
use crate::task::Task;

/// Limits with which every deadline holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The limits.
    pub plan: Plan,
    /// What they are worth.
    pub measure: Measure,
}

impl Found {
    fn key(&self) -> Key {
        self.measure.key()
    }
}

/// Hears how far a search is: what is done, and of how much.
pub type Progress<'p> = &'p (dyn Fn(usize, usize) + Sync);

/// An interval in which nothing is cleared.
pub(crate) const NEVER: u64 = 1 << 44;
/// Layouts that are compared at once, all with the best before them: so the result does not depend on which is done first.
const BATCH: usize = 8;
/// Systems that are analysed for one layout and scale before the search takes larger steps.
const PATIENCE: usize = 48;
/// Rounds of single changes to the best layout.
const MOST_ROUNDS: usize = 12;

/// The best limits; none if there are none with which every deadline holds.
#[must_use]
pub fn search(task: &Task, progress: Progress) -> Option<Found> {
    let top = top(task)?;
    let layouts = layouts(task);
    let done = AtomicUsize::new(0);
    let all = layouts.len();
    let mut best = seed(task, top);
    for batch in layouts.chunks(BATCH) {
        best = better_of(task, batch, best, top, || {
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
        });
    }
    for _ in 0..MOST_ROUNDS {
        let before = best.as_ref()?;
        let key = before.key();
        let around = neighbours(task, &layout_of(&before.plan));
        for batch in around.chunks(BATCH) {
            best = better_of(task, batch, best, top, || ());
        }
        if best.as_ref()?.key() == key {
            break;
        }
    }
    best
}

/// Are there limits with which every deadline holds?
#[must_use]
pub fn is_feasible(task: &Task) -> bool {
    if top(task).is_none() {
        return false;
    }
    let bottom = if task.is_scaled() { 1 } else { WHOLE };
    let any = |layouts: &[Layout]| {
        layouts
            .par_iter()
            .any(|layout| best_at(task, layout, bottom, None).is_some())
    };
    let layouts = layouts(task);
    any(&layouts)
        || layouts
            .first()
            .is_some_and(|layout| any(&neighbours(task, layout)))
}

/// Would there be limits if limiters cost nothing and let through just what is asked for?
#[must_use]
pub(crate) fn is_conceivable(task: &Task) -> bool {
    top(task).is_some()
}

/// The best of `best` and what the layouts give.
fn better_of(
    task: &Task,
    layouts: &[Layout],
    best: Option<Found>,
    top: Percent,
    done: impl Fn() + Sync,
) -> Option<Found> {
    let found: Vec<Option<Found>> = layouts
        .par_iter()
        .map(|layout| {
            let found = improve(task, layout, best.as_ref(), top);
            done();
            found
        })
        .collect();
    // Of equals the first stays: so what is tuned already is not changed for nothing.
    found
        .into_iter()
        .flatten()
        .fold(best, |best, found| match best {
            Some(best) if best.key() <= found.key() => Some(best),
            _ => Some(found),
        })
}

/// No scale above this can hold: if limiters cost nothing and let through just what is asked for, deadlines break. None: at no scale.
fn top(task: &Task) -> Option<Percent> {
    let holds_at = |scale: Percent| holds(&ideal(task, scale));
    if !task.is_scaled() {
        return holds_at(WHOLE).then_some(WHOLE);
    }
    last(1, WHOLE, holds_at)
}

/// The last of `from..=to` for which `holds`, if it holds for all before; none if not even for the first.
fn last(from: Percent, to: Percent, holds: impl Fn(Percent) -> bool) -> Option<Percent> {
    if from > to || !holds(from) {
        return None;
    }
    let (mut held, mut fails) = (from, to + 1);
    while fails - held > 1 {
        let middle = held + (fails - held) / 2;
        if holds(middle) {
            held = middle;
        } else {
            fails = middle;
        }
    }
    Some(held)
}

/// The system with limits in hardware in place of those that are tuned.
fn ideal(task: &Task, scale: Percent) -> System {
    let mut system = task.system.clone();
    let clock = system.cpu.clock_hz;
    let costs = system.cpu.unlimited;
    for tuned in &task.tuned {
        let Some(source) = system.sources.get_mut(tuned.source) else {
            continue;
        };
        let asked = tuned.band.asked(scale);
        let interval = crate::band::Band::longest(asked, 1, clock).max(1);
        source.limit.policy = weir_model::Policy::Strict;
        source.limit.place = Place::Hardware;
        source.limit.interval = interval;
        source.limit.burst = 1;
        source.limit.expiry = None;
        // No software limiter costs less than an interrupt without one, but measured costs may be a few cycles off.
        source.limit.costs = costs;
        source.limit.costs.request_served = task
            .platform
            .channels
            .iter()
            .flat_map(|channel| {
                let own = channel.own.iter().map(|offer| offer.costs.request_served);
                own.chain(
                    channel
                        .shared
                        .as_ref()
                        .map(|offer| offer.costs.request_served),
                )
            })
            .fold(costs.request_served, u64::min);
    }
    if let Some(timer) = task
        .slot
        .timer
        .and_then(|timer| system.timers.get_mut(timer))
    {
        timer.base = 0;
        timer.period = NEVER;
    }
    system
}

/// What the file has already, if that is a choice among those that are searched.
fn seed(task: &Task, top: Percent) -> Option<Found> {
    let plan = Plan::current(task)?;
    let pinned = task
        .options
        .timer_rate
        .map(|rate| rate.period_cycles(task.system.cpu.clock_hz).ceil() as u64);
    if pinned.is_some_and(|period| {
        plan.shared.is_none_or(|shared| {
            shared.setting.cycles() < period
                || shared.setting.cycles() - period >= shared.setting.divisor
        })
    }) {
        return None;
    }
    let bottom = if task.is_scaled() { 1 } else { WHOLE };
    let scale = (bottom..=top)
        .rev()
        .find(|&scale| is_in_band(task, &plan, scale))?;
    judge(task, plan, scale)
}

/// The plan with its measure, if every deadline holds.
pub(crate) fn judge(task: &Task, plan: Plan, scale: Percent) -> Option<Found> {
    let system = plan.apply(task.system, task.platform);
    if !is_in_time(task, &system) || task.accepts.is_some_and(|accepts| !accepts(&plan)) {
        return None;
    }
    let measure = measure(task, &plan, &system, scale);
    Some(Found { plan, measure })
}

/// The best of `layout`, if that is better than `best`.
fn improve(task: &Task, layout: &Layout, best: Option<&Found>, top: Percent) -> Option<Found> {
    let bottom = match best {
        _ if !task.is_scaled() => WHOLE,
        Some(best) => best.measure.scale_percent,
        None => 1,
    };
    let from = if best.is_some() { bottom + 1 } else { bottom };
    let scales = (from..=top).rev();
    let in_band = |scale: &Percent| !periods(task, layout, *scale, Bound::Kept).is_empty();
    let most = scales.clone().find(in_band);
    // Without the upper ends of the bands everything is monotone: what holds at a scale holds at a smaller one.
    let reach = last(from, most.unwrap_or(0), |scale| {
        let judge = |plan: &Plan| is_timely(task, plan).then_some(());
        first(task, layout, scale, Bound::Ignored, None, judge).is_some()
    });
    reach
        .and_then(|reach| {
            (from..=reach)
                .rev()
                .find_map(|scale| best_at(task, layout, scale, None))
        })
        .or_else(|| best_at(task, layout, bottom, Some(best?)))
}

/// The best of `layout` at `scale`, if it is better than `than`: of what works that with the longest period, since it has the lowest timer rate.
fn best_at(task: &Task, layout: &Layout, scale: Percent, than: Option<&Found>) -> Option<Found> {
    let most_rate = than.map(|than| than.measure.timer_rate_hz);
    let judge = |plan: &Plan| judge(task, plan.clone(), scale);
    first(task, layout, scale, Bound::Kept, most_rate, judge)
        .filter(|found| than.is_none_or(|than| found.key() < than.key()))
}

/// What `judge` says of the first plan, from the longest period to the shortest, of which it says anything; plans of a higher timer rate than `most_rate` are of
/// no use.
fn first<T>(
    task: &Task,
    layout: &Layout,
    scale: Percent,
    bound: Bound,
    most_rate: Option<f64>,
    judge: impl Fn(&Plan) -> Option<T>,
) -> Option<T> {
    let mut periods = periods(task, layout, scale, bound);
    let at = |period: u64| plan(task, layout, scale, period, bound);
    if let Some(most) = most_rate {
        // Rates that are equal but for rounding are compared by what comes after them.
        let is_slow = |&period: &u64| {
            at(period).is_none_or(|plan| {
                let system = plan.apply(task.system, task.platform);
                least_timer_rate(&system) <= most * (1.0 + 1e-9)
            })
        };
        let slow = periods.partition_point(is_slow);
        periods.truncate(slow);
    }
    // A burst, once, is the least that a shared timer lets through; if that alone breaks a deadline, so does every longer period.
    let from = if layout.contains(&Way::Shared) {
        periods.partition_point(|&period| at(period).is_some_and(|plan| !works_once(task, &plan)))
    } else {
        0
    };
    let periods = periods.get(from..).unwrap_or(&[]);
    let judge = |&period: &u64| judge(&at(period)?);
    let (mut next, mut seen) = (0, 0);
    let mut unseen = 0..0;
    while let Some(period) = periods.get(next) {
        if let Some(found) = judge(period) {
            // What was stepped over may be better.
            return periods.get(unseen)?.iter().find_map(judge).or(Some(found));
        }
        seen += 1;
        let step = 1 + seen / PATIENCE;
        unseen = next + 1..(next + step).min(periods.len());
        next += step;
    }
    None
}

/// Does every deadline hold, and no interrupt take too long?
fn is_timely(task: &Task, plan: &Plan) -> bool {
    is_in_time(task, &plan.apply(task.system, task.platform))
}

fn is_in_time(task: &Task, system: &System) -> bool {
    holds(system)
        && task.options.longest_delay.is_none_or(|most| {
            longest_delay(system, &analyse(system).latencies).is_some_and(|delay| delay <= most)
        })
}

fn works_once(task: &Task, plan: &Plan) -> bool {
    let mut system = plan.apply(task.system, task.platform);
    for (index, choice) in &plan.choices {
        if let (Choice::Shared { .. }, Some(source)) = (choice, system.sources.get_mut(*index)) {
            source.limit.interval = NEVER;
        }
    }
    if let Some(shared) = plan.shared {
        let index = shared.timer.unwrap_or(task.system.timers.len());
        if let Some(timer) = system.timers.get_mut(index) {
            timer.period = NEVER;
        }
    }
    is_in_time(task, &system)
}

/// The choices that are worth comparing at the scale of `found`: of each kind of layout around it some periods, those that work.
#[must_use]
pub fn alternatives(task: &Task, found: &Found) -> Vec<Found> {
    let scale = found.measure.scale_percent;
    let own = layout_of(&found.plan);
    let mut layouts = vec![own.clone()];
    layouts.extend(neighbours(task, &own));
    layouts.extend(layouts_of_one_kind(task));
    layouts
        .par_iter()
        .flat_map_iter(|layout| {
            let plans: Vec<Plan> = periods(task, layout, scale, Bound::Kept)
                .into_iter()
                .filter_map(|period| plan(task, layout, scale, period, Bound::Kept))
                .collect();
            spread(plans.len())
                .filter_map(|index| plans.iter().rev().nth(index).cloned())
                .filter_map(|plan| judge(task, plan, scale))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Every source on the timer that all share, and every one on its own.
fn layouts_of_one_kind(task: &Task) -> Vec<Layout> {
    let of = |choose: fn(&[Way]) -> Option<Way>| {
        task.tuned
            .iter()
            .map(|tuned| choose(&tuned.ways))
            .collect::<Option<Layout>>()
    };
    let all = [
        of(|ways| ways.first().copied()),
        of(|ways| {
            ways.iter()
                .find(|way| **way != Way::Shared)
                .or(ways.first())
                .copied()
        }),
    ];
    all.into_iter().flatten().collect()
}

/// Indices below `number` that lie as far apart as they are large, about forty of a thousand: periods, the shortest first, differ little where they are long.
fn spread(number: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(0_usize), |&index| Some(index + 1 + index / 8))
        .take_while(move |&index| index < number)
}
