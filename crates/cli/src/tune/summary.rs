// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result as data, from which the text, the JSON and the plot are made.
use serde::Serialize;
use weir_analysis::check::has_flow_deadlines;
use weir_analysis::tune::{
    Aim, Choice, Measure, MeasureKey, Outcome, Session, TuningSolution, TuningTask, hertz,
};
use weir_model::{Expiry, Limit, Place, Policy, System};

use super::conflict;

/// A tuned system.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// Name of the system in its file.
    pub system: String,
    /// The processor's clock in cycles per second.
    pub clock_hz: u64,
    /// Whether the limits differ from those in the file.
    pub changed: bool,
    /// Whether any source states a tolerated rate. Otherwise the scale has no meaning.
    pub scaled: bool,
    /// The measure by which the limits were chosen.
    pub measure: Measure,
    /// The sources with their limits.
    pub sources: Vec<TunedSource>,
    /// The timers that sources share.
    pub timers: Vec<TunedTimer>,
    /// The Pareto-optimal choices (no other choice has both less overhead and a shorter delay) and
    /// the chosen one, sorted by longest delay.
    pub front: Vec<Alternative>,
    /// The limits in the file. `None` unless every source has one and all deadlines hold with them.
    pub before: Option<Alternative>,
    /// Whether any deadline limits the bursts.
    pub has_deadlines: bool,
    /// The sources that do not state their work per interrupt. If there are any, nothing is proven.
    pub without_max_work: Vec<String>,
    /// The sources whose rate could be limited if a timer could reach their interrupt.
    pub out_of_reach: Vec<String>,
    /// Why no timer can reach the sources `out_of_reach`. `None` if there are none.
    pub not_reached: Option<String>,
    /// The timers in the file that no limit uses any more.
    pub idle_timers: Vec<String>,
    /// The bursts in the file that had to be lowered.
    pub lowered: Vec<BurstChange>,
    /// Why some limiters were not tried. `None` if all were tried.
    pub not_tried: Option<String>,
    /// The criterion by which one of the limits at the largest scale was chosen.
    #[serde(skip)]
    pub aim: Aim,
}

/// A burst that had to be lowered.
#[derive(Debug, Serialize)]
pub(super) struct BurstChange {
    pub name: String,
    pub stated: u32,
    pub burst: u32,
}

/// A source with its limit.
#[derive(Debug, Serialize)]
pub(super) struct TunedSource {
    pub name: String,
    pub asked_hz: f64,
    pub effective_hz: f64,
    pub over_admission: f64,
    pub policy: &'static str,
    pub timing: &'static str,
    pub in_hardware: bool,
    pub burst: u32,
    pub interval_cycles: u64,
    /// The shared timer of the source. `None` if the source has a timer channel of its own.
    pub timer: Option<String>,
    pub channel: Option<String>,
    pub prescaler: u64,
}

/// A shared timer.
#[derive(Debug, Serialize)]
pub(super) struct TunedTimer {
    pub name: String,
    pub channel: String,
    pub rate_hz: f64,
    pub period_cycles: u64,
    pub prescaler: u64,
}

/// Another possible choice.
#[derive(Debug, Serialize)]
pub(super) struct Alternative {
    #[serde(flatten)]
    pub measure: Measure,
    /// The limits in words: the sources that share a timer, and the sources with their own
    /// limiters.
    pub limits: String,
    pub chosen: bool,
}

impl Summary {
    pub(super) fn new(session: &Session, tuned: &Outcome, changed: bool) -> Self {
        let task = session.task();
        let system = &tuned.system;
        let scale = tuned.found.measure.scale_percent;
        let sources = task
            .tuned
            .iter()
            .filter_map(|of| {
                let source = system.sources.get(of.source)?;
                Some(self::source(
                    &source.name,
                    &source.limit,
                    system,
                    of.band.asked(scale),
                ))
            })
            .collect();
        let used = |timer: usize| {
            system
                .sources
                .iter()
                .any(|source| source.limit.expiry == Some(Expiry::Shared(timer)))
        };
        let clears = |timer: &usize| {
            let timer = system.timers.get(*timer);
            timer.is_some_and(|timer| !system.is_alarm(timer))
        };
        let all = (0..system.timers.len()).filter(clears);
        let (timers, idle): (Vec<usize>, Vec<usize>) = all.partition(|&timer| used(timer));
        Self {
            system: system.name.clone(),
            clock_hz: system.cpu.clock_hz,
            changed,
            scaled: task.is_scaled(),
            measure: tuned.found.measure,
            sources,
            timers: timers
                .into_iter()
                .filter_map(|timer| system.timers.get(timer))
                .map(|timer| TunedTimer {
                    name: timer.name.clone(),
                    channel: timer.channel.clone(),
                    rate_hz: hertz(1, timer.period.cycles(), system.cpu.clock_hz),
                    period_cycles: timer.period.cycles(),
                    prescaler: timer.period.tick,
                })
                .collect(),
            front: front(&task, tuned),
            before: tuned.before.as_ref().map(|found| Alternative {
                measure: found.measure,
                limits: words(&task, found),
                chosen: false,
            }),
            not_reached: conflict::not_reached(session),
            out_of_reach: session
                .out_of_reach()
                .filter_map(|index| system.sources.get(index))
                .map(|source| source.name.clone())
                .collect(),
            has_deadlines: has_flow_deadlines(system)
                || system.receivers.iter().any(|of| of.deadline.is_some())
                || system.sources.iter().any(|of| of.deadline.is_some()),
            without_max_work: system
                .sources
                .iter()
                .filter(|source| source.max_work.is_none())
                .map(|source| source.name.clone())
                .collect(),
            lowered: tuned
                .lowered
                .iter()
                .filter_map(|of| {
                    Some(BurstChange {
                        name: system.sources.get(of.source)?.name.clone(),
                        stated: of.stated,
                        burst: of.burst,
                    })
                })
                .collect(),
            not_tried: conflict::not_tried(session),
            aim: task.options.aim,
            idle_timers: idle
                .into_iter()
                .filter_map(|timer| system.timers.get(timer))
                .map(|timer| timer.name.clone())
                .collect(),
        }
    }
}

fn source(name: &str, limit: &Limit, system: &System, asked_hz: f64) -> TunedSource {
    let requests = match limit.policy {
        Policy::Bursty => limit.burst,
        _ => 1,
    };
    let effective_hz = hertz(requests, limit.interval.cycles(), system.cpu.clock_hz);
    let timer = |timer: &usize| system.timers.get(*timer);
    let (timer, channel) = match &limit.expiry {
        Some(Expiry::Own { channel, .. }) => (None, Some(channel.clone())),
        Some(Expiry::Shared(of)) => (
            timer(of).map(|of| of.name.clone()),
            timer(of).map(|of| of.channel.clone()),
        ),
        None => (None, None),
    };
    TunedSource {
        name: name.to_owned(),
        asked_hz,
        effective_hz,
        over_admission: effective_hz / asked_hz - 1.0,
        policy: limit.policy.name(),
        timing: limit.timing.name(),
        in_hardware: limit.place == Place::Hardware,
        burst: limit.burst,
        interval_cycles: limit.interval.cycles(),
        timer,
        prescaler: channel.as_deref().map_or(limit.interval.tick, |channel| {
            system.prescaler(channel, limit.interval.tick)
        }),
        channel,
    }
}

/// Returns the Pareto-optimal choices and the chosen one.
fn front(task: &TuningTask, tuned: &Outcome) -> Vec<Alternative> {
    let mut all: Vec<&TuningSolution> = tuned.alternatives.iter().collect();
    let chosen: MeasureKey = tuned.found.measure.key();
    all.push(&tuned.found);
    // The choices are sorted by delay, then by cost. A choice is dominated unless it is cheaper
    // than all earlier ones, which have shorter delays.
    all.sort_by(|a, b| {
        let delay = |of: &TuningSolution| of.measure.longest_delay.unwrap_or(u64::MAX);
        delay(a)
            .cmp(&delay(b))
            .then(a.measure.overhead.total_cmp(&b.measure.overhead))
            .then(a.measure.key().cmp(&b.measure.key()))
    });
    let mut cheapest = f64::INFINITY;
    let mut front: Vec<Alternative> = Vec::new();
    let mut has_chosen = false;
    for found in all {
        let is_chosen = found.measure.key() == chosen && !has_chosen;
        let is_cheaper = found.measure.overhead < cheapest * (1.0 - LEAST_GAIN);
        if is_cheaper || is_chosen {
            cheapest = cheapest.min(found.measure.overhead);
            has_chosen |= is_chosen;
            front.push(Alternative {
                measure: found.measure,
                limits: words(task, found),
                chosen: is_chosen,
            });
        }
    }
    front
}

/// The least relative saving of overhead of a row compared with the row before it.
const LEAST_GAIN: f64 = 0.02;

/// Describes the limits in words: `3 on a timer of 110 Hz (bursts 3, 2, 7); uart strict`.
fn words(task: &TuningTask, found: &TuningSolution) -> String {
    let mut parts = Vec::new();
    let bursts: Vec<String> = found
        .plan
        .choices
        .iter()
        .filter_map(|(_, choice)| match choice {
            Choice::Shared { burst } => Some(burst.to_string()),
            _ => None,
        })
        .collect();
    if let Some(shared) = found.plan.shared {
        let rate = hertz(
            1,
            shared.setting.interval.cycles(),
            task.system.cpu.clock_hz,
        );
        parts.push(format!(
            "shared timer {}: {}",
            weir_report::rate(rate, 4),
            bursts.join(", ")
        ));
    }
    for (index, choice) in &found.plan.choices {
        let name = task
            .system
            .sources
            .get(*index)
            .map_or("", |source| source.name.as_str());
        match choice {
            Choice::Own {
                policy: policy @ (Policy::Bursty | Policy::Bucket),
                burst,
                ..
            } => parts.push(format!("{name} {} {burst}", policy.name())),
            Choice::Own { policy, .. } => {
                parts.push(format!("{name} {}", policy.name()));
            }
            Choice::Hardware { .. } => parts.push(format!("{name} in hardware")),
            Choice::Shared { .. } => {}
        }
    }
    parts.join("; ")
}
