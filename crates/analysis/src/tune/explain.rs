// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explains why no limits suffice: finds a set of demands that cannot all be kept, but of which all
//! others can be kept once any one is dropped.
//!
//! This is the deletion filter of Chinneck and Dravnieks ("Locating minimal infeasible constraint
//! sets in linear programs", ORSA Journal on Computing 3, 1991). It drops one demand after the
//! other, and leaves a demand out for good if the rest is still infeasible.

use weir_model::{Place, Policy, Rate, Source, System};

use crate::tune::search::{is_conceivable, is_feasible};
use crate::tune::task::{Options, TuningTask};
use crate::tune::window::{NEVER, evenly};

/// A demand on a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// The deadline of the receiver with this index in [`System::receivers`].
    TaskDeadline(usize),
    /// The deadline of the handler of the source with this index in [`System::sources`].
    HandlerDeadline(usize),
    /// The deadline of the packets of the flow with this index in [`System::flows`].
    FlowDeadline(usize),
    /// The rate at which the source with this index in [`System::sources`] is to be served: the
    /// expected rate or, if the source states none, a hundredth of the tolerated rate.
    Rate(usize),
}

/// Demands that cannot be kept together, and the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    /// Demands that fail together; without any one of them, the others could be kept. Deadlines
    /// come first; otherwise the order is that of the file. Empty if the demands are not the
    /// reason.
    pub demands: Vec<Demand>,
    /// Whether the demands could be kept if limiters cost nothing and could have any rate. If so,
    /// only the timers are insufficient.
    pub for_want_of_timers: bool,
    /// Changes that are each sufficient alone: with any one of them, limits exist that keep every
    /// deadline.
    pub remedies: Vec<Remedy>,
}

/// A change of the system or of the options with which feasible limits exist.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Remedy {
    /// Drop the rate that the user requires of the shared timer.
    AnyTimerRate,
    /// Raise the longest delay to this number of cycles.
    LongestDelay(u64),
    /// Set the deadline of this demand to this number of cycles.
    Deadline(Demand, u64),
    /// Set the expected rate of the source with this index to this number of hertz.
    Expected(usize, f64),
    /// Set the rate of the flow with this index to this number of hertz.
    FlowRate(usize, f64),
    /// Shorten the handler of the source with this index to this number of cycles.
    Handler(usize, u64),
    /// Shorten the WCET of the receiver with this index to this number of cycles.
    Wcet(usize, u64),
    /// Give all tuned sources the priority of the source with this index, so that one timer can
    /// limit all of them.
    PriorityOf(usize),
    /// Use the flavour of the port in which every limit can have its own channel
    /// ([`OTHER_FLAVOUR`](crate::tune::OTHER_FLAVOUR)).
    OtherFlavour,
    /// Move the limit of the source with this index to hardware.
    InHardware(usize),
    /// Move the limit of the source with the first index to the timer channel with the second index
    /// in [`Platform::channels`](crate::tune::Platform::channels).
    OtherTimer(usize, usize),
    /// Raise the over-admission to this share: 0.1 is 10 %.
    OverAdmission(f64),
}

/// Tells whether the file has feasible limits with this change. It is called for changes that the
/// reader of the file may refuse.
pub type Trial<'a> = &'a dyn Fn(Remedy) -> bool;

/// Finds demands of an infeasible task that fail together. `keep` is the argument with which the
/// task was made ([`TuningTask::new`]).
#[must_use]
pub fn explain(task: &TuningTask, keep: &[usize], is_enough: Trial) -> Conflict {
    let system = task.system;
    let tuned: Vec<usize> = task.tuned.iter().map(|tuned| tuned.source).collect();
    let mut demands: Vec<Demand> = deadlines(system);
    demands.extend(tuned.iter().map(|&source| Demand::Rate(source)));
    let is_feasible_with = |demands: &[Demand]| {
        let (relaxed, keep) = relaxed(system, demands, &tuned, keep);
        is_feasible(&task.with(&relaxed, &keep))
    };
    if !is_feasible_with(&[]) {
        return Conflict {
            demands: Vec::new(),
            for_want_of_timers: false,
            remedies: remedies(task, &[], keep, is_enough),
        };
    }
    // A demand that is tried early is the likeliest to be dropped. The rarest causes therefore come
    // first, so that the common ones remain.
    let mut index = 0;
    while index < demands.len() {
        let mut fewer = demands.clone();
        fewer.remove(index);
        if is_feasible_with(&fewer) {
            index += 1;
        } else {
            demands = fewer;
        }
    }
    let stays = keep;
    let (relaxed, keep) = relaxed(system, &demands, &tuned, keep);
    Conflict {
        for_want_of_timers: is_conceivable(&task.with(&relaxed, &keep)),
        remedies: remedies(task, &demands, stays, is_enough),
        demands,
    }
}

/// The largest over-admission that is tried, as a share.
const MOST_OVER_ADMISSION: f64 = 5.0;
/// The step between over-admissions that are tried: a hundredth of a percent.
const OVER_ADMISSION_STEP: f64 = 1e-4;
/// The largest factor by which a remedy changes a value of the system. A larger change would
/// describe another system.
const MOST_FACTOR: f64 = 64.0;
/// The largest factor by which a remedy changes an option. An option may be far from any possible
/// value, so this is larger than [`MOST_FACTOR`].
const MOST_OPTION_FACTOR: f64 = 1e6;
/// The most tasks for which a shorter WCET is tried.
const MOST_TASKS: usize = 8;

/// The changes that are sufficient, each tried on the whole system.
fn remedies(
    task: &TuningTask,
    demands: &[Demand],
    keep: &[usize],
    is_enough: Trial,
) -> Vec<Remedy> {
    let options = &task.options;
    let clock = task.system.cpu.clock_hz;
    let with_options = |options: Options| {
        is_feasible(&TuningTask {
            accepts: task.accepts,
            ..TuningTask::new(task.system, task.platform, options, keep)
        })
    };
    let with = |change: &dyn Fn(&mut System)| {
        let mut system = task.system.clone();
        change(&mut system);
        is_feasible(&task.with(&system, keep))
    };
    let mut found = Vec::new();
    if options.timer_rate.is_some() {
        let freed = Options {
            timer_rate: None,
            ..options.clone()
        };
        found.extend(with_options(freed).then_some(Remedy::AnyTimerRate));
    }
    if let Some(delay) = options.longest_delay {
        let longest_delay = |cycles: u64| Options {
            longest_delay: Some(cycles),
            ..options.clone()
        };
        let least = least_above(delay, clock, MOST_OPTION_FACTOR, |cycles| {
            with_options(longest_delay(cycles))
        });
        found.extend(least.map(Remedy::LongestDelay));
    }
    for &demand in demands {
        let remedy = match demand {
            Demand::TaskDeadline(_) | Demand::HandlerDeadline(_) | Demand::FlowDeadline(_) => {
                deadline(task.system, demand)
                    .and_then(|stated| {
                        least_above(stated, clock, MOST_FACTOR, |cycles| {
                            with(&|system| set_deadline(system, demand, cycles))
                        })
                    })
                    .map(|cycles| Remedy::Deadline(demand, cycles))
            }
            Demand::Rate(source) => task
                .system
                .sources
                .get(source)
                .and_then(|of| of.rates.expected)
                .and_then(|stated| {
                    most_below(stated.hertz(), |hertz| {
                        is_enough(Remedy::Expected(source, hertz))
                    })
                })
                .map(|hertz| Remedy::Expected(source, hertz)),
        };
        found.extend(remedy);
    }
    for &demand in demands {
        let Demand::FlowDeadline(flow) = demand else {
            continue;
        };
        let stated = task.system.flows.get(flow).and_then(|of| of.rate);
        let rarer = stated.and_then(|stated| {
            most_below(stated.hertz(), |hertz| {
                with(&|system| {
                    if let Some(of) = system.flows.get_mut(flow) {
                        of.rate = Rate::from_hertz(hertz).ok();
                    }
                })
            })
        });
        found.extend(rarer.map(|hertz| Remedy::FlowRate(flow, hertz)));
    }
    for &demand in demands {
        let Demand::Rate(source) = demand else {
            continue;
        };
        let Some(of) = task.system.sources.get(source) else {
            continue;
        };
        let shorter = most_below(of.handler.cycles as f64, |cycles| {
            with(&|system| {
                if let Some(of) = system.sources.get_mut(source) {
                    of.handler.cycles = cycles as u64;
                }
            })
        });
        found.extend(shorter.map(|cycles| Remedy::Handler(source, cycles as u64)));
    }
    for index in delaying(task.system, demands) {
        let stated = (task.system.receivers.get(index)).map_or(0, |of| of.wcet.cycles);
        let shorter = most_below(stated as f64, |cycles| {
            with(&|system| {
                if let Some(of) = system.receivers.get_mut(index) {
                    of.wcet.cycles = cycles as u64;
                }
            })
        });
        found.extend(shorter.map(|cycles| Remedy::Wcet(index, cycles as u64)));
    }
    found.extend(other_timers(task, demands, keep));
    found.extend(Some(Remedy::OtherFlavour).filter(|&remedy| is_enough(remedy)));
    found.extend(one_priority(task, is_enough));
    found.extend(in_hardware(task, demands, is_enough));
    if demands.iter().any(|of| matches!(of, Demand::Rate(_))) {
        let over_admission = least_over_admission(options.over_admission, |over_admission| {
            with_options(Options {
                over_admission,
                ..options.clone()
            })
        });
        found.extend(over_admission.map(Remedy::OverAdmission));
    }
    found
}

/// The tasks that delay the demanded deadlines, in ascending urgency. Shorter WCETs of these tasks
/// help.
fn delaying(system: &System, demands: &[Demand]) -> Vec<usize> {
    let demanded = demands.iter().filter_map(|demand| match demand {
        Demand::TaskDeadline(index) => system.receivers.get(*index),
        Demand::FlowDeadline(index) => {
            let flow = system.flows.get(*index);
            flow.and_then(|flow| system.receivers.get(flow.receiver))
        }
        Demand::HandlerDeadline(_) | Demand::Rate(_) => None,
    });
    let Some(urgency) = demanded.map(|of| of.urgency).min() else {
        return Vec::new();
    };
    let receivers = system.receivers.iter().enumerate();
    // Kernel threads are among the receivers, but they are not in the file.
    let is_thread = |index: usize| system.linux.threads.iter().any(|of| of.receiver == index);
    let mut tasks: Vec<(usize, u8)> = receivers
        .filter(|&(index, of)| of.wcet.cycles > 0 && of.urgency >= urgency && !is_thread(index))
        .map(|(index, of)| (index, of.urgency))
        .collect();
    tasks.sort_by_key(|&(_, urgency)| urgency);
    tasks.truncate(MOST_TASKS);
    tasks.into_iter().map(|(index, _)| index).collect()
}

/// The least over-admission above `stated`, in steps, for which `holds` is true. `holds` stays true
/// for larger values.
fn least_over_admission(stated: f64, holds: impl Fn(f64) -> bool) -> Option<f64> {
    let steps = |share: f64| (share / OVER_ADMISSION_STEP).floor() as u64;
    let share = |steps: u64| steps as f64 * OVER_ADMISSION_STEP;
    let (mut fails, mut held) = (steps(stated), steps(MOST_OVER_ADMISSION));
    if held <= fails || !holds(share(held)) {
        return None;
    }
    while held - fails > 1 {
        let middle = fails + (held - fails) / 2;
        if holds(share(middle)) {
            held = middle;
        } else {
            fails = middle;
        }
    }
    Some(share(held))
}

/// For each limit whose channel the file states, the first channel on another counter that is
/// sufficient. A channel is tried with the demands alone first, which is quicker: a channel that
/// does not help there does not help the whole system.
fn other_timers(task: &TuningTask, demands: &[Demand], keep: &[usize]) -> Vec<Remedy> {
    let tuned: Vec<usize> = task.tuned.iter().map(|tuned| tuned.source).collect();
    let (relaxed, kept) = relaxed(task.system, demands, &tuned, keep);
    let relaxed = task.with(&relaxed, &kept);
    let counter = |index: usize| Some(task.platform.channels.get(index)?.counter);
    let others = |stated: usize| {
        let mut seen = vec![counter(stated)];
        let channels = 0..task.platform.channels.len();
        channels.filter(move |&index| {
            let is_new = !seen.contains(&counter(index));
            seen.push(counter(index));
            is_new
        })
    };
    let holds_with = |task: &TuningTask, source: usize, channel: usize| {
        let mut moved = task.clone();
        let of_source = moved.tuned.iter_mut().filter(|of| of.source == source);
        of_source.for_each(|of| of.channel = Some(channel));
        is_feasible(&moved)
    };
    let demanded = relaxed.tuned.iter();
    demanded
        .filter_map(|of| {
            let channel = others(of.channel?).find(|&channel| {
                holds_with(&relaxed, of.source, channel) && holds_with(task, of.source, channel)
            })?;
            Some(Remedy::OtherTimer(of.source, channel))
        })
        .collect()
}

/// One priority for all tuned sources, if their priorities differ. The result names the first
/// source whose priority is sufficient.
fn one_priority(task: &TuningTask, is_enough: Trial) -> Option<Remedy> {
    let group = |index: usize| Some(task.system.sources.get(index)?.level.group);
    let tuned = task.tuned.iter().map(|of| of.source);
    let first = group(tuned.clone().next()?)?;
    tuned.clone().find(|&of| group(of) != Some(first))?;
    let mut remedies = tuned.map(Remedy::PriorityOf);
    remedies.find(|&remedy| is_enough(remedy))
}

/// Moves to hardware that are sufficient, one limit at a time. Candidates are the sources whose
/// rates are demanded, and the sources that state a rate but have no limit, either because no timer
/// can limit them or because the file turns the limit off.
fn in_hardware(task: &TuningTask, demands: &[Demand], is_enough: Trial) -> Vec<Remedy> {
    if task.options.timer_rate.is_some() {
        return Vec::new();
    }
    let sources = task.system.sources.iter().enumerate();
    let unlimited = |of: &Source| {
        of.limit.policy == Policy::Off
            && (of.rates.expected.is_some() || of.rates.tolerated.is_some())
    };
    sources
        .filter(|&(source, of)| {
            of.limit.place != Place::Hardware
                && (demands.contains(&Demand::Rate(source)) || unlimited(of))
        })
        .map(|(source, _)| Remedy::InHardware(source))
        .filter(|&remedy| is_enough(remedy))
        .collect()
}

/// The least number of cycles above `stated` for which `holds` is true, rounded to seconds of three
/// digits. `None` if there is none up to `most_factor` times `stated`. `holds` stays true for
/// larger values.
fn least_above(
    stated: u64,
    clock_hz: u64,
    most_factor: f64,
    holds: impl Fn(u64) -> bool,
) -> Option<u64> {
    let rounded = |factor: f64| {
        let seconds = stated as f64 * factor / clock_hz as f64;
        let step = 10_f64.powf(seconds.log10().floor() - 2.0);
        ((seconds / step).ceil() * step * clock_hz as f64) as u64
    };
    let factor = nearest(most_factor, |factor| holds(rounded(factor)))?;
    Some(rounded(factor))
}

/// The largest number below `stated`, to three digits, for which `holds` is true. `None` if there
/// is none down to `stated` / [`MOST_FACTOR`]. `holds` stays true for smaller values.
fn most_below(stated: f64, holds: impl Fn(f64) -> bool) -> Option<f64> {
    let rounded = |factor: f64| {
        let value = stated / factor;
        let step = 10_f64.powf(value.log10().floor() - 2.0);
        // The addend keeps a rounding error from costing a whole step.
        (value / step + 1e-9).floor() * step
    };
    let factor = nearest(MOST_FACTOR, |factor| holds(rounded(factor)))?;
    Some(rounded(factor))
}

/// The least factor up to `most`, to about a percent, for which `holds` is true; `None` if it is
/// not true for `most`.
fn nearest(most: f64, holds: impl Fn(f64) -> bool) -> Option<f64> {
    if !holds(most) {
        return None;
    }
    let (mut fails, mut held) = (1.0_f64, most);
    while held / fails > 1.01 {
        let middle = (fails * held).sqrt();
        if holds(middle) {
            held = middle;
        } else {
            fails = middle;
        }
    }
    Some(held)
}

fn deadline(system: &System, demand: Demand) -> Option<u64> {
    match demand {
        Demand::TaskDeadline(index) => system.receivers.get(index)?.deadline,
        Demand::HandlerDeadline(index) => system.sources.get(index)?.deadline,
        Demand::FlowDeadline(index) => system.flows.get(index)?.deadline,
        Demand::Rate(_) => None,
    }
}

fn set_deadline(system: &mut System, demand: Demand, cycles: u64) {
    let place = match demand {
        Demand::TaskDeadline(index) => system.receivers.get_mut(index).map(|of| &mut of.deadline),
        Demand::HandlerDeadline(index) => system.sources.get_mut(index).map(|of| &mut of.deadline),
        Demand::FlowDeadline(index) => system.flows.get_mut(index).map(|of| &mut of.deadline),
        Demand::Rate(_) => None,
    };
    if let Some(place) = place {
        *place = Some(cycles);
    }
}

fn deadlines(system: &System) -> Vec<Demand> {
    let of_tasks = system.receivers.iter().enumerate();
    let of_handlers = system.sources.iter().enumerate();
    let of_flows = system.flows.iter().enumerate();
    of_tasks
        .filter(|(_, receiver)| receiver.deadline.is_some())
        .map(|(index, _)| Demand::TaskDeadline(index))
        .chain(
            of_handlers
                .filter(|(_, source)| source.deadline.is_some())
                .map(|(index, _)| Demand::HandlerDeadline(index)),
        )
        .chain(
            of_flows
                .filter(|(_, flow)| flow.deadline.is_some())
                .map(|(index, _)| Demand::FlowDeadline(index)),
        )
        .collect()
}

/// The system with only `demands`, and the indices of the sources that are then not tuned. A source
/// whose rate is not among the demands never interrupts.
fn relaxed(
    system: &System,
    demands: &[Demand],
    tuned: &[usize],
    keep: &[usize],
) -> (System, Vec<usize>) {
    let mut relaxed = system.clone();
    let mut keep = keep.to_vec();
    for (index, receiver) in relaxed.receivers.iter_mut().enumerate() {
        if !demands.contains(&Demand::TaskDeadline(index)) {
            receiver.deadline = None;
        }
    }
    for (index, source) in relaxed.sources.iter_mut().enumerate() {
        if !demands.contains(&Demand::HandlerDeadline(index)) {
            source.deadline = None;
        }
        if tuned.contains(&index) && !demands.contains(&Demand::Rate(index)) {
            evenly(source, NEVER);
            source.limit.expiry = None;
            keep.push(index);
        }
    }
    for (index, flow) in relaxed.flows.iter_mut().enumerate() {
        let is_silent = tuned.contains(&flow.source) && keep.contains(&flow.source);
        if is_silent || !demands.contains(&Demand::FlowDeadline(index)) {
            flow.deadline = None;
        }
    }
    (relaxed, keep)
}
