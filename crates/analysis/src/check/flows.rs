// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flows: from a packet's arrival to the end of its bottom half, and how many may wait (docs/analysis.md, "Flows").
use serde::Serialize;
use weir_model::{Policy, System};

use super::bound::{Bound, Cause, State};
use crate::analysis::{Analysis, Unbounded};
use crate::units::{Part, Units};

/// A flow's way through the stages, at worst.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Its source.
    pub source: String,
    /// Its receiver.
    pub receiver: String,
    /// The longest wait in the device for more packets.
    pub moderation_cycles: u64,
    /// The longest wait for the limit, and for its timer to be served; 0 if the source cannot come faster than its limit.
    pub limit_cycles: u64,
    /// The longest time from then to the end of the interrupt; none without bound.
    pub interrupt_cycles: Option<u64>,
    /// The longest time from then to the end of the bottom half, 0 if there is none; none without bound.
    pub bottom_half_cycles: Option<u64>,
    /// From the arrival to the end of the bottom half; none if nobody minds.
    pub deadline_cycles: Option<u64>,
    /// The sum, held against the deadline.
    #[serde(flatten)]
    pub bound: Bound,
    /// Packets that may wait for the bottom half at once; none without bound.
    pub queue_needed: Option<u64>,
    /// Packets for which there is room; none if the file does not say.
    pub queue: Option<u64>,
}

impl Flow {
    /// Can the queue be too short? None: its length is not stated.
    #[must_use]
    pub fn overflows(&self) -> Option<bool> {
        let room = self.queue?;
        Some(self.queue_needed.is_none_or(|needed| needed > room))
    }

    /// Does it have a deadline that a packet may miss, by being late or by finding the queue full?
    #[must_use]
    pub fn misses(&self) -> bool {
        self.deadline_cycles.is_some()
            && (self.bound.state != State::Ok || self.overflows() == Some(true))
    }
}

/// A response time, or why there is none.
type Response<'a> = Result<u64, &'a Unbounded>;

pub(crate) fn flows(system: &System, units: &Units, analysis: &Analysis) -> Vec<Flow> {
    let response = |part: Part| -> Option<Response> {
        analysis
            .row(part)
            .map(|row| row.outcome.as_ref().map(|solution| solution.response))
    };
    system
        .flows
        .iter()
        .enumerate()
        .filter_map(|(index, flow)| {
            let source = system.sources.get(flow.source)?;
            let receiver = system.receivers.get(flow.receiver)?;
            let line = response(Part::Request(flow.source));
            let expiry = response(Part::Expiry(flow.source));
            let never_held =
                source.limit.policy == Policy::Off || units.longest_wait(flow.source).is_some();
            let (limit, interrupt) = if never_held {
                (0, line.unwrap_or(Ok(0)))
            } else {
                let latency = analysis
                    .latencies
                    .source
                    .get(flow.source)
                    .copied()
                    .unwrap_or(0);
                held(source.limit.interval, latency, line, expiry)
            };
            let bottom_half = response(Part::BottomHalf(index)).unwrap_or(Ok(0));
            let moderation = source.moderation.map_or(0, |of| of.absolute);
            let bound = match (interrupt, bottom_half) {
                (Ok(interrupt), Ok(bottom_half)) => Bound::bounded(
                    [moderation, limit, interrupt, bottom_half]
                        .into_iter()
                        .fold(0, u64::saturating_add),
                    flow.deadline,
                ),
                (Err(why), _) | (_, Err(why)) => Bound::none(Cause::of(system, why)),
            };
            Some(Flow {
                name: flow.name.clone(),
                source: source.name.clone(),
                receiver: receiver.name.clone(),
                moderation_cycles: moderation,
                limit_cycles: limit,
                interrupt_cycles: interrupt.ok(),
                bottom_half_cycles: bottom_half.ok(),
                deadline_cycles: flow.deadline,
                bound,
                queue_needed: bottom_half
                    .ok()
                    .and_then(|response| Some(units.packets(index)?.events(response))),
                queue: flow.queue,
            })
        })
        .collect()
}

/// The wait for the limit and what comes after it, of a request that is held back: it is let through at the interval's end and served by the line's interrupt, or
/// inside the timer's, whichever is later at worst.
fn held<'a>(
    interval: u64,
    latency: u64,
    line: Option<Response<'a>>,
    expiry: Option<Response<'a>>,
) -> (u64, Response<'a>) {
    match (line, expiry) {
        (Some(Err(why)), _) | (_, Some(Err(why))) => (interval, Err(why)),
        (Some(Ok(line)), Some(Ok(expiry))) if expiry > line.saturating_add(latency) => {
            (interval, Ok(expiry))
        }
        (Some(Ok(line)), _) => (interval.saturating_add(latency), Ok(line)),
        (None, Some(Ok(expiry))) => (interval, Ok(expiry)),
        (None, None) => (interval.saturating_add(latency), Ok(0)),
    }
}
