// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources of the report: how often they may interrupt, what limits them, and how much their
//! rates could rise.
use serde::Serialize;
use weir_model::{Expiry, Place, Policy, System};

use crate::analysis::Analysis;
use crate::limiter::requests;
use crate::sensitivity::{self, headroom};
use crate::units::{Part, body};

/// A source, its limit and its headroom.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceRow {
    /// The source's name.
    pub name: String,
    /// `off`, `strict`, `paced`, `bursty`, `bucket` or `poll`.
    pub policy: &'static str,
    /// `eager`, `lazy` or `one_shot`; `None` if the policy has only one timing.
    pub timing: Option<&'static str>,
    /// `software` or `hardware`; `None` if the source has no limit.
    pub place: Option<&'static str>,
    /// The channel of the source's own timer, or the name of the shared timer; `None` if it has no
    /// timer.
    pub timer: Option<String>,
    /// The requests per interval, or the bucket's tokens; `None` if the source has no limit.
    pub burst: Option<u32>,
    /// The limit's interval or the timer's period after rounding; `None` if the source has no
    /// limit.
    pub interval_cycles: Option<u64>,
    /// The rate that the limit lets through in the long run after rounding; `None` if there is no
    /// limit.
    pub effective_hz: Option<f64>,
    /// The rate of a healthy source; `None` if the file does not state it.
    pub expected_hz: Option<f64>,
    /// The most that the system can bear; `None` if the file does not state it.
    pub tolerated_hz: Option<f64>,
    /// The rate of a broken source; `None` if there is no bound.
    pub worst_hz: Option<f64>,
    /// The name by which the file states the worst rate; `None` if it states none or a number.
    pub worst_name: Option<&'static str>,
    /// The share of the processor that the source would need at its worst rate without a limit;
    /// `None` if there is no bound.
    pub unlimited_utilisation: Option<f64>,
    /// How far the source's rate could rise.
    pub headroom: Headroom,
}

/// How far the rate of a source could rise, all else equal, before the first deadline breaks. The
/// rate is that of its limit, or its worst rate if it has no limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Headroom {
    /// The factor on the rate; 0 if even the slowest rate breaks a deadline. `None` if no deadline
    /// breaks at any rate.
    pub factor: Option<f64>,
    /// The rate with that factor; `None` if there is no factor or no rate.
    pub hz: Option<f64>,
    /// The row or flow whose deadline breaks first at a higher rate.
    pub binding: Option<String>,
    /// Whether this is the largest such factor. If not, it is a lower bound.
    pub exact: bool,
}

pub(super) fn sources(system: &System, analysis: &Analysis) -> Vec<SourceRow> {
    headroom(system, analysis)
        .into_iter()
        .filter_map(|found| source(system, &found))
        .collect()
}

fn source(system: &System, found: &sensitivity::Headroom) -> Option<SourceRow> {
    let source = system.sources.get(found.source)?;
    let limit = &source.limit;
    let limited = limit.policy != Policy::Off;
    let clock = system.cpu.clock_hz as f64;
    let effective_hz = limited.then(|| {
        let events = match limit.policy {
            Policy::Bursty => f64::from(limit.burst),
            _ => 1.0,
        };
        events * clock / limit.interval.cycles().max(1) as f64
    });
    let hertz = |rate: Option<weir_model::Rate>| rate.map(weir_model::Rate::hertz);
    let worst_hz = hertz(source.rates.worst);
    let in_software = limited && limit.policy != Policy::Poll && limit.place == Place::Software;
    Some(SourceRow {
        name: source.name.clone(),
        policy: limit.policy.name(),
        timing: in_software.then_some(limit.timing.name()),
        place: limited.then_some(limit.place.name()),
        timer: match &limit.expiry {
            Some(Expiry::Own { channel, .. }) => Some(channel.clone()),
            Some(Expiry::Shared(timer)) => system.timers.get(*timer).map(|of| of.name.clone()),
            None => None,
        },
        burst: limited.then_some(limit.burst),
        interval_cycles: limited.then_some(limit.interval.cycles()),
        effective_hz,
        expected_hz: hertz(source.rates.expected),
        tolerated_hz: hertz(source.rates.tolerated),
        worst_hz,
        worst_name: source.rates.worst_name,
        unlimited_utilisation: requests(source, system.cpu.clock_hz).map(|requests| {
            let request = system.cpu.unlimited.request_served;
            let cost = request.saturating_add(body(system, found.source).cycles);
            cost as f64 * requests.step as f64 / requests.period as f64
        }),
        headroom: Headroom {
            factor: found.factor,
            hz: found
                .factor
                .zip(effective_hz.or(worst_hz))
                .map(|(factor, rate)| factor * rate),
            binding: found.binding.and_then(|part| name(system, part)),
            exact: found.exact,
        },
    })
}

fn name(system: &System, part: Part) -> Option<String> {
    Some(match part {
        Part::Request(index) | Part::Expiry(index) => system.sources.get(index)?.name.clone(),
        Part::Timer(index) => system.timers.get(index)?.name.clone(),
        Part::Task(_) | Part::Delivered(_) => {
            system.receivers.get(part.worker(system)?)?.name.clone()
        }
        Part::BottomHalf(index) => system.flows.get(index)?.name.clone(),
    })
}

/// The source of the least factor, except for sources with which even the slowest rate breaks a
/// deadline.
pub(super) fn most_critical(sources: &[SourceRow]) -> Option<String> {
    sources
        .iter()
        .filter_map(|source| Some((source.headroom.factor?, source)))
        .filter(|(factor, _)| *factor > 0.0)
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, source)| source.name.clone())
}
