// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the properties of the search. Its result keeps the deadlines and lies in the bands. On
//! systems that are small enough to try everything, no better result exists.

use crate::units_hold;
use proptest::prelude::*;
use weir_model::{Interval, Policy, System, Timing};

use crate::tune::band::{Percent, hertz};
use crate::tune::fixture::{atmega128, receiver, source, system};
use crate::tune::layout::{BandRule, Layout, is_in_band, periods, plan};
use crate::tune::measure::measure;
use crate::tune::plan::{Choice, LimitPlan, Setting, SharedTimer};
use crate::tune::platform::Platform;
use crate::tune::search::{TuningSolution, alternatives, is_feasible, search};
use crate::tune::session::MOST_ROUNDS;
use crate::tune::task::{Aim, Options, TuningTask};
use crate::tune::window::{bursts_alone, ideal, is_alike, is_refuted, rates_alone};

#[path = "../../../test-cases.rs"]
mod number;

use number::cases;

fn tuned<'a>(
    system: &'a System,
    platform: &'a Platform,
    options: Options,
) -> (TuningTask<'a>, Option<TuningSolution>) {
    let task = TuningTask::new(system, platform, options, &[]);
    let found = search(&task, &|_, _| ());
    (task, found)
}

/// The options of the search for the fewest timer interrupts.
fn fewest() -> Options {
    Options {
        aim: Aim::FewestInterrupts,
        ..Options::default()
    }
}

/// regehr2005 §3.5: "three sources with maximum arrival rates of 324, 200, and 754 Hz".
fn paper(receivers: Vec<weir_model::Receiver>) -> System {
    let sources = [324.0, 200.0, 754.0]
        .into_iter()
        .zip(0..)
        .map(|(hertz, number)| source(number, Some(hertz), None, 120))
        .collect();
    system(4_000_000, sources, receivers)
}

fn bursts(plan: &LimitPlan) -> Vec<u32> {
    plan.choices
        .iter()
        .filter_map(|(_, choice)| match *choice {
            Choice::Shared { burst } => Some(burst),
            _ => None,
        })
        .collect()
}

#[test]
fn at_110_hz_the_bursts_are_those_of_the_paper() {
    let system = paper(vec![receiver(1, 400_000, 400_000, 20_000)]);
    let platform = atmega128();
    let options = Options {
        timer_rate: Some(crate::tune::fixture::rate(110.0)),
        ..Options::default()
    };
    let (_, found) = tuned(&system, &platform, options);
    let found = found.unwrap();
    assert_eq!(bursts(&found.plan), [3, 2, 7]);
    assert!(found.measure.timer_rate_hz <= 110.0 && found.measure.timer_rate_hz > 109.9);
}

/// The paper's configuration as a plan: 110 Hz, bursts 3, 2 and 7.
fn papers_plan() -> LimitPlan {
    let setting = Setting {
        channel: 0,
        interval: Interval::of_cycles(36_364),
    };
    let choices = [3, 2, 7].map(|burst| Choice::Shared { burst });
    LimitPlan {
        shared: Some(SharedTimer {
            timer: None,
            setting,
        }),
        choices: choices.into_iter().enumerate().collect(),
    }
}

#[test]
fn the_own_choice_is_at_least_as_good_as_the_papers_by_each_criterion() {
    let platform = atmega128();
    for deadline in [10_000, 12_000, 20_000, 400_000] {
        let system = paper(vec![receiver(1, 400_000, deadline, 2_000)]);
        let (task, found) = tuned(&system, &platform, fewest());
        let theirs = papers_plan();
        let applied = theirs.apply(&system, &platform);
        assert!(is_in_band(&task, &theirs, 100));
        if !units_hold(&applied) {
            continue;
        }
        let theirs = measure(&task, &theirs, &applied, 100);
        let ours = found.unwrap().measure;
        assert!(
            ours.scale_percent >= theirs.scale_percent,
            "{ours:?} {theirs:?}"
        );
        assert!(
            ours.timer_rate_hz <= theirs.timer_rate_hz,
            "{ours:?} {theirs:?}"
        );
        assert!(
            ours.over_admission <= theirs.over_admission + 1e-9,
            "{ours:?} {theirs:?}"
        );
        let (_, knee) = tuned(&system, &platform, Options::default());
        assert!(knee.unwrap().measure.knee_key() <= theirs.knee_key());
    }
}

/// The corner has bursts as large as the deadline allows. The knee's longest delay is no longer
/// than that of the paper's choice, and its overhead is little above the corner's.
#[test]
fn the_knee_of_the_papers_sources_is_as_quick_as_the_papers_choice() {
    let platform = atmega128();
    let system = paper(vec![receiver(1, 400_000, 400_000, 20_000)]);
    let of = |options| tuned(&system, &platform, options).1.unwrap().measure;
    let (knee, corner) = (of(Options::default()), of(fewest()));
    let (task, _) = tuned(&system, &platform, fewest());
    let theirs = papers_plan();
    let theirs = measure(&task, &theirs, &theirs.apply(&system, &platform), 100);
    assert!(
        knee.longest_delay <= theirs.longest_delay,
        "{knee:?} {theirs:?}"
    );
    assert!(
        corner.longest_delay > theirs.longest_delay,
        "{corner:?} {theirs:?}"
    );
    assert!(
        knee.overhead < corner.overhead + 0.03,
        "{knee:?} {corner:?}"
    );
}

#[test]
fn rates_too_different_to_share_a_timer_get_timers_of_their_own() {
    let sources = vec![
        source(0, Some(5.0), None, 120),
        source(1, Some(5_000.0), None, 60),
        source(2, Some(4_000.0), None, 60),
    ];
    let system = system(
        16_000_000,
        sources,
        vec![receiver(1, 160_000, 40_000, 2_000)],
    );
    let platform = atmega128();
    let (_, found) = tuned(&system, &platform, Options::default());
    let found = found.unwrap();
    assert!(
        matches!(found.plan.choices[0].1, Choice::Own { .. }),
        "{found:?}"
    );
    assert_eq!(bursts(&found.plan).len(), 2, "{found:?}");
}

#[test]
fn a_stated_policy_stays() {
    let platform = atmega128();
    let mut sources = vec![
        source(0, Some(300.0), Some(900.0), 120),
        source(1, Some(200.0), None, 120),
    ];
    let offer = platform.channels[3]
        .offer(Policy::Bucket, Timing::Lazy)
        .unwrap();
    sources[0].limit.policy = Policy::Bucket;
    sources[0].limit.timing = Timing::Lazy;
    sources[0].limit.burst = 4;
    sources[0].limit.interval = Interval {
        ticks: 1_000,
        tick: 8,
    };
    sources[0].limit.costs = offer.costs[0];
    sources[0].limit.expiry = Some(weir_model::Expiry::Own {
        channel: "TIMER3A".to_owned(),
        level: platform.channels[3].level.clone(),
    });
    let system = system(
        4_000_000,
        sources,
        vec![receiver(1, 40_000, 40_000, 20_000)],
    );
    let (_, found) = tuned(&system, &platform, Options::default());
    let Choice::Own {
        policy,
        burst,
        setting,
        ..
    } = found.unwrap().plan.choices[0].1
    else {
        panic!("a bucket cannot be shared");
    };
    assert_eq!((policy, burst, setting.channel), (Policy::Bucket, 4, 3));
}

#[test]
fn what_cannot_hold_is_not_found() {
    let sources = vec![
        source(0, Some(30_000.0), None, 120),
        source(1, Some(10.0), None, 10),
    ];
    let system = system(
        4_000_000,
        sources,
        vec![receiver(1, 40_000, 40_000, 20_000)],
    );
    let platform = atmega128();
    let (task, found) = tuned(&system, &platform, Options::default());
    assert!(found.is_none() && !is_feasible(&task));
}

#[test]
fn interrupts_may_be_given_a_longest_delay_in_place_of_deadlines() {
    let system = paper(Vec::new());
    let platform = atmega128();
    let (_, free) = tuned(&system, &platform, fewest());
    let options = Options {
        longest_delay: Some(8_000),
        ..fewest()
    };
    let (_, bounded) = tuned(&system, &platform, options);
    let (free, bounded) = (free.unwrap().measure, bounded.unwrap().measure);
    assert!(free.longest_delay > Some(8_000) && bounded.longest_delay <= Some(8_000));
    assert!(free.timer_rate_hz < bounded.timer_rate_hz);
}

/// Systems of one task and sources; only their limits bound the sources.
fn small() -> impl Strategy<Value = System> {
    let rates = prop_oneof![
        (100.0..2_000.0_f64).prop_map(|expected| (Some(expected), None)),
        (100.0..4_000.0_f64).prop_map(|tolerated| (None, Some(tolerated))),
        (100.0..800.0_f64, 1.0..5.0_f64)
            .prop_map(|(expected, times)| (Some(expected), Some(expected * times))),
    ];
    let sources = prop::collection::vec((rates, 20..400_u64), 1..4);
    (sources, 2_000..80_000_u64, 0.05..0.6_f64).prop_map(|(sources, deadline, share)| {
        let sources = sources
            .into_iter()
            .zip(0..)
            .map(|(((expected, tolerated), handler), number)| {
                source(number, expected, tolerated, handler)
            })
            .collect();
        let wcet = (deadline as f64 * share) as u64;
        system(
            4_000_000,
            sources,
            vec![receiver(1, deadline, deadline, wcet)],
        )
    })
}

/// The system with worst rates of `times` the tolerated or expected rates; `None` removes them.
fn with_worst(mut system: System, times: Option<f64>) -> System {
    for source in &mut system.sources {
        let most = source.rates.tolerated.or(source.rates.expected).unwrap();
        source.rates.worst = times.map(|times| crate::tune::fixture::rate(most.hertz() * times));
    }
    system
}

/// The layout in which all sources share the timer, except for the first source if `apart` is true.
fn sharing(task: &TuningTask, apart: bool) -> Layout {
    let mut layout: Layout = task.tuned.iter().map(|tuned| tuned.ways[0]).collect();
    if apart && layout.len() > 1 {
        layout[0] = task.tuned[0].ways[1];
    }
    layout
}

/// The scales that the search may choose, the largest first.
fn scales(task: &TuningTask) -> impl Iterator<Item = Percent> + use<> {
    let scales = if task.is_scaled() { 1..=100 } else { 100..=100 };
    scales.rev()
}

/// The plans that hold at `scale` with a timer that all sources share. Its periods are the
/// multiples of 32 cycles, the longest first. This does not use the search's own code.
fn by_force(task: &TuningTask, scale: Percent) -> impl Iterator<Item = (LimitPlan, System)> {
    let clock = task.system.cpu.clock_hz;
    (1..2_000_u64).rev().filter_map(move |step| {
        let ticks = step * 32;
        let choices: Option<Vec<(usize, Choice)>> = task
            .tuned
            .iter()
            .map(|tuned| {
                let least = tuned.band.asked(scale) * ticks as f64 / clock as f64;
                let burst = (least - 1e-9).ceil().max(1.0) as u32;
                let effective = hertz(burst, ticks, clock);
                (burst <= 255 && effective <= tuned.band.most(scale))
                    .then_some((tuned.source, Choice::Shared { burst }))
            })
            .collect();
        let plan = LimitPlan {
            shared: Some(SharedTimer {
                timer: None,
                setting: Setting {
                    channel: 0,
                    interval: Interval::of_cycles(ticks),
                },
            }),
            choices: choices?,
        };
        let applied = plan.apply(task.system, task.platform);
        units_hold(&applied).then_some((plan, applied))
    })
}

proptest! {
    #![proptest_config(cases(8, 24))]

    #[test]
    fn what_is_found_holds_and_lies_in_its_bands_and_nothing_better_exists(system in small()) {
        let platform = atmega128();
        let (task, found) = tuned(&system, &platform, fewest());
        let (_, knee) = tuned(&system, &platform, Options::default());
        prop_assert_eq!(found.is_some(), knee.is_some());
        for found in found.iter().chain(&knee) {
            let scale = found.measure.scale_percent;
            prop_assert!(units_hold(&found.plan.apply(&system, &platform)));
            prop_assert!(is_in_band(&task, &found.plan, scale));
            prop_assert!(found.measure.over_admission <= 0.1 + 1e-9);
        }
        if let (Some(found), Some(knee)) = (&found, &knee) {
            for other in alternatives(&task, found) {
                prop_assert!(other.measure.key() >= found.measure.key(), "{:?} is better than {:?}", other, found);
                prop_assert!(units_hold(&other.plan.apply(&system, &platform)));
            }
            for other in alternatives(&task, knee) {
                prop_assert!(other.measure.knee_key() >= knee.measure.knee_key(), "{:?} is nearer than {:?}", other, knee);
            }
            for (plan, applied) in by_force(&task, knee.measure.scale_percent).step_by(5) {
                let other = measure(&task, &plan, &applied, knee.measure.scale_percent);
                prop_assert!(other.knee_key().1 * 102 / 100 >= knee.measure.knee_key().1, "{:?} is nearer than {:?}", plan, knee);
            }
        }
        let forced = scales(&task).find_map(|scale| Some((scale, by_force(&task, scale).next()?.0)));
        if let Some((scale, plan)) = forced {
            let ticks = plan.shared.unwrap().setting.interval.cycles();
            let found = found.expect("there are limits that hold");
            prop_assert!(found.measure.scale_percent >= scale, "{} against {}", found.measure.scale_percent, scale);
            if found.measure.scale_percent == scale {
                prop_assert!(found.measure.timer_rate_hz <= 4e6 / ticks as f64 + 1e-6);
            }
        }
    }

    /// The search for the window of periods relies on this: each of its two systems has less demand
    /// than the real one.
    #[test]
    fn what_holds_holds_with_bursts_alone_and_rates_alone(system in small(), worst in prop::option::of(0.5..20.0_f64), apart: bool) {
        let system = with_worst(system, worst);
        let platform = atmega128();
        let task = TuningTask::new(&system, &platform, Options::default(), &[]);
        let layout = sharing(&task, apart);
        for scale in [20, 60, 100] {
            for period in periods(&task, &layout, scale, BandRule::Ignored).into_iter().step_by(7) {
                let Some(plan) = plan(&task, &layout, scale, period, BandRule::Ignored) else { continue };
                if units_hold(&plan.apply(&system, &platform)) {
                    prop_assert!(units_hold(&bursts_alone(&task, &layout, scale, period)), "{} {}", scale, period);
                    prop_assert!(units_hold(&rates_alone(&task, &layout, scale, period)), "{} {}", scale, period);
                    prop_assert!(units_hold(&ideal(&task, scale)), "{} {}", scale, period);
                }
            }
        }
    }

    /// The search does not skip a part of a window that contains a plan which holds.
    #[test]
    fn what_holds_is_not_refuted_with_the_periods_around_it(system in small(), worst in prop::option::of(0.5..20.0_f64), apart: bool) {
        let system = with_worst(system, worst);
        let platform = atmega128();
        let task = TuningTask::new(&system, &platform, Options::default(), &[]);
        let layout = sharing(&task, apart);
        for scale in [20, 60, 100] {
            let plan = |period: u64| plan(&task, &layout, scale, period, BandRule::Ignored);
            let plans = periods(&task, &layout, scale, BandRule::Ignored).into_iter();
            let plans: Vec<LimitPlan> = plans.filter_map(plan).collect();
            for plans in plans.chunk_by(is_alike) {
                for (index, plan) in plans.iter().enumerate().step_by(7) {
                    if !units_hold(&plan.apply(&system, &platform)) {
                        continue;
                    }
                    for reach in [1, 5, 40] {
                        let longest = &plans[index.saturating_sub(reach)];
                        let shortest = &plans[(index + reach).min(plans.len() - 1)];
                        prop_assert!(!is_refuted(&task, longest, shortest), "{:?} {:?}", longest, shortest);
                    }
                }
            }
        }
    }

    /// The written result narrows the next search, which can then find better limits. A session
    /// searches again until nothing changes, so the sequence has to end.
    #[test]
    fn searches_from_their_own_results_end(system in small()) {
        let platform = atmega128();
        for options in [fewest(), Options::default()] {
            let mut now = system.clone();
            let is_end = (0..=MOST_ROUNDS).any(|_| {
                let next = tuned(&now, &platform, options.clone()).1;
                let next = next.map(|found| found.plan.apply(&now, &platform));
                let is_end = next.as_ref().is_none_or(|next| *next == now);
                now = next.unwrap_or_else(|| now.clone());
                is_end
            });
            prop_assert!(is_end, "{:?} changes for ever", options);
        }
    }
}
