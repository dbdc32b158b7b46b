// SPDX-License-Identifier: MIT OR Apache-2.0
//! The costs of work in a run, drawn at random from their distributions.

use weir_model::System;

use crate::observer::Observer;

use super::Engine;

/// The worst-case costs of one packet, in cycles.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PacketCosts {
    pub top_half: u64,
    pub demux: u64,
    pub bottom_half: u64,
}

/// The worst-case costs of packets.
#[derive(Debug)]
pub(super) struct PacketCostTable {
    /// The costs of a packet of each flow, by flow index.
    pub flows: Vec<PacketCosts>,
    /// The costs of a packet without a receiver, by source index: the highest costs among the flows
    /// of the source.
    pub orphans: Vec<PacketCosts>,
}

impl PacketCostTable {
    pub fn new(system: &System) -> Self {
        let of = |flow: &weir_model::Flow| PacketCosts {
            top_half: flow.top_half.cycles,
            demux: flow.demux.cycles,
            bottom_half: flow.bottom_half.cycles,
        };
        let mut orphans = vec![PacketCosts::default(); system.sources.len()];
        for flow in &system.flows {
            let (costs, orphan) = (of(flow), &mut orphans[flow.source]);
            orphan.top_half = orphan.top_half.max(costs.top_half);
            orphan.demux = orphan.demux.max(costs.demux);
            orphan.bottom_half = orphan.bottom_half.max(costs.bottom_half);
        }
        Self {
            flows: system.flows.iter().map(of).collect(),
            orphans,
        }
    }
}

impl<O: Observer> Engine<'_, O> {
    pub(super) fn draw_interrupt(&mut self, worst: u64) -> u64 {
        self.options.costs.interrupts.draw(worst, &mut self.rng)
    }

    pub(super) fn draw_bottom_half(&mut self, worst: u64) -> u64 {
        self.options.costs.bottom_halves.draw(worst, &mut self.rng)
    }

    pub(super) fn draw_task(&mut self, worst: u64) -> u64 {
        self.options.costs.tasks.draw(worst, &mut self.rng)
    }
}
