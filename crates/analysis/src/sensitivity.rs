// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far each source's rate could rise before the first deadline breaks.
//!
//! In the sense of Bini, Di Natale and Buttazzo ("Sensitivity analysis for fixed-priority real-time systems", Real-Time Systems 39, 2008), along the rate of one
//! source at a time: responses only grow with a rate, so bisection is exact. A system of a thousand sources would need ten thousand analyses; there each source
//! gets a lower bound, from windows that were found once ([`crate::slack`]).

use weir_model::{Expiry, Place, Policy, Rate, Source, System};

use crate::analysis::{Analysis, each};
use crate::check::{first_miss, has_flow_deadlines, keeps_deadlines};
use crate::slack::Slack;
use crate::units::Part;

/// How far one source's rate could change.
#[derive(Debug, Clone, PartialEq)]
pub struct Headroom {
    /// Index in [`System::sources`].
    pub source: usize,
    /// By what the rate that the source's limit lets through (its worst rate, if it has no limit) could be multiplied, all else alike, with every deadline
    /// kept. Below 1: it would have to be so much less. None: however fast, no deadline breaks.
    pub factor: Option<f64>,
    /// The unit whose deadline breaks first beyond that, or the bottom half of the flow whose does; none if none does, or if none can be told apart.
    pub binding: Option<Part>,
    /// Is it the largest such factor, or only one that is safe?
    pub exact: bool,
}

/// What of a source is changed to change its rate. Each counts upwards from the loosest setting.
#[derive(Debug, Clone, Copy)]
enum Knob {
    /// Cycles of the interval of the source's own limiter.
    Interval(u64),
    /// Cycles between two requests of a source without limit.
    Interarrival(u64),
    /// Requests per period of a shared timer.
    Burst(u32),
}

/// The least rate that is tried in search of one that holds, as a share of today's.
const LEAST_SHARE: u64 = 1 << 12;
/// The largest burst that is tried.
const MOST_BURST: u64 = 1 << 20;
/// Systems of more than so many (sources x units x units) get lower bounds: about half a second of analyses.
const MOST_WORK: usize = 700_000;

impl Knob {
    fn of(source: &Source, clock_hz: u64) -> Option<Self> {
        let limit = &source.limit;
        match (limit.policy, &limit.expiry, limit.place) {
            (Policy::Off, _, _) => source.rates.worst.map(|rate| {
                Self::Interarrival((rate.period_cycles(clock_hz).floor() as u64).max(1))
            }),
            (_, Some(Expiry::Shared(_)), Place::Software) => Some(Self::Burst(limit.burst)),
            _ => Some(Self::Interval(limit.interval)),
        }
    }

    /// The settings to search, from the loosest to the tightest: `setting(0)` is as fast as can be.
    fn settings(self) -> u64 {
        match self {
            Self::Interval(now) | Self::Interarrival(now) => now.saturating_mul(LEAST_SHARE),
            Self::Burst(_) => MOST_BURST,
        }
    }

    /// Sets `source` to the `index`th setting; gives the factor on today's rate.
    fn set(self, source: &mut Source, index: u64, clock_hz: u64) -> f64 {
        match self {
            Self::Interval(now) => {
                source.limit.interval = index + 1;
                now as f64 / (index + 1) as f64
            }
            Self::Interarrival(now) => {
                source.rates.worst = Rate::from_hertz(clock_hz as f64 / (index + 1) as f64).ok();
                now as f64 / (index + 1) as f64
            }
            Self::Burst(now) => {
                let burst = MOST_BURST - index;
                source.limit.burst = u32::try_from(burst).unwrap_or(u32::MAX);
                burst as f64 / f64::from(now.max(1))
            }
        }
    }

    /// The index of today's setting.
    fn now(self) -> u64 {
        match self {
            Self::Interval(now) | Self::Interarrival(now) => now.saturating_sub(1),
            Self::Burst(now) => MOST_BURST.saturating_sub(u64::from(now)),
        }
    }
}

/// The headroom of every source of `system`, whose analysis `analysis` is, in the order of the sources.
#[must_use]
pub fn headroom(system: &System, analysis: &Analysis) -> Vec<Headroom> {
    let units = analysis.rows.len();
    let exact = system
        .sources
        .len()
        .saturating_mul(units)
        .saturating_mul(units)
        <= MOST_WORK;
    if exact {
        let holds_now = keeps_now(system, analysis);
        each(system.sources.len(), |source| {
            exactly(system, source, holds_now)
        })
    } else {
        headroom_at_least(system, analysis)
    }
}

/// As [`headroom`], but a lower bound whatever the size of the system: no source is known to have any if the system breaks a deadline as it is, and none is
/// known to have more than today's rate if flows have deadlines, of which the windows say nothing.
#[must_use]
pub fn headroom_at_least(system: &System, analysis: &Analysis) -> Vec<Headroom> {
    let slack = keeps_now(system, analysis).then(|| Slack::of(system, analysis));
    let of_flows = has_flow_deadlines(system);
    each(system.sources.len(), |source| match &slack {
        Some(_) if of_flows => Headroom {
            factor: Some(1.0),
            exact: false,
            ..hopeless(source)
        },
        Some(slack) => at_least(system, source, slack),
        None => Headroom {
            exact: false,
            ..hopeless(source)
        },
    })
}

fn keeps_now(system: &System, analysis: &Analysis) -> bool {
    analysis.holds() && (!has_flow_deadlines(system) || keeps_deadlines(system))
}

/// Of `settings`, the loosest that `holds`, if tighter ones hold, too; `known`: one that holds, if any is known.
fn loosest(known: Option<u64>, settings: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if holds(0) {
        return Some(0);
    }
    // Invariant: `fails` does not hold, `held` does.
    let (mut fails, mut held) = (0, known.unwrap_or(settings));
    if known.is_none() && !holds(held) {
        return None;
    }
    while held - fails > 1 {
        let middle = fails + (held - fails) / 2;
        if holds(middle) {
            held = middle;
        } else {
            fails = middle;
        }
    }
    Some(held)
}

/// Nothing holds, however slow the source.
fn hopeless(source: usize) -> Headroom {
    Headroom {
        source,
        factor: Some(0.0),
        binding: None,
        exact: true,
    }
}

fn exactly(system: &System, source: usize, holds_now: bool) -> Headroom {
    let clock = system.cpu.clock_hz;
    let Some(knob) = system
        .sources
        .get(source)
        .and_then(|of| Knob::of(of, clock))
    else {
        return hopeless(source);
    };
    let at = |index: u64| {
        let mut changed = system.clone();
        let factor = changed
            .sources
            .get_mut(source)
            .map_or(0.0, |of| knob.set(of, index, clock));
        (changed, factor)
    };
    let known = holds_now.then(|| knob.now());
    match loosest(known, knob.settings(), |index| {
        keeps_deadlines(&at(index).0)
    }) {
        Some(0) => Headroom {
            source,
            factor: None,
            binding: None,
            exact: true,
        },
        Some(index) => Headroom {
            source,
            factor: Some(at(index).1),
            binding: first_miss(&at(index - 1).0),
            exact: true,
        },
        None => hopeless(source),
    }
}

fn at_least(system: &System, source: usize, slack: &Slack) -> Headroom {
    let clock = system.cpu.clock_hz;
    let Some((of, knob)) = system
        .sources
        .get(source)
        .and_then(|of| Some((of, Knob::of(of, clock)?)))
    else {
        return hopeless(source);
    };
    let at = |index: u64| {
        let mut changed = of.clone();
        let factor = knob.set(&mut changed, index, clock);
        (changed, factor)
    };
    let now = Some(knob.now());
    let by_others = loosest(now, knob.settings(), |index| {
        slack.breaks(source, &at(index).0).is_none()
    });
    // What the others bear the source itself nearly always does; only if not its own interrupts decide.
    let by_itself = |index: u64| slack.bears_itself(source, &at(index).0);
    let (found, binding) = match by_others {
        Some(index) if by_itself(index) => (
            Some(index),
            index
                .checked_sub(1)
                .and_then(|tighter| slack.breaks(source, &at(tighter).0)),
        ),
        Some(index) => (
            loosest(now, knob.settings(), |tried| {
                tried >= index && by_itself(tried)
            }),
            Some(Part::Request(source)),
        ),
        None => (None, None),
    };
    Headroom {
        source,
        factor: found.filter(|&index| index > 0).map(|index| at(index).1),
        binding,
        exact: false,
    }
}
