// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adds the work of FreeRTOS for the tasks and frames of a file to the analysis.

use super::FrameLane;
use crate::system::{Cost, Flow, Origin, Receiver, Selector, System, TaskModel};

impl System {
    /// Adds the work of FreeRTOS to the system. Each lane of `[freertos]` whose frames have a cost
    /// becomes a receiver and a flow, after those of the file, because any frame of the network
    /// card may belong to the lane. A tick ends the card's moderation, and the time slices of
    /// tasks. Workers and receivers of frames take at least one cycle, because they run and wait
    /// for more urgent work. The system does not change without `[freertos]`.
    #[must_use]
    pub fn with_freertos_work(self) -> Self {
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
        for flow in &mut system.flows {
            if flow.source == card && flow.selector.port.is_some() {
                runs(&mut flow.bottom_half);
                let receiver = system.receivers.get_mut(flow.receiver);
                receiver.into_iter().for_each(|of| runs(&mut of.wcet));
            }
        }
        for (key, lane) in freertos.lanes() {
            if lane.bottom_half.origin != Origin::Default {
                let name = format!("{key} lane");
                let of_lane = flow(&name, lane, card, system.receivers.len());
                let of_worker = receiver(&name, lane, &system.receivers);
                system.flows.push(of_lane);
                system.receivers.push(of_worker);
            }
        }
        system
    }

    /// The source of the frames that FreeRTOS's tasks receive, as an index in [`System::sources`].
    /// It is the source of the flows that have ports.
    pub(crate) fn card(&self) -> Option<usize> {
        let mut with_port = self
            .flows
            .iter()
            .filter(|flow| flow.selector.port.is_some());
        with_port.next().map(|flow| flow.source)
    }
}

/// Raises a cost to at least one cycle.
fn runs(cost: &mut Cost) {
    cost.cycles = cost.cycles.max(1);
}

/// The worker of a lane. It can wait for the stack's lock for as long as the receivers of its
/// urgency do.
fn receiver(name: &str, lane: FrameLane, receivers: &[Receiver]) -> Receiver {
    let same = receivers.iter().filter(|of| of.urgency == lane.urgency);
    let blocking = same.map(|of| of.blocking).max_by_key(|of| of.cycles);
    Receiver {
        name: name.to_owned(),
        urgency: lane.urgency,
        period: None,
        jitter: 0,
        deadline: None,
        wcet: Cost::NONE,
        blocking: blocking.unwrap_or(Cost::NONE),
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
        bottom_half: Cost {
            cycles: lane.bottom_half.cycles.max(1),
            ..lane.bottom_half
        },
        queue: Some(u64::from(lane.queue)),
        deadline: None,
    }
}
