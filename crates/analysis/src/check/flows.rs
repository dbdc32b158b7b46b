// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flows: from a packet's arrival to the end of its bottom half, and how many packets may wait
//! (docs/analysis.md, "Flows").
use serde::Serialize;
use weir_model::{Policy, Source, System};

use super::bound::{Bound, BoundState, Cause};
use super::buffers::Buffers;
use crate::analysis::{Analysis, BoundFailure};
use crate::limiter::interrupts_for;
use crate::units::{Part, Units};

/// The way of a flow's packets through the stages, at worst.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowRow {
    /// Its name.
    pub name: String,
    /// Its source.
    pub source: String,
    /// Its receiver.
    pub receiver: String,
    /// The longest wait in the device for more packets, before all interrupts that the packet waits
    /// for. None: the number of these interrupts is not known.
    pub moderation_cycles: Option<u64>,
    /// The longest wait for the limit, and for its timer to be served, before all these interrupts.
    /// If the source cannot come faster than its limit, only the delay of a limiter in hardware.
    /// None: as above.
    pub limit_cycles: Option<u64>,
    /// The longest time that these interrupts then take until they end; none without bound.
    pub interrupt_cycles: Option<u64>,
    /// The longest time from there to the end of the bottom half, 0 if the flow has none; none
    /// without bound.
    pub bottom_half_cycles: Option<u64>,
    /// The deadline: from the arrival to the end of the bottom half.
    pub deadline_cycles: Option<u64>,
    /// The sum, held against the deadline.
    #[serde(flatten)]
    pub bound: Bound,
    /// Packets that may wait for the bottom half at once; none without bound. On FreeRTOS it is
    /// those that may be in the receiver's buffers, of all its flows, until it has taken them.
    pub queue_needed: Option<u64>,
    /// The room for them; none if the file does not say.
    pub queue: Option<u64>,
    /// The receiver's packets that may come between two ticks, the second being late; none without
    /// bound or budget.
    pub budget_needed: Option<u64>,
    /// The packets that the receiver gets in each tick of FreeRTOS; none: as many as come.
    pub budget: Option<u64>,
}

impl FlowRow {
    /// Can the queue be too short? None: the file does not state its length.
    #[must_use]
    pub fn overflows(&self) -> Option<bool> {
        let room = self.queue?;
        Some(self.queue_needed.is_none_or(|needed| needed > room))
    }

    /// Can the receiver's budget be used up when a packet comes? None: there is no budget.
    #[must_use]
    pub fn overdraws(&self) -> Option<bool> {
        let budget = self.budget?;
        Some(self.budget_needed.is_none_or(|needed| needed > budget))
    }

    /// Has the flow a deadline that a packet may miss, because it is late, finds the queue full or
    /// the budget used up?
    #[must_use]
    pub fn misses(&self) -> bool {
        self.deadline_cycles.is_some()
            && (self.bound.state != BoundState::Ok
                || self.overflows() == Some(true)
                || self.overdraws() == Some(true))
    }
}

/// A response time, or why there is none.
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

/// The longest waits of a packet until it is taken.
#[derive(Clone, Copy)]
struct Waits {
    /// Cycles for which the device waits for more packets.
    moderation: u64,
    /// The number of interrupts from then on, up to the one that takes the packet. Each may have to
    /// wait for the limit.
    interrupts: u64,
    /// Does the device ask for these interrupts only after one has ended that may run when the
    /// packet comes?
    after_another: bool,
}

/// The waits of a packet; none: the file does not say how many packets wait before it.
fn waits(source: &Source, never_held: bool) -> Option<Waits> {
    if source.moderation.is_none() && never_held {
        // Each packet asks for an interrupt of its own.
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
            // The device waits for no more once the count of moderation is reached.
            let too_few = moderation
                .count
                .map_or(queue, |count| queue.min(count.saturating_sub(1)));
            let windows = interrupts_for(source, too_few);
            // On FreeRTOS an interrupt begins each, and takes nothing.
            let beginning = moderation.tick.map_or(0, |_| windows);
            Waits {
                moderation: moderation.longest().saturating_mul(windows),
                interrupts: interrupts.saturating_add(beginning),
                after_another: true,
            }
        }
    })
}

/// The wait for the limit, and what follows it, of a request that is held back. The limiter lets it
/// through at the interval's end; the line's interrupt or the timer's serves it, whichever is later
/// at worst.
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
