// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks whether a system keeps its deadlines, including those of its packets.
use weir_model::System;

use super::flows::{FlowRow, flows};
use crate::analysis::{analyse, units_hold};
use crate::units::{Part, Units};

/// Whether every unit *and every flow* of `system` keeps its deadline.
#[must_use]
pub fn keeps_deadlines(system: &System) -> bool {
    if has_flow_deadlines(system) {
        first_miss(system).is_none()
    } else {
        units_hold(system)
    }
}

/// Whether the system has deadlines of packets, which [`units_hold`] does not check.
#[must_use]
pub fn has_flow_deadlines(system: &System) -> bool {
    system.flows.iter().any(|flow| flow.deadline.is_some())
}

/// The first unit that misses its deadline, or the bottom half of the first flow that misses its
/// deadline; `None` if all deadlines hold.
pub(crate) fn first_miss(system: &System) -> Option<Part> {
    let analysis = analyse(system);
    let late = analysis
        .rows
        .iter()
        .find(|row| row.holds() == Some(false))
        .map(|row| row.unit.part);
    late.or_else(|| {
        let units = Units::new(system, &analysis.latencies);
        flows(system, &units, &analysis)
            .iter()
            .position(FlowRow::misses)
            .map(Part::BottomHalf)
    })
}
