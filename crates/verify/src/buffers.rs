// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the most packets that may be in a flow's queue at once, and the capacity of that queue
//! (docs/analysis.md, "Flows" and "On FreeRTOS").

use crate::Claims;
use crate::format::{Buffers, Flow, Kind, System, Unit};
use crate::units::Units;

/// The other flows whose packets may be in the same queue as those of a flow.
struct Others<'a> {
    /// The flows of the same receiver, including the flow itself.
    of_receiver: Vec<(usize, &'a Flow)>,
    /// The flows that can take any buffer of the receiver's urgency.
    of_urgency: Vec<(usize, &'a Flow)>,
}

/// Returns the flows that share the queue. `None` if the flow has a queue of its own.
fn others<'a>(system: &'a System, flow: &Flow) -> Option<Others<'a>> {
    if flow.buffers != Some(Buffers::OfReceiver) {
        return None;
    }
    let urgency = |of: &Flow| system.receivers.get(of.receiver).map(|of| of.urgency);
    let with = |buffers: Buffers| {
        let flows = system.flows.iter().enumerate();
        flows.filter(move |(_, of)| of.buffers == Some(buffers))
    };
    Some(Others {
        of_receiver: with(Buffers::OfReceiver)
            .filter(|(_, of)| of.receiver == flow.receiver)
            .collect(),
        of_urgency: with(Buffers::OfUrgency)
            .filter(|(_, of)| urgency(of) == urgency(flow))
            .collect(),
    })
}

/// Returns the capacity for packets of `flow`. `None` if the system does not state it.
pub(crate) fn room(system: &System, flow: &Flow) -> Option<u64> {
    let Some(others) = others(system, flow) else {
        return flow.queue;
    };
    let mut sum: u64 = 0;
    for (_, of) in others.of_receiver {
        sum = sum.saturating_add(of.queue?);
    }
    Some(sum)
}

/// Returns the most packets that may be in the queue at once, computed from the rows. `None` if
/// there is no bound.
pub(crate) fn needed(
    system: &System,
    units: &Units,
    claims: &Claims,
    index: usize,
    flow: &Flow,
) -> Option<u64> {
    // A unit that does not exist takes no time.
    let response = |kind, index| match claims.find(Unit(kind, index)) {
        None => Some(0),
        Some(claim) => claim.map(|claim| claim.response),
    };
    let waiting = |index: usize| units.packets(index, response(Kind::BottomHalf, index)?);
    let Some(others) = others(system, flow) else {
        return waiting(index);
    };
    // A frame stays until the end of the job that takes it. That job is already running, or it is
    // the next one that starts after the bottom half.
    let receiver = system.receivers.get(flow.receiver)?;
    let until_taken = |index: usize| {
        let bottom_half = response(Kind::BottomHalf, index)?;
        let Some(period) = receiver.period else {
            return Some(response(Kind::Delivered, index)?.max(bottom_half));
        };
        let job = response(Kind::Task, flow.receiver)?;
        let parts = [bottom_half, receiver.jitter, period, job];
        Some(parts.into_iter().fold(0, u64::saturating_add))
    };
    let mut sum: u64 = 0;
    for (index, _) in others.of_receiver {
        sum = sum.saturating_add(units.packets(index, until_taken(index)?)?);
    }
    for (index, of) in others.of_urgency {
        let beyond = waiting(index)?.saturating_sub(of.queue.unwrap_or(0));
        sum = sum.saturating_add(beyond);
    }
    Some(sum)
}
