// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrivals, and the device queues that hold packets until an interrupt takes them.

use std::collections::VecDeque;

use weir_arrivals::What;

use crate::agenda::NEVER;
use crate::observer::{Loss, Observer, Queue, SimulationEvent};
use crate::options::{Defer, Target};

use super::Engine;

/// A packet between its arrival and its delivery to a receiver.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuedPacket {
    pub source: u32,
    /// The packet's flow. `None` if the packet has no receiver.
    pub flow: Option<u32>,
    pub arrived: u64,
    /// The cycles that the interrupt spent on this packet: its share of the handler, its top half,
    /// and finding its receiver.
    pub spent: u64,
}

/// A device that holds packets, such as one queue of a network card.
pub(super) struct DeviceRing {
    pub ring: VecDeque<QueuedPacket>,
    pub size: usize,
    /// The index of the queue in the moderator. `None` if the device does not moderate its
    /// interrupts.
    pub moderated: Option<usize>,
}

impl DeviceRing {
    /// Returns the number of packets, `most` at most, that an interrupt would take now.
    pub fn ready(&self, most: u64) -> usize {
        usize::try_from(most).map_or(self.ring.len(), |most| self.ring.len().min(most))
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Handles the next arrival of a stream and schedules the one after it.
    pub(super) fn arrive(&mut self, stream: usize) {
        let of = &mut self.streams[stream];
        let to = of.to;
        let Some(arrival) = of.next.take() else {
            return;
        };
        of.next = of.arrivals.next();
        let next = of.next.as_ref().map_or(NEVER, |arrival| arrival.at);
        self.agenda.set(stream, next);
        let named = match arrival.what {
            What::Packet(packet) => packet.flow.map(|flow| of.flows[usize::from(flow)]),
            _ => None,
        };
        let (mut source, mut flow) = match (to, named) {
            (Target::Flow(flow), _) | (Target::Source(_), Some(flow)) => {
                (self.system.flows[flow].source, Some(flow))
            }
            (Target::Source(source), None) => (source, None),
        };
        if let (What::Packet(packet), None) = (arrival.what, flow) {
            flow = self.selectors.flow_of(self.system, source, &packet);
            // A network card puts the packet into the queue of its flow (behnke2022 §2.2).
            source = flow.map_or(source, |flow| self.system.flows[flow].source);
        }
        match arrival.what {
            What::Rise => self.level(source, true),
            What::Fall => self.level(source, false),
            What::Request | What::Packet(_) => {
                let tally = &mut self.tally.sources[source];
                tally.arrived += 1;
                tally.gaps.arrived(self.now);
                self.tell(SimulationEvent::Arrived(source));
                if self.lines[source].device.is_none() {
                    self.ask(source);
                    return;
                }
                self.receive(source, flow);
            }
        }
    }

    /// Puts a packet into the device's queue.
    fn receive(&mut self, source: usize, flow: Option<usize>) {
        let now = self.now;
        if let Some(flow) = flow {
            let tally = &mut self.tally.flows[flow];
            tally.arrived += 1;
            tally.gaps.arrived(now);
        }
        let Some(device) = &mut self.lines[source].device else {
            return;
        };
        if flow.is_none() && device.moderated.is_some() {
            self.lose(source, Loss::NoReceiver);
            return;
        }
        let (accepted, interrupts) = match (&mut self.moderator, device.moderated) {
            (Some(moderator), Some(queue)) => {
                let step = moderator.arrive(queue, now);
                (step.accepted, step.interrupt)
            }
            _ => (device.ring.len() < device.size, true),
        };
        if accepted {
            device.ring.push_back(QueuedPacket {
                source: source as u32,
                flow: flow.map(|flow| flow as u32),
                arrived: now,
                spent: 0,
            });
            let depth = device.ring.len() as u64;
            self.tell(SimulationEvent::Depth(Queue::Device(source), depth));
            self.moderation_changed();
            if interrupts {
                self.ask(source);
            }
        } else {
            self.lose_packet(source, flow, Loss::DeviceFull);
        }
    }

    pub(super) fn lose_packet(&mut self, source: usize, flow: Option<usize>, why: Loss) {
        if let Some(flow) = flow {
            self.tally.flows[flow].lost.add(why);
        }
        self.lose(source, why);
    }

    fn moderation_changed(&mut self) {
        if let Some(moderator) = &self.moderator {
            let next = moderator.next(self.now).unwrap_or(NEVER);
            self.agenda.set(self.slots.moderation, next);
        }
    }

    /// Raises the moderated interrupts that are due now.
    pub(super) fn moderation_is_due(&mut self) {
        let due: Vec<usize> = match &mut self.moderator {
            Some(moderator) => moderator.due(self.now).collect(),
            None => Vec::new(),
        };
        for queue in due {
            self.ask(self.moderated[queue]);
        }
        self.moderation_changed();
    }

    /// Draws the interrupt's costs for the packet at position `place` of the device queue: the top
    /// half, and finding the receiver.
    pub(super) fn packet_costs(&mut self, source: usize, place: usize) -> (u64, u64) {
        let costs = match self.flow_of(source, place) {
            Some(flow) => self.costs.flows[flow],
            None => self.costs.orphans[source],
        };
        let demux = match self.options.defer {
            Defer::Exact(_) => self.draw_interrupt(costs.demux),
            Defer::Immediate | Defer::Predicted(..) => 0,
        };
        let top_half = self.draw_interrupt(costs.top_half);
        self.spend(source, place, top_half + demux);
        (top_half, demux)
    }

    /// Charges `cycles` of the interrupt to the packet at position `place` of the device queue and
    /// to the packet's receiver.
    pub(super) fn spend(&mut self, source: usize, place: usize, cycles: u64) {
        match self.flow_of(source, place) {
            Some(flow) => {
                let receiver = self.system.flows[flow].receiver;
                self.tally.tasks[receiver].charged += cycles;
            }
            None => self.tally.orphans += cycles,
        }
        if let Some(packet) = self.packet_at(source, place) {
            packet.spent += cycles;
        }
    }

    fn packet_at(&mut self, source: usize, place: usize) -> Option<&mut QueuedPacket> {
        self.lines[source].device.as_mut()?.ring.get_mut(place)
    }

    fn flow_of(&mut self, source: usize, place: usize) -> Option<usize> {
        let packet = self.packet_at(source, place)?;
        packet.flow.map(|flow| flow as usize)
    }

    /// Hands `packets` packets over to bottom halves. If packets are left in the device, the device
    /// raises its interrupt again.
    pub(super) fn hand_over(&mut self, source: usize, packets: usize) {
        self.tally.sources[source].taken += packets as u64;
        let mut asks = false;
        if let Some(device) = &mut self.lines[source].device {
            asks = device.ring.len() > packets;
            if let (Some(moderator), Some(queue)) = (&mut self.moderator, device.moderated) {
                asks = moderator.take(queue, packets as u32, self.now);
            }
        }
        for _ in 0..packets {
            let packet = self.lines[source]
                .device
                .as_mut()
                .and_then(|device| device.ring.pop_front());
            if let Some(packet) = packet {
                self.defer(packet);
            }
        }
        let depth = self.lines[source]
            .device
            .as_ref()
            .map_or(0, |device| device.ring.len() as u64);
        self.tell(SimulationEvent::Depth(Queue::Device(source), depth));
        self.moderation_changed();
        let running = self.urgency_of_tasks();
        self.halves.put_off(running);
        if asks {
            self.ask(source);
        }
    }
}
