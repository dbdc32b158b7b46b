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
        for (name, lane) in system.frame_lanes() {
            if let Some(card) = system.card().filter(|_| lane.bottom_half.cycles > 0) {
                system
                    .flows
                    .push(flow(name, lane, card, system.receivers.len()));
                system.receivers.push(receiver(name, lane));
            }
        }
        system
    }

    /// The lanes of `[freertos]`, by what their frames are called.
    fn frame_lanes(&self) -> Vec<(&'static str, FrameLane)> {
        let Some(freertos) = &self.freertos else {
            return Vec::new();
        };
        let lanes = [
            ("common lane", Some(freertos.common)),
            ("orphans lane", freertos.orphans),
            ("fragments lane", freertos.fragments),
        ];
        let stated = lanes.into_iter();
        stated
            .filter_map(|(name, lane)| Some((name, lane?)))
            .collect()
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
