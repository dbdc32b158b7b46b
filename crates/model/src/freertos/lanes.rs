// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work for frames without a receiver, as work of the analysis.

use super::FrameLane;
use crate::system::{Cost, Flow, Receiver, Selector, System, TaskModel};

impl System {
    /// The system with what its FreeRTOS does. Each lane of `[freertos]` whose frames have a cost
    /// is a receiver and a flow, behind those of the file: any frame of the card may be for it. A
    /// tick ends the card's moderation, and the time slices of tasks. Without `[freertos]` it is
    /// the system itself.
    #[must_use]
    pub fn with_frame_lanes(self) -> Self {
        let mut system = self;
        let Some(freertos) = &system.freertos else {
            return system;
        };
        if system.cpu.tasks == TaskModel::Preemptive {
            let slice = &mut system.cpu.time_slice;
            *slice = slice.or(Some(freertos.tick_cycles));
        }
        let Some(card) = system.card() else {
            return system;
        };
        let source = system.sources.get_mut(card);
        if let Some(moderation) = source.and_then(|source| source.moderation.as_mut()) {
            moderation.tick = Some(freertos.tick_cycles);
        }
        for (key, lane) in freertos.lanes() {
            if lane.bottom_half.cycles > 0 {
                let name = format!("{key} lane");
                let of_lane = flow(&name, lane, card, system.receivers.len());
                system.flows.push(of_lane);
                system.receivers.push(receiver(&name, lane));
            }
        }
        system
    }

    /// The source of frames that FreeRTOS's tasks receive, as an index in [`System::sources`]: that
    /// of the flows with ports.
    pub(crate) fn card(&self) -> Option<usize> {
        let mut with_port = self
            .flows
            .iter()
            .filter(|flow| flow.selector.port.is_some());
        with_port.next().map(|flow| flow.source)
    }
}

fn receiver(name: &str, lane: FrameLane) -> Receiver {
    Receiver {
        name: name.to_owned(),
        urgency: lane.urgency,
        period: None,
        jitter: 0,
        deadline: None,
        wcet: Cost::NONE,
        blocking: Cost::NONE,
        critical_section: Cost::NONE,
        backlog: None,
        port: None,
    }
}

fn flow(name: &str, lane: FrameLane, source: usize, receiver: usize) -> Flow {
    Flow {
        name: name.to_owned(),
        source,
        receiver,
        selector: Selector::default(),
        rate: None,
        top_half: Cost::NONE,
        demux: Cost::NONE,
        bottom_half: lane.bottom_half,
        queue: Some(u64::from(lane.queue)),
        deadline: None,
    }
}
