// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources: how often they may interrupt, what limits them, and how much faster they could be.
use serde::Serialize;
use weir_model::{Expiry, Place, Policy, System};

use crate::analysis::Analysis;
use crate::limiter::requests;
use crate::sensitivity::{self, headroom};
use crate::units::{Part, body};

/// A source, its limit and its headroom.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceRow {
    /// Its name.
    pub name: String,
    /// `off`, `strict`, `paced`, `bursty`, `bucket` or `poll`.
    pub policy: &'static str,
    /// `eager`, `lazy` or `one_shot`; none where the policy has no choice.
    pub timing: Option<&'static str>,
    /// `software` or `hardware`; none without limit.
    pub place: Option<&'static str>,
    /// The channel of its own timer, or the name of the shared timer; none without timer.
    pub timer: Option<String>,
    /// Requests per interval, or tokens; none without limit.
    pub burst: Option<u32>,
    /// The limit's interval or the timer's period after rounding; none without limit.
    pub interval_cycles: Option<u64>,
    /// What the limit lets through in the long run after rounding; none without limit.
    pub effective_hz: Option<f64>,
    /// What a healthy source does; none if not stated.
    pub expected_hz: Option<f64>,
    /// What the system can bear; none if not stated.
    pub tolerated_hz: Option<f64>,
    /// What a broken source can do; none: there is no bound.
    pub worst_hz: Option<f64>,
    /// The name by which the file states the worst rate.
    pub worst_name: Option<&'static str>,
    /// The share of the processor that it would ask for at its worst rate without a limit; none:
    /// there is no bound.
    pub unlimited_utilisation: Option<f64>,
    /// How far its rate could rise.
    pub headroom: Headroom,
}

/// How far the rate of a source could rise, all else alike, before the first deadline breaks: that
/// of its limit, or its worst rate if it has no limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Headroom {
    /// The factor on the rate; 0 if nothing helps. None: no deadline breaks, however fast the
    /// source.
    pub factor: Option<f64>,
    /// The rate with that factor; none without factor or without rate.
    pub hz: Option<f64>,
    /// The row or flow whose deadline breaks first beyond it.
    pub binding: Option<String>,
    /// Is it the largest such factor? Else it is only a safe one.
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

/// The source of the least factor, but for those with which no rate helps.
pub(super) fn most_critical(sources: &[SourceRow]) -> Option<String> {
    sources
        .iter()
        .filter_map(|source| Some((source.headroom.factor?, source)))
        .filter(|(factor, _)| *factor > 0.0)
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, source)| source.name.clone())
}
