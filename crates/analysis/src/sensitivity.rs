// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes how far each source's rate could rise before the first deadline breaks.
//!
//! The method is that of Bini, Di Natale and Buttazzo ("Sensitivity analysis for fixed-priority
//! real-time systems", Real-Time Systems 39, 2008), applied to the rate of one source at a time.
//! Response times only grow with a rate, so bisection is exact. A system of a thousand sources
//! would need ten thousand analyses. Each source of such a system gets a lower bound instead, from
//! windows that are computed once ([`crate::slack`]).

use weir_model::{
    Expiry, InterfaceThread, Interval, Limit, Place, Policy, Rate, Source, System, Timing,
};

use crate::analysis::{Analysis, each};
use crate::check::deadlines::{first_miss, has_flow_deadlines, keeps_deadlines};
use crate::limiter::{line_interarrival, never_holds};
use crate::slack::Slack;
use crate::units::Part;

/// The headroom of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct Headroom {
    /// Index in [`System::sources`].
    pub source: usize,
    /// The factor by which the source's rate could be multiplied with every deadline kept, if
    /// nothing else changes. The rate is the one that its limit lets through, or its worst rate if
    /// it has no limit. The rate has to fall if the factor is below 1. `None` if no deadline breaks
    /// at any rate.
    pub factor: Option<f64>,
    /// The unit whose deadline breaks first above that factor. For a flow's deadline this is the
    /// flow's bottom half. `None` if no deadline breaks, or if the unit is not known.
    pub binding: Option<Part>,
    /// Whether `factor` is the largest such factor. If not, it is a lower bound.
    pub exact: bool,
}

/// The parameter of a source that changes its rate. Settings are numbered from 0, the loosest.
#[derive(Debug, Clone, Copy)]
enum Knob {
    /// The interval of the source's own limiter, in cycles.
    Interval(u64),
    /// The time between two requests of a source without limit, in cycles.
    Interarrival(u64),
    /// The number of requests per period of a shared timer.
    Burst(u32),
}

/// The factor between today's rate and the slowest setting that is tried.
const LEAST_SHARE: u64 = 1 << 12;
/// The largest burst that is tried.
const MOST_BURST: u64 = 1 << 20;
/// The largest product of sources, units and units for which a system gets exact results. The
/// analyses then take about half a second. Larger systems get lower bounds.
const MOST_WORK: usize = 700_000;

impl Knob {
    fn of(source: &Source, clock_hz: u64) -> Option<Self> {
        let limit = &source.limit;
        match (limit.policy, &limit.expiry, limit.place) {
            (Policy::Off, _, _) => line_interarrival(source, clock_hz).map(Self::Interarrival),
            (_, Some(Expiry::Shared(_)), Place::Software) => Some(Self::Burst(limit.burst)),
            _ => Some(Self::Interval(limit.interval.cycles())),
        }
    }

    /// The number of the tightest setting.
    fn settings(self) -> u64 {
        match self {
            Self::Interval(now) | Self::Interarrival(now) => now.saturating_mul(LEAST_SHARE),
            Self::Burst(_) => MOST_BURST - 1,
        }
    }

    /// Gives `source` the setting `index`; returns the new rate as a multiple of today's.
    fn set(self, source: &mut Source, index: u64, clock_hz: u64) -> f64 {
        match self {
            Self::Interval(now) => {
                set_cycles(&mut source.limit, index + 1);
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

/// Gives a limit an interval of any number of cycles, by setting its tick to one cycle. Its lag
/// grows in proportion, so that its time resolution does not improve.
fn set_cycles(limit: &mut Limit, cycles: u64) {
    let apart = (limit.interval.tick).saturating_mul(u64::from(limit.lag).saturating_add(1));
    limit.interval = Interval::of_cycles(cycles);
    limit.lag = u32::try_from(apart.saturating_sub(1)).unwrap_or(u32::MAX);
}

/// The headroom of every source of `system`, in the order of the sources. `analysis` is the
/// analysis of `system`.
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
            let latency = analysis.latencies.source.get(source).copied();
            exactly(system, source, latency.unwrap_or(0), holds_now)
        })
    } else {
        headroom_at_least(system, analysis)
    }
}

/// Like [`headroom`], but gives lower bounds for systems of any size. The headroom of every source
/// is unknown if the system already breaks a deadline. No factor exceeds 1 if packets have
/// deadlines, of their flows or their receivers, or if a kernel thread takes them: the windows do
/// not cover these.
#[must_use]
pub fn headroom_at_least(system: &System, analysis: &Analysis) -> Vec<Headroom> {
    let slack = keeps_now(system, analysis).then(|| Slack::of(system, analysis));
    let of_packets = has_flow_deadlines(system)
        || (system.receivers.iter()).any(|of| of.works_per_packet() && of.deadline.is_some());
    let takes = |source| {
        let of = |thread: &InterfaceThread| thread.takes.is_some_and(|(index, _)| index == source);
        system.linux.threads.iter().any(of)
    };
    each(system.sources.len(), |source| match &slack {
        Some(_) if of_packets || takes(source) => Headroom {
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

/// The settings of one source's knob, and the range of those that matter.
struct KnobRange {
    knob: Knob,
    /// The loosest setting with which the limit can still hold a request back. A looser setting
    /// holds nothing back, so the source takes less processor time, except for a timer that expires
    /// even if it is not needed.
    loosest: u64,
    tightest: u64,
    /// Whether settings looser than `loosest` cost no expiry (LIMIT-LAZY-1).
    lazy: bool,
}

impl KnobRange {
    fn of(source: &Source, clock_hz: u64, latency: u64) -> Option<Self> {
        let knob = Knob::of(source, clock_hz)?;
        let never_holds = |index: u64| {
            let mut changed = source.clone();
            knob.set(&mut changed, index, clock_hz);
            changed.limit.policy != Policy::Off && never_holds(&changed, clock_hz, latency)
        };
        let tightest = knob.settings();
        let loosest = first(0, tightest, |index| !never_holds(index)).unwrap_or(tightest);
        Some(Self {
            knob,
            loosest,
            tightest,
            lazy: source.limit.timing == Timing::Lazy,
        })
    }

    /// The loosest setting for which `holds` is true; it must then be true for all tighter
    /// settings. `holds_now` is the result for today's setting.
    fn search(&self, holds_now: bool, holds: impl Fn(u64) -> bool) -> Threshold {
        let now = self.knob.now();
        let among = |least: u64, tightest: u64| match first(least, tightest, &holds) {
            Some(index) if index == least => Threshold::Any,
            Some(index) => Threshold::UpTo(index),
            None if holds_now => Threshold::UpTo(now),
            None => Threshold::None,
        };
        if holds_now && now <= self.loosest {
            return if self.lazy {
                Threshold::Any
            } else {
                among(0, now)
            };
        }
        let tightest = if holds_now { now } else { self.tightest };
        match among(self.loosest, tightest) {
            Threshold::Any if !self.lazy => among(0, self.loosest),
            found => found,
        }
    }
}

/// The result of a search.
#[derive(Debug, Clone, Copy)]
enum Threshold {
    /// Every setting keeps the deadlines.
    Any,
    /// This setting keeps the deadlines; the next looser one does not.
    UpTo(u64),
    /// No setting keeps the deadlines.
    None,
}

/// The first number from `least` to `most` for which `of` is true. `of` must then be true for all
/// larger numbers.
fn first(least: u64, most: u64, of: impl Fn(u64) -> bool) -> Option<u64> {
    if of(least) {
        return Some(least);
    }
    if !of(most) {
        return None;
    }
    let (mut before, mut found) = (least, most);
    while found - before > 1 {
        let middle = before + (found - before) / 2;
        if of(middle) {
            found = middle;
        } else {
            before = middle;
        }
    }
    Some(found)
}

/// The headroom of a source whose rate nothing bounds. The deadlines that hold now hold at any rate
/// of it.
fn without_knob(source: usize, holds_now: bool) -> Headroom {
    Headroom {
        factor: (!holds_now).then_some(0.0),
        ..hopeless(source)
    }
}

/// The headroom of a source with which deadlines break at any rate, however slow.
fn hopeless(source: usize) -> Headroom {
    Headroom {
        source,
        factor: Some(0.0),
        binding: None,
        exact: true,
    }
}

fn exactly(system: &System, source: usize, latency: u64, holds_now: bool) -> Headroom {
    let clock = system.cpu.clock_hz;
    let Some(range) = system
        .sources
        .get(source)
        .and_then(|of| KnobRange::of(of, clock, latency))
    else {
        return without_knob(source, holds_now);
    };
    let at = |index: u64| {
        let mut changed = system.clone();
        let factor = changed
            .sources
            .get_mut(source)
            .map_or(0.0, |of| range.knob.set(of, index, clock));
        changed.renew_threads();
        (changed, factor)
    };
    // A flow's latency may shrink when its limit's rate grows, so the first miss that bisection
    // finds may not be the first that exists.
    let exact = !has_flow_deadlines(system);
    match range.search(holds_now, |index| keeps_deadlines(&at(index).0)) {
        Threshold::Any => Headroom {
            source,
            factor: None,
            binding: None,
            exact,
        },
        Threshold::UpTo(index) => Headroom {
            source,
            factor: Some(at(index).1),
            binding: first_miss(&at(index - 1).0),
            exact,
        },
        Threshold::None => hopeless(source),
    }
}

fn at_least(system: &System, source: usize, slack: &Slack) -> Headroom {
    let clock = system.cpu.clock_hz;
    let latency = slack.latency(source);
    let Some((of, range)) = system
        .sources
        .get(source)
        .and_then(|of| Some((of, KnobRange::of(of, clock, latency)?)))
    else {
        return without_knob(source, true);
    };
    let at = |index: u64| {
        let mut changed = of.clone();
        let factor = range.knob.set(&mut changed, index, clock);
        (changed, factor)
    };
    let breaks = |index: u64| slack.breaks(source, &at(index).0);
    let by_itself = |index: u64| slack.bears_itself(source, &at(index).0);
    let by_others = range.search(true, |index| breaks(index).is_none());
    let of_others = match by_others {
        Threshold::UpTo(index) => index,
        Threshold::Any | Threshold::None => range.loosest,
    };
    // The source itself nearly always tolerates the rate that the others tolerate. The exception is
    // a source whose own interrupts break a deadline first.
    let (found, binding) = if by_itself(of_others) {
        let tighter = of_others.checked_sub(1);
        (by_others, tighter.and_then(breaks))
    } else {
        let found = range.search(true, |index| index >= of_others && by_itself(index));
        (found, Some(Part::Request(source)))
    };
    Headroom {
        source,
        factor: match found {
            Threshold::Any => None,
            Threshold::UpTo(index) => Some(at(index).1),
            Threshold::None => Some(0.0),
        },
        binding: binding.filter(|_| matches!(found, Threshold::UpTo(_))),
        exact: false,
    }
}
