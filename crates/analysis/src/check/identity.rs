// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kind and the names of a row.
use serde::Serialize;
use weir_model::{Expiry, System};

use crate::units::Part;

/// The kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// The interrupt of a source's line.
    Interrupt,
    /// The interrupt of a source's own timer, which belongs to the limit or polls the line.
    Expiry,
    /// The interrupt of a timer that several limits share.
    Timer,
    /// A receiver's own work, at each release or for each packet of one of its flows.
    Task,
    /// The bottom half of a flow, at its receiver's urgency.
    BottomHalf,
}

/// The kind, the name, the vector and the urgency of a part of the system. Tasks and bottom halves
/// have no vector, and interrupts have no urgency.
pub(super) fn identity(system: &System, part: Part) -> (RowKind, &str, Option<&str>, Option<u8>) {
    let urgency = |receiver: usize| system.receivers.get(receiver).map(|of| of.urgency);
    match part {
        Part::Request(index) => {
            let source = system.sources.get(index);
            (
                RowKind::Interrupt,
                source.map_or("", |of| of.name.as_str()),
                source.map(|of| of.level.vector.as_str()),
                None,
            )
        }
        Part::Expiry(index) => {
            let source = system.sources.get(index);
            let vector = source.and_then(|of| match of.limit.expiry.as_ref()? {
                Expiry::Own { level, .. } => Some(level.vector.as_str()),
                Expiry::Shared(timer) => system
                    .timers
                    .get(*timer)
                    .map(|timer| timer.level.vector.as_str()),
            });
            (
                RowKind::Expiry,
                source.map_or("", |of| of.name.as_str()),
                vector,
                None,
            )
        }
        Part::Timer(index) => {
            let timer = system.timers.get(index);
            (
                RowKind::Timer,
                timer.map_or("", |of| of.name.as_str()),
                timer.map(|of| of.level.vector.as_str()),
                None,
            )
        }
        Part::Task(_) | Part::Delivered(_) => {
            let receiver = part.worker(system).and_then(|of| system.receivers.get(of));
            (
                RowKind::Task,
                receiver.map_or("", |of| of.name.as_str()),
                None,
                receiver.map(|of| of.urgency),
            )
        }
        Part::BottomHalf(index) => {
            let flow = system.flows.get(index);
            (
                RowKind::BottomHalf,
                flow.map_or("", |of| of.name.as_str()),
                None,
                flow.and_then(|of| urgency(of.receiver)),
            )
        }
    }
}
