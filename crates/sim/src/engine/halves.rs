// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bottom halves: the queues in which packets wait for them, and the order in which they run
//! (zhang2006 §3.2, lee2010 §4). The decisions are made by the code behind
//! core/include/weir/defer.h.

use std::collections::VecDeque;

use weir_core_sys::defer::{Class, Defer as Pending, Ties as CoreTies};
use weir_core_sys::demux::CLASSES;
use weir_core_sys::predict::{History, Prediction, Predictor};
use weir_model::{System, TickBudget};

use crate::SimulationError;
use crate::observer::{Loss, Observer, Queue, SimulationEvent, Track};
use crate::options::{Batches, By, Defer, Ties};

use super::build::UNSTATED;
use super::devices::QueuedPacket;
use super::{Engine, ProcessorState, Work};

/// A FIFO queue of packets that wait for their bottom halves.
#[derive(Debug, Default)]
pub(super) struct HalfQueue {
    packets: VecDeque<QueuedPacket>,
    /// The total and the remaining cycles of the first packet's bottom half. `None` until that
    /// bottom half has started.
    begun: Option<(u64, u64)>,
}

/// All packets that wait for their bottom halves, sorted into classes. If receivers are known in
/// the top half, there is a class for each urgency. If receivers are predicted, there is a class
/// for each device. Otherwise there is a single class.
pub(super) struct Halves {
    mode: Defer,
    /// The packet queue of each class.
    queues: Vec<HalfQueue>,
    urgencies: Vec<u8>,
    /// The total number of waiting packets.
    packets: usize,
    /// The classes whose bottom half has started, in the order of starting.
    begun: Vec<usize>,
    pending: Pending,
    /// The waiting packets of each flow.
    flows: Vec<FlowState>,
    /// The number of waiting packets without a receiver, by source.
    orphans: Vec<usize>,
    /// The packet budget of each receiver. `None` if the receiver has no budget.
    budgets: Vec<Option<BudgetState>>,
    /// Whether the next bottom half is the first after an idle period, so that its thread has to be
    /// woken.
    wakes: bool,
    predicted: Option<Predictions>,
}

/// The remaining packet budget of a receiver.
#[derive(Debug)]
struct BudgetState {
    of: TickBudget,
    /// The number of the clock tick at which the budget was replenished last.
    tick: u64,
    left: u64,
}

impl BudgetState {
    fn new(of: TickBudget) -> Self {
        Self {
            of,
            tick: 0,
            left: of.frames,
        }
    }

    /// Takes one packet from the budget. Returns whether a packet was left.
    fn admits(&mut self, now: u64) -> bool {
        let tick = now / self.of.tick;
        if tick != self.tick {
            self.tick = tick;
            self.left = self.of.frames;
        }
        let admits = self.left > 0;
        self.left = self.left.saturating_sub(1);
        admits
    }
}

#[derive(Debug)]
struct FlowState {
    receiver: usize,
    /// Whether the receiver of the flow has a packet budget.
    has_budget: bool,
    /// The class of the flow's packets. With prediction: the class of the flow's receiver at the
    /// predictors.
    class: u8,
    /// The number of waiting packets, and the most that can wait.
    waiting: usize,
    room: usize,
}

/// Returns the full budget of each receiver.
fn budgets(system: &System) -> Vec<Option<BudgetState>> {
    let mut budgets: Vec<Option<BudgetState>> = system.receivers.iter().map(|_| None).collect();
    for flow in &system.flows {
        if let Some(of) = system.tick_budget(flow) {
            budgets[flow.receiver] = Some(BudgetState::new(of));
        }
    }
    budgets
}

/// The predictors of the receivers of each device's packets.
struct Predictions {
    by: By,
    /// The predictor of each source.
    predictors: Vec<Predictor>,
    /// The urgency of each receiver class.
    urgencies: Vec<u8>,
    /// For each receiver: the sources that have packets for it, and the receiver's class.
    devices_of: Vec<(Vec<usize>, u8)>,
}

/// The class of packets without a receiver, and of packets for which no receiver waits. The class
/// is the lowest, so that such packets (address resolution, for example) are still handled.
const LOWEST: u8 = 0;

/// The most packets that can wait in a class: core/ counts them in 16 bits.
const MOST_WAITING: u16 = u16::MAX;

impl Halves {
    /// # Errors
    /// Fails if the system needs more classes than core/ has.
    pub fn new(system: &System, mode: Defer) -> Result<Self, SimulationError> {
        let mut urgencies: Vec<u8> = system
            .flows
            .iter()
            .map(|flow| system.receivers[flow.receiver].urgency)
            .collect();
        urgencies.push(0);
        urgencies.sort_unstable();
        urgencies.dedup();
        let flows = system
            .flows
            .iter()
            .map(|flow| {
                let urgency = system.receivers[flow.receiver].urgency;
                FlowState {
                    receiver: flow.receiver,
                    has_budget: system.tick_budget(flow).is_some(),
                    class: urgencies.partition_point(|&other| other < urgency) as u8,
                    waiting: 0,
                    room: flow.queue.map_or(UNSTATED, |queue| {
                        usize::try_from(queue).unwrap_or(usize::MAX)
                    }),
                }
            })
            .collect();
        let (classes, wanted_by) = match mode {
            Defer::Immediate => (vec![u8::MAX], "one"),
            Defer::Exact(_) => (
                urgencies.clone(),
                "one per urgency of a receiver of packets, and one for orphans",
            ),
            Defer::Predicted(..) => (vec![0; system.sources.len()], "one per source"),
        };
        let too_many =
            SimulationError::TooManyClasses(classes.len().max(urgencies.len()), wanted_by);
        if urgencies.len() > usize::from(CLASSES) {
            return Err(too_many);
        }
        let of_core: Vec<Class> = classes
            .iter()
            .map(|&urgency| Class {
                capacity: MOST_WAITING,
                urgency,
            })
            .collect();
        let pending = Pending::new(&of_core).map_err(|_| too_many)?;
        let mut halves = Self {
            mode,
            queues: classes.iter().map(|_| HalfQueue::default()).collect(),
            urgencies: classes,
            packets: 0,
            begun: Vec::new(),
            pending,
            flows,
            orphans: vec![0; system.sources.len()],
            budgets: budgets(system),
            wakes: false,
            predicted: None,
        };
        if let Defer::Predicted(by, _) = mode {
            let predicted = Predictions::new(system, by, &halves.flows, urgencies)?;
            halves.predicted = Some(predicted);
        }
        Ok(halves)
    }

    /// Returns the class whose first bottom half runs now. Returns `None` if a task of urgency
    /// `running` goes first, or if no packet waits.
    pub fn choose(&mut self, running: Option<u8>) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        if let Some(class) = self.pending.next(running, self.ties()) {
            self.begun.push(usize::from(class));
        }
        // A started bottom half continues unless a task is more urgent.
        let &class = self.begun.last()?;
        (running.is_none_or(|running| self.urgencies[class] >= running)).then_some(class)
    }

    fn ties(&self) -> CoreTies {
        match self.mode {
            Defer::Immediate | Defer::Exact(Ties::Run) | Defer::Predicted(_, Ties::Run) => {
                CoreTies::Run
            }
            Defer::Exact(Ties::Wait) | Defer::Predicted(_, Ties::Wait) => CoreTies::Wait,
        }
    }

    /// Returns the receiver of the first packet in a class. `None` if the packet has no receiver.
    pub fn receiver(&self, class: usize) -> Option<usize> {
        let flow = self.queues[class].packets.front()?.flow?;
        Some(self.flows[flow as usize].receiver)
    }

    /// Returns the timeline track of the bottom half of the first packet in a class.
    pub fn track(&self, class: usize) -> Track {
        match self.queues[class].packets.front() {
            Some(QueuedPacket {
                flow: Some(flow), ..
            }) => Track::BottomHalf(*flow as usize),
            Some(packet) => Track::Orphan(packet.source as usize),
            None => Track::Orphan(0),
        }
    }

    /// Subtracts `cycles` from the remaining work of the first bottom half in a class.
    pub fn ran(&mut self, class: usize, cycles: u64) {
        if let Some((_, left)) = &mut self.queues[class].begun {
            *left = left.saturating_sub(cycles);
        }
    }

    fn class_of(&self, packet: &QueuedPacket) -> u8 {
        match self.mode {
            Defer::Immediate => 0,
            Defer::Exact(_) => packet
                .flow
                .map_or(LOWEST, |flow| self.flows[flow as usize].class),
            Defer::Predicted(..) => packet.source as u8,
        }
    }

    /// Takes a packet from the budget of its receiver. Returns whether the budget is exceeded.
    fn is_over_budget(&mut self, flow: Option<usize>, now: u64) -> bool {
        let Some(flow) = flow
            .map(|flow| &self.flows[flow])
            .filter(|of| of.has_budget)
        else {
            return false;
        };
        let budget = self.budgets[flow.receiver].as_mut();
        budget.is_some_and(|budget| !budget.admits(now))
    }

    /// Returns the number of packets that wait in the same queue as this packet, and the capacity
    /// of that queue.
    fn count_of(&mut self, packet: &QueuedPacket) -> (&mut usize, usize) {
        match packet.flow {
            Some(flow) => {
                let flow = &mut self.flows[flow as usize];
                (&mut flow.waiting, flow.room)
            }
            None => (&mut self.orphans[packet.source as usize], UNSTATED),
        }
    }

    fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Draws the additional cost of the next bottom half: waking its thread, and a backlog that
    /// exceeds the cache.
    fn batch_costs(&mut self, batches: Batches, track: Track) -> u64 {
        let mut cycles = 0;
        if std::mem::take(&mut self.wakes) {
            cycles += batches.wake;
        }
        match track {
            Track::BottomHalf(flow) if self.flows[flow].waiting as u64 > batches.room => {
                cycles += batches.beyond;
            }
            _ => {}
        }
        cycles
    }

    /// Queues a packet for its bottom half. Returns how many packets of its flow wait, or `None` if
    /// the queue is full.
    fn push(&mut self, packet: QueuedPacket) -> Option<usize> {
        let class = self.class_of(&packet);
        let (count, room) = self.count_of(&packet);
        if *count >= room {
            return None;
        }
        *count += 1;
        let count = *count;
        if !self.pending.push(class) {
            *self.count_of(&packet).0 -= 1;
            return None;
        }
        self.queues[usize::from(class)].packets.push_back(packet);
        self.packets += 1;
        Some(count)
    }

    /// Removes the first packet in a class, whose bottom half has ended. Returns the packet, the
    /// cycles of the bottom half, and how many packets of the same flow still wait.
    fn pop(&mut self, class: usize) -> Option<(QueuedPacket, u64, usize)> {
        let packet = self.queues[class].packets.pop_front()?;
        self.packets -= 1;
        let cycles = self.queues[class]
            .begun
            .take()
            .map_or(0, |(cycles, _)| cycles);
        let (count, _) = self.count_of(&packet);
        *count -= 1;
        let count = *count;
        self.begun.pop();
        self.pending.done(class as u8);
        if let Some(predicted) = &mut self.predicted {
            let receiver = packet.flow.map(|flow| self.flows[flow as usize].class);
            predicted.predictors[packet.source as usize].handled(receiver);
            self.predict(packet.source as usize);
        }
        Some((packet, cycles, count))
    }

    /// Tells the predictors, after a top half or at a clock tick, which devices have deferred
    /// bottom halves: the prediction from history may be wrong for them.
    pub fn put_off(&mut self, running: Option<u8>) {
        if self.predicted.is_none() || self.pending.would_run(running, self.ties()) {
            return;
        }
        for source in 0..self.queues.len() {
            if !self.queues[source].packets.is_empty() && self.queues[source].begun.is_none() {
                if let Some(predicted) = &mut self.predicted {
                    predicted.predictors[source].deferred();
                }
                self.predict(source);
            }
        }
    }

    /// Sets the urgency of a device's class to the urgency that the predictor returns.
    fn predict(&mut self, source: usize) {
        let Some(predicted) = &self.predicted else {
            return;
        };
        let predictor = &predicted.predictors[source];
        let receiver = predictor.predict(match predicted.by {
            By::Waiting => Prediction::Waiting,
            By::Registered => Prediction::Registered,
            By::History => Prediction::History,
        });
        let urgency = predicted.urgencies[usize::from(receiver.unwrap_or(LOWEST))];
        self.urgencies[source] = urgency;
        self.pending.set_urgency(source as u8, urgency);
    }

    /// Tells the predictors that a receiver begins or stops waiting for packets.
    pub fn receiver_waits(&mut self, receiver: usize, waits: bool) {
        let Some(predicted) = &mut self.predicted else {
            return;
        };
        let (devices, class) = std::mem::take(&mut predicted.devices_of[receiver]);
        for &source in &devices {
            if let Some(predicted) = &mut self.predicted {
                let predictor = &mut predicted.predictors[source];
                if waits {
                    predictor.wait(class);
                } else {
                    predictor.stop_waiting(class);
                }
            }
            self.predict(source);
        }
        if let Some(predicted) = &mut self.predicted {
            predicted.devices_of[receiver] = (devices, class);
        }
    }
}

impl Predictions {
    /// At the beginning every receiver waits.
    fn new(
        system: &System,
        by: By,
        flows: &[FlowState],
        urgencies: Vec<u8>,
    ) -> Result<Self, SimulationError> {
        let mut predicted = Self {
            by,
            predictors: system
                .sources
                .iter()
                .map(|_| Predictor::new(History::default()))
                .collect::<Result<_, _>>()
                .map_err(SimulationError::History)?,
            urgencies,
            devices_of: vec![(Vec::new(), LOWEST); system.receivers.len()],
        };
        for (flow, state) in system.flows.iter().zip(flows) {
            let (devices, class) = &mut predicted.devices_of[flow.receiver];
            *class = state.class;
            if !devices.contains(&flow.source) {
                devices.push(flow.source);
                predicted.predictors[flow.source].register(state.class);
                predicted.predictors[flow.source].wait(state.class);
            }
        }
        Ok(predicted)
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Queues a packet that an interrupt has taken from the device for its bottom half.
    pub(super) fn defer(&mut self, packet: QueuedPacket) {
        let (source, flow) = (
            packet.source as usize,
            packet.flow.map(|flow| flow as usize),
        );
        if self.halves.is_over_budget(flow, self.now) {
            self.lose_packet(source, flow, Loss::OverBudget);
            return;
        }
        let wakes = self.options.costs.batches.wake > 0 && self.halves.is_empty();
        if self.is_done_in_the_top_half(&packet) {
            self.hand_to_receiver(packet, 0);
            return;
        }
        match self.halves.push(packet) {
            Some(depth) => {
                self.attention = true;
                self.halves.wakes |= wakes;
                self.tell_half_depth(source, flow, depth);
            }
            None => self.lose_packet(source, flow, Loss::QueueFull),
        }
    }

    /// A bottom half that costs nothing is skipped: the receiver gets the packet in the top half.
    /// If the receiver is only predicted, the bottom half is needed to find it.
    fn is_done_in_the_top_half(&self, packet: &QueuedPacket) -> bool {
        let costs = packet.flow.map(|flow| self.costs.flows[flow as usize]);
        let is_free = costs.is_some_and(|costs| costs.bottom_half == 0);
        let is_known = !matches!(self.options.defer, Defer::Predicted(..));
        is_free && is_known && self.options.costs.batches == Batches::default()
    }

    fn tell_half_depth(&mut self, source: usize, flow: Option<usize>, depth: usize) {
        let queue = flow.map_or(Queue::Orphans(source), Queue::Deferred);
        self.tell(SimulationEvent::Depth(queue, depth as u64));
    }

    /// Starts or resumes the bottom half of the first packet in a queue.
    pub(super) fn enter_half(&mut self, queue: usize) {
        let track = self.halves.track(queue);
        let (cycles, resumes) = match self.halves.queues[queue].begun {
            Some((_, left)) => (left, true),
            None => {
                let worst = match track {
                    Track::BottomHalf(flow) => self.costs.flows[flow].bottom_half,
                    Track::Orphan(source) => self.costs.orphans[source].bottom_half,
                    _ => 0,
                };
                let batch = self.halves.batch_costs(self.options.costs.batches, track);
                let cycles = self.draw_bottom_half(worst + batch);
                self.halves.queues[queue].begun = Some((cycles, cycles));
                (cycles, false)
            }
        };
        self.runs(
            ProcessorState::Thread(Work::Half(queue)),
            cycles,
            track,
            resumes,
        );
    }

    /// Ends the running bottom half and delivers its packet.
    pub(super) fn finish_half(&mut self, queue: usize) {
        let track = self.halves.track(queue);
        self.ended(track);
        let Some((packet, cycles, depth)) = self.halves.pop(queue) else {
            return;
        };
        let source = packet.source as usize;
        let flow = packet.flow.map(|flow| flow as usize);
        self.tell_half_depth(source, flow, depth);
        self.hand_to_receiver(packet, cycles);
    }

    /// Delivers a packet to its receiver after a bottom half of `cycles` cycles.
    fn hand_to_receiver(&mut self, packet: QueuedPacket, cycles: u64) {
        let source = packet.source as usize;
        let flow = packet.flow.map(|flow| flow as usize);
        let receiver = flow.map(|flow| self.halves.flows[flow].receiver);
        self.accounting
            .handled(source, receiver, packet.spent, cycles);
        let (Some(flow), Some(receiver)) = (flow, receiver) else {
            self.tally.orphans += cycles;
            self.lose(source, Loss::Orphan);
            return;
        };
        self.tally.tasks[receiver].charged += cycles;
        if self.deliver(receiver) {
            let late = self.is_late(flow, &packet);
            let tally = &mut self.tally.flows[flow];
            tally.delivered += 1;
            tally.late += u64::from(late);
            tally.latencies.add(self.now - packet.arrived);
        } else {
            self.lose_packet(source, Some(flow), Loss::BacklogFull);
        }
    }

    fn is_late(&self, flow: usize, packet: &QueuedPacket) -> bool {
        let deadline = self.system.flows[flow].deadline;
        deadline.is_some_and(|deadline| self.now - packet.arrived > deadline)
    }

    /// Counts the packets that are past their deadline at the end of the run and still wait in a
    /// device or for a bottom half.
    pub(super) fn close_packets(&mut self) {
        let in_devices = self.lines.iter().filter_map(|line| line.device.as_ref());
        let waiting = self.halves.queues.iter().map(|queue| &queue.packets);
        let packets = in_devices.map(|device| &device.ring).chain(waiting);
        for packet in packets.flatten() {
            if let Some(flow) = packet.flow {
                let late = self.is_late(flow as usize, packet);
                self.tally.flows[flow as usize].late += u64::from(late);
            }
        }
    }
}
