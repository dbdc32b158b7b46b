// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets that may be in a flow's queue at once, and the room there (docs/analysis.md, "Flows"
//! and "On FreeRTOS").

use crate::Claims;
use crate::format::{Buffers, Flow, Kind, System, Unit};
use crate::units::Units;

/// The other flows whose packets may be where those of a flow are.
struct Others<'a> {
    /// Those of the same receiver, the flow itself among them.
    of_receiver: Vec<(usize, &'a Flow)>,
    /// Those that can take any buffer of the receiver's urgency.
    of_urgency: Vec<(usize, &'a Flow)>,
}

/// None: the flow has a queue of its own.
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

/// The room for packets of `flow`; none: not stated.
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

/// The packets that may be there at once, by the rows; none: no bound.
pub(crate) fn needed(
    system: &System,
    units: &Units,
    claims: &Claims,
    index: usize,
    flow: &Flow,
) -> Option<u64> {
    // What does not exist takes no time.
    let response = |kind, index| match claims.find(Unit(kind, index)) {
        None => Some(0),
        Some(claim) => claim.map(|claim| claim.response),
    };
    let waiting = |index: usize| units.packets(index, response(Kind::BottomHalf, index)?);
    let Some(others) = others(system, flow) else {
        return waiting(index);
    };
    // A frame stays until the job that takes it has ended: one of its own, or the next that begins
    // after its bottom half.
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
