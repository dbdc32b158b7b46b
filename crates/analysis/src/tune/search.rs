// SPDX-License-Identifier: MIT OR Apache-2.0
//! Searches for the best limits, as decisions 0005 and 0019 describe.
//!
//! For one layout, the search tries every period that can be the best ([`periods`]), so the result
//! for this layout is exact. It tries all layouts that `layouts` lists, and from the best of these
//! it goes on in single steps.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::check::{has_flow_deadlines, keeps_deadlines};
use crate::units_hold;
use rayon::prelude::*;

use crate::tune::band::{Percent, WHOLE};
use crate::tune::layout::{
    BandRule, Layout, is_in_band, keep_the_pinned_timer, kind, layout_of, layouts, neighbours,
    periods, plan, suits_owners, variants,
};
use crate::tune::measure::{Measure, MeasureKey, measure};
use crate::tune::plan::{Arrangement, LimitPlan};
use crate::tune::task::{Aim, TuningTask};
use crate::tune::window::{first, ideal, is_in_time, may_hold};

/// Limits with which every deadline holds.
#[derive(Debug, Clone, PartialEq)]
pub struct TuningSolution {
    /// The limits.
    pub plan: LimitPlan,
    /// The quality of the limits.
    pub measure: Measure,
}

impl TuningSolution {
    fn key(&self) -> MeasureKey {
        self.measure.key()
    }
}

/// A callback for the progress of a search. Its arguments are the number of steps done and the
/// number of all steps.
pub type Progress<'p> = &'p (dyn Fn(usize, usize) + Sync);

/// The number of layouts that are compared at once. Each is compared with the best layout before
/// the batch, so that the result does not depend on which thread ends first.
const BATCH: usize = 8;
/// The most rounds of single changes to the best layout.
const MOST_ROUNDS: usize = 60;

/// Finds the best limits; `None` if no limits keep every deadline.
#[must_use]
pub fn search(task: &TuningTask, progress: Progress) -> Option<TuningSolution> {
    let mut best = fewest_interrupts(task, progress)?;
    if task.options.aim == Aim::Knee {
        best = knee(task, best);
        // The layouts around the knee may reach a larger scale than those around the corner.
        while let Some(higher) = higher(task, &best) {
            best = knee(task, higher);
        }
    }
    Some(best)
}

/// Finds limits of a larger scale in the layouts around that of `found`; `None` if there are none.
fn higher(task: &TuningTask, found: &TuningSolution) -> Option<TuningSolution> {
    let top = top(task)?;
    let scale = found.measure.scale_percent;
    let found: Vec<Option<TuningSolution>> = around(task, &layout_of(&found.plan))
        .par_iter()
        .map(|layout| improve(task, layout, Some(found), top))
        .collect();
    let all = found.into_iter().flatten();
    all.filter(|of| of.measure.scale_percent > scale)
        .min_by_key(TuningSolution::key)
}

/// Finds the limits with the largest scale and, among these, the fewest timer interrupts.
fn fewest_interrupts(task: &TuningTask, progress: Progress) -> Option<TuningSolution> {
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
    if best.is_none() {
        for batch in possible_variants(task).chunks(BATCH) {
            best = better_of(task, batch, best, top, || ());
            if best.is_some() {
                break;
            }
        }
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

/// Finds the limits with the least product of overhead and longest delay around `start`, at its
/// scale.
///
/// The search tries some periods for each layout, then all periods of the layouts around the best.
/// It repeats this from each better result until no neighbour is better.
fn knee(task: &TuningTask, start: TuningSolution) -> TuningSolution {
    let scale = start.measure.scale_percent;
    let seed = seed(task, scale).filter(|of| of.measure.scale_percent == scale);
    let mut best = match seed {
        Some(seed) => nearer(seed, start),
        None => start,
    };
    for _ in 0..MOST_ROUNDS {
        let around = around(task, &layout_of(&best.plan));
        let found: Vec<Option<TuningSolution>> = around
            .par_iter()
            .map(|layout| knee_of(task, layout, scale))
            .collect();
        let key = best.measure.knee_key();
        best = found.into_iter().flatten().fold(best, nearer);
        if best.measure.knee_key() == key {
            break;
        }
    }
    best
}

/// Returns the solution that is nearer to the knee; the first if both are equally near.
fn nearer(a: TuningSolution, b: TuningSolution) -> TuningSolution {
    if b.measure.knee_key() < a.measure.knee_key() {
        b
    } else {
        a
    }
}

/// Finds the limits of `layout` at `scale` with the least product of overhead and longest delay.
fn knee_of(task: &TuningTask, layout: &Layout, scale: Percent) -> Option<TuningSolution> {
    let plans = plans(task, layout, scale);
    let judged = |index: usize| Some((index, judge(task, plans.get(index)?.clone(), scale)?));
    let best_of = |indices: Vec<usize>| {
        let judged = indices.into_iter().filter_map(judged);
        judged.min_by_key(|(_, found)| found.measure.knee_key())
    };
    let tried: Vec<usize> = spread(plans.len()).collect();
    let (near, found) = best_of(tried.clone())?;
    let place = tried.partition_point(|&index| index < near);
    let before = place.checked_sub(1).and_then(|place| tried.get(place));
    let from = before.map_or(0, |before| before + 1);
    let to = tried.get(place + 1).copied().unwrap_or(plans.len());
    let between = (from..to).filter(|&index| index != near).collect();
    Some(match best_of(between) {
        Some((_, closer)) => nearer(found, closer),
        None => found,
    })
}

/// The plans of `layout` at `scale`, one for each period, the shortest first.
fn plans(task: &TuningTask, layout: &Layout, scale: Percent) -> Vec<LimitPlan> {
    if !suits_owners(task, layout, scale, BandRule::Kept) {
        return Vec::new();
    }
    let periods = periods(task, layout, scale, BandRule::Kept);
    let plan = |&period: &u64| plan(task, layout, scale, period, BandRule::Kept);
    periods.iter().rev().filter_map(plan).collect()
}

/// Whether limits exist with which every deadline holds.
#[must_use]
pub fn is_feasible(task: &TuningTask) -> bool {
    let Some(top) = top(task) else {
        return false;
    };
    let any = |layouts: Vec<Layout>| {
        layouts
            .par_iter()
            .any(|layout| is_possible(task, layout, top))
    };
    any(layouts(task)) || any(possible_variants(task))
}

/// Whether feasible limits of this layout exist. The least rates that they may let through are
/// tried first.
fn is_possible(task: &TuningTask, layout: &Layout, top: Percent) -> bool {
    let scale = least_scale(task);
    reaches(task, layout, scale)
        && (best_at(task, layout, scale, None).is_some()
            || improve(task, layout, None, top).is_some())
}

/// Whether limits of this layout keep the deadlines and let through at least what `scale` asks for.
/// They may let through more than their bands allow.
fn reaches(task: &TuningTask, layout: &Layout, scale: Percent) -> bool {
    let judge = |plan: &LimitPlan| is_timely(task, plan).then_some(());
    // Without the upper ends of the bands a counter may keep a small divisor, which cannot count a
    // long interval.
    let mut rules = [BandRule::Ignored, BandRule::Kept].into_iter();
    rules.any(|rule| first(task, layout, scale, rule, None, judge).is_some())
}

/// The layouts of [`variants`] that may keep the deadlines.
fn possible_variants(task: &TuningTask) -> Vec<Layout> {
    let mut variants = variants(task);
    let mut kinds: Vec<Layout> = Vec::new();
    for kind in variants.iter().map(kind) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let scale = least_scale(task);
    let kinds = kinds.into_par_iter();
    let possible: Vec<Layout> = kinds.filter(|kind| may_hold(task, kind, scale)).collect();
    variants.retain(|layout| possible.contains(&kind(layout)));
    variants
}

/// The least scale that may be chosen.
fn least_scale(task: &TuningTask) -> Percent {
    if task.is_scaled() { 1 } else { WHOLE }
}

/// Whether limits would exist if limiters cost nothing and let through exactly what is asked for.
#[must_use]
pub(crate) fn is_conceivable(task: &TuningTask) -> bool {
    top(task).is_some()
}

/// Returns the better of `best` and the best limits of the layouts.
fn better_of(
    task: &TuningTask,
    layouts: &[Layout],
    best: Option<TuningSolution>,
    top: Percent,
    done: impl Fn() + Sync,
) -> Option<TuningSolution> {
    let found: Vec<Option<TuningSolution>> = layouts
        .par_iter()
        .map(|layout| {
            let found = improve(task, layout, best.as_ref(), top);
            done();
            found
        })
        .collect();
    // The first of equals wins, so that a tuned file does not change without need.
    found
        .into_iter()
        .flatten()
        .fold(best, |best, found| match best {
            Some(best) if best.key() <= found.key() => Some(best),
            _ => Some(found),
        })
}

/// The largest scale that can hold. Above it, deadlines break even if limiters cost nothing and let
/// through exactly what is asked for. `None` if no scale holds.
fn top(task: &TuningTask) -> Option<Percent> {
    let holds_at = |scale: Percent| units_hold(&ideal(task, scale));
    if !task.is_scaled() {
        return holds_at(WHOLE).then_some(WHOLE);
    }
    last(1, WHOLE, holds_at)
}

/// The last number of `from..=to` for which `holds` is true, if `holds` is also true for all
/// numbers before it. `None` if it is not true for `from`.
pub(crate) fn last(from: u32, to: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
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

/// The limits of the file; `None` if the search could not choose them.
fn seed(task: &TuningTask, top: Percent) -> Option<TuningSolution> {
    let plan = task.current()?;
    let pinned = task
        .options
        .timer_rate
        .map(|rate| rate.period_cycles(task.system.cpu.clock_hz).ceil() as u64);
    if pinned.is_some_and(|period| {
        plan.shared.is_none_or(|shared| {
            shared.setting.interval.cycles() < period
                || shared.setting.interval.cycles() - period >= shared.setting.interval.tick
        })
    }) {
        return None;
    }
    let scale = (least_scale(task)..=top)
        .rev()
        .find(|&scale| is_in_band(task, &plan, scale))?;
    judge(task, plan, scale)
}

/// Returns the plan with its measure; `None` if a deadline breaks.
pub(crate) fn judge(task: &TuningTask, plan: LimitPlan, scale: Percent) -> Option<TuningSolution> {
    let system = plan.apply(task.system, task.platform);
    // Packet deadlines are checked only here. Letting through less does not always help them, since
    // a packet waits for the limit, so the bisection cannot rely on them.
    if !is_in_time(task, &system)
        || (has_flow_deadlines(&system) && !keeps_deadlines(&system))
        || task.accepts.is_some_and(|accepts| !accepts(&plan))
    {
        return None;
    }
    let measure = measure(task, &plan, &system, scale);
    Some(TuningSolution { plan, measure })
}

/// Returns the best limits of `layout`, if they are better than `best`.
fn improve(
    task: &TuningTask,
    layout: &Layout,
    best: Option<&TuningSolution>,
    top: Percent,
) -> Option<TuningSolution> {
    let bottom = best.map_or_else(|| least_scale(task), |best| best.measure.scale_percent);
    let from = if best.is_some() { bottom + 1 } else { bottom };
    let in_band = |scale: &Percent| {
        suits_owners(task, layout, *scale, BandRule::Kept)
            && !periods(task, layout, *scale, BandRule::Kept).is_empty()
    };
    // Without the upper ends of the bands the search is monotone: limits that hold at a scale also
    // hold at a smaller one.
    let may_be = |scale: Percent| reaches(task, layout, scale);
    let reach = if from <= top && may_be(from) {
        let most = (from..=top).rev().find(in_band);
        most.map(|most| last(from + 1, most, may_be).unwrap_or(from))
    } else {
        None
    };
    reach
        .and_then(|reach| {
            (from..=reach)
                .rev()
                .find_map(|scale| best_at(task, layout, scale, None))
        })
        .or_else(|| best_at(task, layout, bottom, Some(best?)))
}

/// Returns the best limits of `layout` at `scale`, if they are better than `than`. The longest
/// period that works is the best, since it has the lowest timer rate.
fn best_at(
    task: &TuningTask,
    layout: &Layout,
    scale: Percent,
    than: Option<&TuningSolution>,
) -> Option<TuningSolution> {
    let most_rate = than.map(|than| than.measure.timer_rate_hz);
    let judge = |plan: &LimitPlan| judge(task, plan.clone(), scale);
    first(task, layout, scale, BandRule::Kept, most_rate, judge)
        .filter(|found| than.is_none_or(|than| found.key() < than.key()))
}

/// Whether every deadline holds and no interrupt takes longer than the user allows.
fn is_timely(task: &TuningTask, plan: &LimitPlan) -> bool {
    is_in_time(task, &plan.apply(task.system, task.platform))
}

/// Choices that are worth comparing at the scale of `found`: some periods that work, for each kind
/// of layout around it. The file's own limits are included if they have the same scale.
#[must_use]
pub fn alternatives(task: &TuningTask, found: &TuningSolution) -> Vec<TuningSolution> {
    let scale = found.measure.scale_percent;
    let mut all: Vec<TuningSolution> = around(task, &layout_of(&found.plan))
        .par_iter()
        .flat_map_iter(|layout| {
            let plans = plans(task, layout, scale);
            spread(plans.len())
                .filter_map(|index| judge(task, plans.get(index)?.clone(), scale))
                .collect::<Vec<_>>()
        })
        .collect();
    all.extend(seed(task, scale).filter(|of| of.measure.scale_percent == scale));
    all
}

/// The layout itself, the layouts that differ from it in one source, and the layouts of one kind.
fn around(task: &TuningTask, layout: &Layout) -> Vec<Layout> {
    let mut found = vec![layout.clone()];
    found.extend(neighbours(task, layout));
    found.extend(layouts_of_one_kind(task));
    keep_the_pinned_timer(task, &mut found);
    found
}

/// The layout with every source on the shared timer, and the one with a channel for every source.
fn layouts_of_one_kind(task: &TuningTask) -> Vec<Layout> {
    let of = |choose: fn(&[Arrangement]) -> Option<Arrangement>| {
        task.tuned
            .iter()
            .map(|tuned| choose(&tuned.ways))
            .collect::<Option<Layout>>()
    };
    let all = [
        of(|ways| ways.first().copied()),
        of(|ways| {
            ways.iter()
                .find(|way| **way != Arrangement::Shared)
                .or(ways.first())
                .copied()
        }),
    ];
    all.into_iter().flatten().collect()
}

/// Indices below `number` with distances in proportion to their size, about twenty of a thousand.
/// The longest periods come last and differ little, so few of them are needed.
fn spread(number: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(0_usize), |&index| Some(index + 1 + index / 4))
        .take_while(move |&index| index < number)
}
