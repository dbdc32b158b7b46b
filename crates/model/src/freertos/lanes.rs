// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work for frames without a receiver, as work of the analysis.

use super::FrameLane;
use crate::system::{Cost, Flow, Receiver, Selector, System};

impl System {
    /// The system with a receiver and a flow for each lane of `[freertos]` whose frames have a
    /// cost, behind those of the file. Any frame of the card may be for it. Without `[freertos]` it
    /// is the system itself.
    #[must_use]
    pub fn with_frame_lanes(self) -> Self {
        let mut system = self;
        let (Some(card), Some(freertos)) = (system.card(), &system.freertos) else {
            return system;
        };
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
