// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks the reader of system files what a file's processor offers for the limits of its sources.

use weir_model::{EventCosts, Hardware, LimiterShape, Place, Policy, System, with_hardware};

use crate::tune::band::Band;
use crate::tune::plan::Arrangement;
use crate::tune::platform::{Offer, Platform, SharedOffer, TimerChannel, TimerCounter};
use crate::tune::task::ways;

/// What a file's processor offers for limits.
#[derive(Debug, Default)]
pub struct Answers {
    /// The counters and channels of the processor.
    pub platform: Platform,
    /// The sources that no timer can limit, because the port does not limit their interrupts. The
    /// values are indices in [`System::sources`].
    pub out_of_reach: Vec<usize>,
    /// The costs that the file has to state before its sources can have some further limiters.
    pub missing_costs: Vec<String>,
    /// Whether several sources need limits on a port that can limit only one source, or several on
    /// one shared timer. If so, only the shared timer is offered.
    pub only_shared: bool,
}

/// Finds the timers that the processor of the file `text`, whose system is `system`, offers for the
/// limits of its sources. Sources in `off`, whose limits the file turns off, are not included.
#[must_use]
pub fn ask(text: &str, system: &System, off: &[usize]) -> Answers {
    with_hardware(text, |hardware| answers(hardware, system, off)).unwrap_or_default()
}

fn answers(hardware: &Hardware<'_>, system: &System, off: &[usize]) -> Answers {
    let mut wanted: Vec<(Arrangement, LimiterShape)> = Vec::new();
    for way in system.sources.iter().flat_map(|source| ways(&source.limit)) {
        if let Some(limiter) = limiter(way).filter(|_| wanted.iter().all(|of| of.0 != way)) {
            wanted.push((way, limiter));
        }
    }
    let answers = offered(hardware, system, &wanted);
    let is_limited = |&source: &usize| {
        let of = system.sources.get(source);
        !off.contains(&source)
            && !answers.out_of_reach.contains(&source)
            && of.is_some_and(|of| {
                of.limit.place == Place::Software
                    && (of.limit.policy != Policy::Off || Band::new(&of.rates, 0.0).is_some())
            })
    };
    let sources = 0..system.sources.len();
    if !hardware.limits_one() || sources.filter(is_limited).count() < 2 {
        return answers;
    }
    wanted.retain(|&(_, limiter)| limiter == LimiterShape::Shared);
    Answers {
        only_shared: true,
        ..offered(hardware, system, &wanted)
    }
}

/// The channels and costs that the processor offers for limiters of these shapes.
fn offered(
    hardware: &Hardware<'_>,
    system: &System,
    wanted: &[(Arrangement, LimiterShape)],
) -> Answers {
    let shapes = wanted.iter().map(|&(_, limiter)| limiter);
    let mut answers = Answers {
        missing_costs: shapes
            .filter_map(|limiter| hardware.missing_costs(limiter))
            .collect(),
        ..Answers::default()
    };
    let mut within_reach = vec![false; system.sources.len()];
    for (index, of) in hardware.channels().enumerate() {
        let counters = &mut answers.platform.counters;
        if counters.last().is_none_or(|last| last.name != of.counter) {
            counters.push(TimerCounter {
                name: of.counter.to_owned(),
                kind: counters.len(),
            });
        }
        let mut channel = TimerChannel {
            name: of.name.to_owned(),
            timer: system.cpu.board.is_none().then(|| of.name.to_owned()),
            counter: counters.len() - 1,
            level: of.level.clone(),
            limits: of.limits,
            clock_cycles: of.clock_cycles,
            own: Vec::new(),
            shared: None,
        };
        for &(way, limiter) in wanted {
            let ranges = hardware.ranges(index, limiter);
            let costs: Vec<Option<EventCosts>> = (0..system.sources.len())
                .map(|source| hardware.costs(source, index, limiter))
                .collect();
            if ranges.is_empty() || costs.iter().all(Option::is_none) {
                continue;
            }
            for ((source, costs), reached) in
                system.sources.iter().zip(&costs).zip(&mut within_reach)
            {
                *reached |= costs.is_some() && ways(&source.limit).contains(&way);
            }
            let costs = costs.into_iter().map(Option::unwrap_or_default).collect();
            match limiter {
                LimiterShape::Shared => {
                    channel.shared = Some(SharedOffer {
                        costs,
                        base: hardware.base(index),
                        bits: of.bits,
                        ranges,
                    });
                }
                LimiterShape::Own(policy, timing, _) => channel.own.push(Offer {
                    policy,
                    timing,
                    costs,
                    lag: 0,
                    bits: of.bits,
                    ranges,
                }),
            }
        }
        if channel.shared.is_some() || !channel.own.is_empty() {
            answers.platform.channels.push(channel);
        }
    }
    answers.platform.tell_kinds();
    answers.out_of_reach = (0..system.sources.len())
        .filter(|&source| {
            let of = system.sources.get(source);
            let in_software = of.is_none_or(|of| !ways(&of.limit).contains(&Arrangement::Hardware));
            in_software && within_reach.get(source) != Some(&true)
        })
        .collect();
    answers
}

/// The limiter that an arrangement needs on a channel; `None` if it needs no channel.
fn limiter(way: Arrangement) -> Option<LimiterShape> {
    match way {
        Arrangement::Shared => Some(LimiterShape::Shared),
        Arrangement::Own(policy, timing, burst) => Some(LimiterShape::Own(policy, timing, burst)),
        Arrangement::Hardware => None,
    }
}
