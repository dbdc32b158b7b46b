// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the results for flows: the time from a packet's arrival to the end of its bottom half,
//! and how many packets may wait (docs/analysis.md, "Flows").
use serde::Serialize;
use weir_model::{Policy, Source, System};

use super::bound::{Bound, BoundState, Cause};
use super::buffers::Buffers;
use crate::analysis::{Analysis, BoundFailure};
use crate::limiter::interrupts_for;
use crate::units::{Part, Units};

/// The worst-case delays of a flow's packets in each stage, and the queues they need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowRow {
    /// The flow's name.
    pub name: String,
    /// The name of the flow's source.
    pub source: String,
    /// The name of the flow's receiver.
    pub receiver: String,
    /// The longest wait in the device for more packets, over all interrupts that the packet waits
    /// for. `None` if the number of these interrupts is not known.
    pub moderation_cycles: Option<u64>,
    /// The longest wait for the limit and for its timer to be served, over all these interrupts. If
    /// the source cannot come faster than its limit, this is only the delay of a limiter in
    /// hardware. `None` if the number of these interrupts is not known.
    pub limit_cycles: Option<u64>,
    /// The longest time from the end of these waits to the end of the interrupts; `None` if there
    /// is no bound.
    pub interrupt_cycles: Option<u64>,
    /// The longest time from the end of the interrupt to the end of the bottom half, 0 if the flow
    /// has no bottom half; `None` if there is no bound.
    pub bottom_half_cycles: Option<u64>,
    /// The deadline, from the packet's arrival to the end of its bottom half; `None` if the flow
    /// has none.
    pub deadline_cycles: Option<u64>,
    /// The sum of the stages, which is compared with the deadline.
    #[serde(flatten)]
    pub bound: Bound,
    /// The most packets that may wait for the bottom half at once; `None` if there is no bound. On
    /// FreeRTOS this counts the packets of all flows of the receiver that may be in its buffers
    /// before it has taken them.
    pub queue_needed: Option<u64>,
    /// The length of the queue, in packets; `None` if the file does not state it.
    pub queue: Option<u64>,
    /// The most packets of the receiver that may come between two ticks, of which the second is
    /// late. `None` if there is no bound or no budget.
    pub budget_needed: Option<u64>,
    /// The most packets that the receiver gets in each tick of FreeRTOS; `None` if it has no
    /// budget.
    pub budget: Option<u64>,
}

impl FlowRow {
    /// Whether the queue can be too short. `None` if the file does not state its length.
    #[must_use]
    pub fn overflows(&self) -> Option<bool> {
        let room = self.queue?;
        Some(self.queue_needed.is_none_or(|needed| needed > room))
    }

    /// Whether the receiver's budget can be used up when a packet comes. `None` if there is no
    /// budget.
    #[must_use]
    pub fn overdraws(&self) -> Option<bool> {
        let budget = self.budget?;
        Some(self.budget_needed.is_none_or(|needed| needed > budget))
    }

    /// Whether the flow has a deadline that a packet may miss, because the packet is late, the
    /// queue is full or the budget is used up.
    #[must_use]
    pub fn misses(&self) -> bool {
        self.deadline_cycles.is_some()
            && (self.bound.state != BoundState::Ok
                || self.overflows() == Some(true)
                || self.overdraws() == Some(true))
    }
}

/// A response time in cycles, or the reason why it has no bound.
type Response<'a> = Result<u64, &'a BoundFailure>;

pub(crate) fn flows(system: &System, units: &Units, analysis: &Analysis) -> Vec<FlowRow> {
    let buffers = Buffers {
        system,
        units,
        analysis,
    };
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
            let delay = source.limit.delay();
            let (limit, interrupt) = if never_held {
                (delay, line.unwrap_or(Ok(0)))
            } else {
                let latency = analysis
                    .latencies
                    .source
                    .get(flow.source)
                    .copied()
                    .unwrap_or(0);
                let latency = latency.saturating_add(delay);
                held(source.limit.interval.cycles(), latency, line, expiry)
            };
            let bottom_half = response(Part::BottomHalf(index)).unwrap_or(Ok(0));
            let waits = waits(source, never_held);
            let moderation = waits.map(|of| of.moderation);
            let limit = waits.map(|of| of.interrupts.saturating_mul(limit));
            let under_way = [line, expiry.filter(|_| !never_held)]
                .into_iter()
                .flatten()
                .filter_map(Result::ok)
                .fold(0, u64::max);
            let to_end = |waits: Waits, interrupt: u64| {
                let before = if waits.after_another { under_way } else { 0 };
                waits
                    .interrupts
                    .saturating_mul(interrupt)
                    .saturating_add(before)
            };
            let bound = match (interrupt, bottom_half, waits) {
                (Err(why), _, _) | (_, Err(why), _) => Bound::none(Cause::of(system, why)),
                (_, _, None) => Bound::none(Cause::QueueUnstated {
                    source: source.name.clone(),
                }),
                (Ok(interrupt), Ok(bottom_half), Some(waits)) => Bound::bounded(
                    moderation
                        .into_iter()
                        .chain(limit)
                        .chain([to_end(waits, interrupt), bottom_half])
                        .fold(0, u64::saturating_add),
                    flow.deadline,
                ),
            };
            Some(FlowRow {
                name: flow.name.clone(),
                source: source.name.clone(),
                receiver: receiver.name.clone(),
                moderation_cycles: moderation,
                limit_cycles: limit,
                interrupt_cycles: waits
                    .zip(interrupt.ok())
                    .map(|(waits, interrupt)| to_end(waits, interrupt)),
                bottom_half_cycles: bottom_half.ok(),
                deadline_cycles: flow.deadline,
                bound,
                queue_needed: buffers.needed(index),
                queue: buffers.room(flow),
                budget_needed: units.packets_between_ticks(flow),
                budget: system.tick_budget(flow).map(|of| of.frames),
            })
        })
        .collect()
}

/// The longest waits of a packet until an interrupt takes it.
#[derive(Clone, Copy)]
struct Waits {
    /// The cycles for which the device waits for more packets.
    moderation: u64,
    /// The number of interrupts after that wait, up to the one that takes the packet. Each may have
    /// to wait for the limit.
    interrupts: u64,
    /// Whether an interrupt may be running when the packet comes, and must end before the device
    /// raises these interrupts.
    after_another: bool,
}

/// The waits of a packet; `None` if the file does not say how many packets wait before it.
fn waits(source: &Source, never_held: bool) -> Option<Waits> {
    if source.moderation.is_none() && never_held {
        // Each packet raises its own interrupt.
        return Some(Waits {
            moderation: 0,
            interrupts: 1,
            after_another: false,
        });
    }
    let queue = source.queue?;
    let interrupts = interrupts_for(source, queue);
    Some(match source.moderation {
        None => Waits {
            moderation: 0,
            interrupts,
            after_another: false,
        },
        Some(moderation) => {
            // The device stops waiting once the count of moderation is reached.
            let too_few = moderation
                .count
                .map_or(queue, |count| queue.min(count.saturating_sub(1)));
            let windows = interrupts_for(source, too_few);
            // On FreeRTOS an interrupt begins each of these windows and takes no packet.
            let beginning = moderation.tick.map_or(0, |_| windows);
            Waits {
                moderation: moderation.longest().saturating_mul(windows),
                interrupts: interrupts.saturating_add(beginning),
                after_another: true,
            }
        }
    })
}

/// The wait for the limit, and the following response, of a request that is held back. The limiter
/// lets the request through at the interval's end. The line's interrupt or the timer's serves it;
/// the later of the two is taken.
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
