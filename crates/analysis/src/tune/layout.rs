// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists layouts, and derives limits from a layout and a scale. A layout says which sources share
//! the timer and which have a channel of their own.

use weir_model::Policy;

use crate::tune::assign::{ChannelUse, Client, assign};
use crate::tune::band::{Band, Percent, WHOLE};
use crate::tune::plan::{Arrangement, Choice, LimitPlan, SharedTimer};
use crate::tune::platform::MOST_BURST;
use crate::tune::task::{TunedSource, TuningTask};

/// An arrangement for every tuned source, in the order of [`TuningTask::tuned`].
pub type Layout = Vec<Arrangement>;

/// The most layouts that are listed one by one, which is about what the time for tuning allows. A
/// system of six sources has fewer layouts.
const MOST_LAYOUTS: usize = 130;

/// The layouts to try, those with the most sources on the shared timer first.
#[must_use]
pub fn layouts(task: &TuningTask) -> Vec<Layout> {
    let first_own = |tuned: &TunedSource| {
        tuned
            .ways
            .iter()
            .copied()
            .find(|way| *way != Arrangement::Shared)
    };
    let forced: Layout = task
        .tuned
        .iter()
        .filter_map(|tuned| tuned.ways.first().copied())
        .collect();
    let movable: Vec<(usize, Arrangement)> = task
        .tuned
        .iter()
        .enumerate()
        .filter(|(_, tuned)| tuned.ways.first() == Some(&Arrangement::Shared))
        .filter_map(|(index, tuned)| Some((index, first_own(tuned)?)))
        .collect();
    let all = task.platform.channels.iter().map(|channel| channel.limits);
    let channels = all.sum::<usize>().saturating_sub(task.taken.channels.len());
    let mut found = vec![forced.clone()];
    // Each round moves one more source to a channel of its own, as long as channels remain and the
    // list stays below its largest length.
    let mut before: Vec<(Layout, usize)> = vec![(forced, 0)];
    for _ in 0..channels.min(movable.len()) {
        let mut next = Vec::new();
        for (layout, from) in &before {
            for (number, &(index, way)) in movable.iter().enumerate().skip(*from) {
                let mut moved = layout.clone();
                if let Some(of) = moved.get_mut(index) {
                    *of = way;
                }
                next.push((moved, number + 1));
            }
        }
        if found.len() + next.len() > MOST_LAYOUTS {
            break;
        }
        found.extend(next.iter().map(|(layout, _)| layout.clone()));
        before = next;
    }
    for layout in extremes(task, &movable, channels) {
        if !found.contains(&layout) {
            found.push(layout);
        }
    }
    keep_the_pinned_timer(task, &mut found);
    found
}

/// Layouts in which the slowest and the fastest sources have channels of their own, because sources
/// whose rates differ most cannot share a timer.
fn extremes(task: &TuningTask, movable: &[(usize, Arrangement)], channels: usize) -> Vec<Layout> {
    let forced = task.tuned.iter().filter_map(|of| of.ways.first().copied());
    let forced: Layout = forced.collect();
    let asked = |index: usize| task.tuned.get(index).map_or(0.0, |of| of.band.asked(WHOLE));
    let mut by_rate = movable.to_vec();
    by_rate.sort_by(|a, b| asked(a.0).total_cmp(&asked(b.0)));
    let most = channels.min(by_rate.len());
    let mut found = Vec::new();
    for slow in 0..=most {
        for fast in 0..=(most - slow) {
            let mut layout = forced.clone();
            let slowest = by_rate.iter().take(slow);
            for &(index, way) in slowest.chain(by_rate.iter().rev().take(fast)) {
                if let Some(of) = layout.get_mut(index) {
                    *of = way;
                }
            }
            found.push(layout);
        }
    }
    found
}

/// Drops layouts without a shared timer if the user asks for a rate of that timer and a source can
/// share it.
pub fn keep_the_pinned_timer(task: &TuningTask, layouts: &mut Vec<Layout>) {
    if task.options.timer_rate.is_some() && task.tuned.iter().any(TunedSource::may_share) {
        layouts.retain(|layout| layout.contains(&Arrangement::Shared));
    }
}

/// The bursts that are tried for a bursty limiter with a channel of its own.
const BURSTS: [u32; 18] = [
    2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 192, MOST_BURST,
];

/// The most layouts that [`variants`] lists.
const MOST_VARIANTS: usize = 1_500;

/// Lists layouts beyond [`layouts`], for systems in which none of those holds. If all layouts with
/// every burst of [`BURSTS`] are few, the result is all of them. Otherwise the result is each
/// layout of [`layouts`] with one burst for all bursty limiters that have channels of their own,
/// also with bursty limiters in place of strict ones.
#[must_use]
pub fn variants(task: &TuningTask) -> Vec<Layout> {
    let of_source = |tuned: &TunedSource| -> Vec<Arrangement> {
        let ways = tuned.ways.iter();
        ways.flat_map(|&way| with_bursts(way)).collect()
    };
    let all: Vec<Vec<Arrangement>> = task.tuned.iter().map(of_source).collect();
    let number = all
        .iter()
        .fold(1_usize, |product, of| product.saturating_mul(of.len()));
    let mut found = if number <= MOST_VARIANTS {
        all.iter().fold(vec![Vec::new()], |before, ways| {
            let longer = |layout: &Layout| {
                let layout = layout.clone();
                ways.iter().map(move |&way| {
                    let mut longer = layout.clone();
                    longer.push(way);
                    longer
                })
            };
            before.iter().flat_map(longer).collect()
        })
    } else {
        let of_layout = |layout: Layout| BURSTS.map(|burst| with_one_burst(task, &layout, burst));
        let mut found: Vec<Layout> = layouts(task).into_iter().flat_map(of_layout).collect();
        found.dedup();
        found
    };
    keep_the_pinned_timer(task, &mut found);
    found
}

/// The layout with the bursts of limiters on their own channels removed.
#[must_use]
pub fn kind(layout: &Layout) -> Layout {
    let without_burst = |way: &Arrangement| match *way {
        Arrangement::Own(policy, timing, _) => Arrangement::Own(policy, timing, 0),
        way => way,
    };
    layout.iter().map(without_burst).collect()
}

/// The arrangement with each burst that it can have.
fn with_bursts(way: Arrangement) -> Vec<Arrangement> {
    match way {
        Arrangement::Own(Policy::Bursty, timing, _) => BURSTS
            .map(|burst| Arrangement::Own(Policy::Bursty, timing, burst))
            .to_vec(),
        way => vec![way],
    }
}

/// The layout with a bursty limiter of this burst for every source that has a channel of its own
/// and may be bursty.
fn with_one_burst(task: &TuningTask, layout: &Layout, burst: u32) -> Layout {
    let of_source = |(tuned, way): (&TunedSource, &Arrangement)| {
        let bursty = tuned.ways.iter().find_map(|way| match *way {
            Arrangement::Own(Policy::Bursty, timing, _) => {
                Some(Arrangement::Own(Policy::Bursty, timing, burst))
            }
            _ => None,
        });
        match *way {
            Arrangement::Own(..) => bursty.unwrap_or(*way),
            way => way,
        }
    };
    task.tuned.iter().zip(layout).map(of_source).collect()
}

/// The next larger and the next smaller burst of [`BURSTS`].
fn next_bursts(now: u32) -> impl Iterator<Item = u32> {
    let larger = BURSTS.into_iter().find(|&burst| burst > now);
    let smaller = BURSTS.into_iter().rev().find(|&burst| burst < now);
    larger.into_iter().chain(smaller)
}

/// Layouts that differ from `layout` in one source.
#[must_use]
pub fn neighbours(task: &TuningTask, layout: &Layout) -> Vec<Layout> {
    let mut found = Vec::new();
    for (index, tuned) in task.tuned.iter().enumerate() {
        for &way in &tuned.ways {
            let variants: Vec<Arrangement> = match (way, layout.get(index)) {
                (
                    Arrangement::Own(Policy::Bursty, timing, _),
                    Some(Arrangement::Own(Policy::Bursty, _, now)),
                ) => next_bursts(*now)
                    .map(|burst| Arrangement::Own(Policy::Bursty, timing, burst))
                    .collect(),
                _ => vec![way],
            };
            for variant in variants {
                let mut changed = layout.clone();
                match changed.get_mut(index) {
                    Some(of) if *of != variant => *of = variant,
                    _ => continue,
                }
                found.push(changed);
            }
        }
    }
    keep_the_pinned_timer(task, &mut found);
    found
}

/// The periods of the shared timer that are worth trying, in cycles, the longest first. With each
/// of them some source gets a whole number of requests and no source gets too many. Of all periods
/// between two neighbours of this list, the longest is best, since it gives every source the same
/// burst less often. A layout without a shared timer has the single entry 0.
#[must_use]
pub fn periods(task: &TuningTask, layout: &Layout, scale: Percent, bound: BandRule) -> Vec<u64> {
    if !layout.contains(&Arrangement::Shared) {
        return vec![0];
    }
    let clock = task.system.cpu.clock_hz;
    if let Some(rate) = task.options.timer_rate {
        return vec![(rate.period_cycles(clock).ceil() as u64).max(1)];
    }
    let most = task
        .platform
        .channels
        .iter()
        .filter_map(|channel| channel.shared.as_ref())
        .flat_map(|offer| &offer.ranges)
        .map(|range| range.divisor.saturating_mul(range.most))
        .fold(0, u64::max);
    let bands: Vec<(f64, f64)> = shared(task, layout)
        .map(|tuned| (tuned.band.asked(scale), tuned.band.most(scale)))
        .collect();
    let longest = bands
        .iter()
        .map(|&(asked, _)| Band::longest(asked, MOST_BURST, clock))
        .fold(u64::MAX, u64::min);
    let mut found = Vec::new();
    for &(asked, _) in &bands {
        let of_bursts = (1..=MOST_BURST).map(|burst| Band::longest(asked, burst, clock).min(most));
        found.extend(of_bursts.take_while(|&period| period <= longest));
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.dedup();
    // Most periods give some source too many requests. No timer has to be tried to find that out.
    found.retain(|&period| {
        let is_short = |&(asked, most): &(f64, f64)| {
            let burst = Band::burst(asked, period, clock, MOST_BURST);
            burst.is_some_and(|burst| Band::shortest(most, burst, clock) <= period)
        };
        period > 0 && (bound == BandRule::Ignored || bands.iter().all(is_short))
    });
    found
}

/// The shortest interval, in cycles, in which this number of requests does not exceed the bound.
fn shortest(
    tuned: &TunedSource,
    burst: u32,
    scale: Percent,
    bound: BandRule,
    clock_hz: u64,
) -> u64 {
    match bound {
        BandRule::Kept => Band::shortest(tuned.band.most(scale), burst, clock_hz),
        BandRule::Ignored => 1,
    }
}

fn shared<'t>(task: &'t TuningTask, layout: &'t Layout) -> impl Iterator<Item = &'t TunedSource> {
    task.tuned
        .iter()
        .zip(layout)
        .filter(|(_, way)| **way == Arrangement::Shared)
        .map(|(tuned, _)| tuned)
}

/// Whether a limit may let through more than the over-admission and the tolerated rate allow. If
/// this upper end is ignored, the result is only a bound on what can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BandRule {
    /// Each limit lies in its band.
    Kept,
    /// Each limit respects only the lower end of its band.
    Ignored,
}

/// The sources of `layout` that need a channel of their own. The interval that each needs depends
/// only on the scale and the rule.
fn owners(
    task: &TuningTask,
    layout: &Layout,
    scale: Percent,
    bound: BandRule,
) -> impl Iterator<Item = Client> {
    let clock = task.system.cpu.clock_hz;
    let own = task.tuned.iter().zip(layout);
    own.filter_map(move |(tuned, way)| {
        let Arrangement::Own(policy, timing, burst) = *way else {
            return None;
        };
        let requests = if policy == Policy::Bursty { burst } else { 1 };
        Some(Client {
            wanted: ChannelUse::Own(policy, timing),
            channel: tuned.channel,
            shortest: shortest(tuned, requests, scale, bound, clock),
            longest: Band::longest(tuned.band.asked(scale), requests, clock),
            group: task
                .system
                .sources
                .get(tuned.source)
                .map(|of| of.level.group),
            up: false,
        })
    })
}

/// Whether the timers can serve the sources of `layout` that do not share one. If they cannot, no
/// period helps.
#[must_use]
pub fn suits_owners(task: &TuningTask, layout: &Layout, scale: Percent, bound: BandRule) -> bool {
    let clients: Vec<Client> = owners(task, layout, scale, bound).collect();
    assign(task.platform, &task.taken, &clients).is_some()
}

/// The limits of `layout` at `scale`. The shared timer has a period of `period` cycles or the next
/// shorter one that it can have (the next longer one if the user asks for a rate). `None` if a
/// limit would lie outside its band, or if the timers are not sufficient.
#[must_use]
pub fn plan(
    task: &TuningTask,
    layout: &Layout,
    scale: Percent,
    period: u64,
    bound: BandRule,
) -> Option<LimitPlan> {
    let clock = task.system.cpu.clock_hz;
    let shortest = |tuned: &TunedSource, burst: u32| shortest(tuned, burst, scale, bound, clock);
    let is_pinned = task.options.timer_rate.is_some();
    let mut clients = Vec::new();
    if layout.contains(&Arrangement::Shared) {
        let mut least = 1;
        for tuned in shared(task, layout) {
            let burst = Band::burst(tuned.band.asked(scale), period, clock, MOST_BURST)?;
            least = least.max(shortest(tuned, burst));
        }
        if least > period && !is_pinned {
            return None;
        }
        clients.push(Client {
            wanted: ChannelUse::Shared,
            channel: task.slot.channel,
            shortest: if is_pinned { period } else { least },
            longest: period,
            group: None,
            up: is_pinned,
        });
    }
    clients.extend(owners(task, layout, scale, bound));
    let mut settings = assign(task.platform, &task.taken, &clients)?.into_iter();
    let shared_timer = if layout.contains(&Arrangement::Shared) {
        Some(SharedTimer {
            timer: task.slot.timer,
            setting: settings.next()?,
        })
    } else {
        None
    };
    let mut choices = Vec::with_capacity(layout.len());
    for (tuned, way) in task.tuned.iter().zip(layout) {
        let choice = match *way {
            Arrangement::Shared => {
                let cycles = shared_timer?.setting.interval.cycles();
                let burst = Band::burst(tuned.band.asked(scale), cycles, clock, MOST_BURST)?;
                if bound == BandRule::Kept && cycles < shortest(tuned, burst) {
                    return None;
                }
                Choice::Shared { burst }
            }
            Arrangement::Own(policy, timing, burst) => Choice::Own {
                policy,
                timing,
                burst,
                setting: settings.next()?,
            },
            Arrangement::Hardware => {
                let requests = task.system.sources.get(tuned.source)?.limit.per_interval();
                let longest = Band::longest(tuned.band.asked(scale), requests, clock);
                let interval = match &task.system.silicon {
                    Some(silicon) => silicon.interval_at_most(longest)?,
                    None => longest,
                };
                if interval == 0 || interval < shortest(tuned, requests) {
                    return None;
                }
                Choice::Hardware { requests, interval }
            }
        };
        choices.push((tuned.source, choice));
    }
    Some(LimitPlan {
        shared: shared_timer,
        choices,
    })
}

/// The layout of a plan.
#[must_use]
pub fn layout_of(plan: &LimitPlan) -> Layout {
    plan.choices
        .iter()
        .map(|(_, choice)| match *choice {
            Choice::Shared { .. } => Arrangement::Shared,
            Choice::Own {
                policy,
                timing,
                burst,
                ..
            } => Arrangement::Own(policy, timing, burst),
            Choice::Hardware { .. } => Arrangement::Hardware,
        })
        .collect()
}

/// Whether every limit of `plan` lies in its band at `scale`.
#[must_use]
pub fn is_in_band(task: &TuningTask, plan: &LimitPlan, scale: Percent) -> bool {
    let clock = task.system.cpu.clock_hz;
    task.tuned.iter().all(|tuned| {
        let Some((_, choice)) = plan.choices.iter().find(|(of, _)| *of == tuned.source) else {
            return false;
        };
        let (burst, interval) = match (*choice, plan.shared) {
            (Choice::Shared { burst }, Some(timer)) => (burst, timer.setting.interval.cycles()),
            (Choice::Shared { .. }, None) => return false,
            (
                Choice::Own {
                    policy: Policy::Bursty,
                    burst,
                    setting,
                    ..
                },
                _,
            ) => (burst, setting.interval.cycles()),
            (Choice::Own { setting, .. }, _) => (1, setting.interval.cycles()),
            (Choice::Hardware { requests, interval }, _) => (requests, interval),
        };
        interval <= Band::longest(tuned.band.asked(scale), burst, clock)
            && interval >= Band::shortest(tuned.band.most(scale), burst, clock)
    })
}
