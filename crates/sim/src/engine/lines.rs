// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupt lines of sources: pending bits, enable bits, and the limiters that control them.

use weir_model::{EventCosts, Policy};

use crate::agenda::NEVER;
use crate::limiter::{Orders, SERVE, TimedLimiter};
use crate::observer::{Loss, Observer, SimulationEvent};

use super::Engine;
use super::devices::DeviceRing;

/// The interrupt line of a source.
pub(super) struct SourceLine {
    /// The software limiter that the source's interrupt handler calls. `None` if the source has
    /// none.
    pub limiter: Option<TimedLimiter>,
    /// The hardware limiter between the device and the interrupt controller. `None` if the source
    /// has none.
    pub gate: Option<Gate>,
    /// The ranks of the source's line and of the source's own timer. `None` for the line of a
    /// source that is only polled, and for a timer that sources share.
    pub request_rank: Option<usize>,
    pub expiry_rank: Option<usize>,
    /// The polling interval in cycles. `None` if the source is not polled.
    pub poll: Option<u64>,
    pub pending: bool,
    /// The instant at which the pending request was raised.
    pub asked: u64,
    /// The instant since which only other interrupts delay the pending request.
    pub admitted: u64,
    /// The instant of the last match of the timer that clears the source.
    pub matched: u64,
    /// The instant at which the held-back request was raised. Its interrupt was taken, but the
    /// limiter refused to serve it. `None` if no request is held back.
    pub held: Option<u64>,
    pub enabled: bool,
    /// Whether a level-triggered line is high.
    pub is_high: bool,
    /// The cycle at which the timer tells the limiter that an instant has passed. `None` if the
    /// limiter watches for nothing.
    pub watched: Option<u64>,
    pub costs: EventCosts,
    /// The cycles of a served request if nothing limits the source.
    pub plain: u64,
    /// The cycles of the handler without units of work, and the cycles of one unit.
    pub handler: u64,
    pub work: u64,
    /// The most units of work in one interrupt.
    pub max_work: u64,
    pub device: Option<DeviceRing>,
}

/// A limiter in hardware. It stores one request that comes too early, and delivers it when the
/// limit allows (regehr2005 §3.4). A request within the limit is delivered at once: the simulation
/// leaves out the delay of the hardware, K of docs/analysis.md, which only the bounds contain.
pub(super) struct Gate {
    pub limiter: TimedLimiter,
    pub open: bool,
    /// The arrival of the stored request. `None` if no request is stored.
    pub noted: Option<u64>,
}

/// The work of one part of an interrupt, for one source.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Service {
    pub source: usize,
    pub serves: bool,
    /// The instant at which the served request was raised. `None` if this part serves no request.
    pub asked: Option<u64>,
    /// The instant at which the limiter admitted the request.
    pub admitted: u64,
    pub packets: usize,
    /// The cycles of each stage.
    pub tick: u64,
    pub limit: u64,
    pub handler: u64,
    pub demux: u64,
}

impl Service {
    pub fn limiting(cycles: u64) -> Self {
        Self {
            limit: cycles,
            ..Self::default()
        }
    }

    pub fn tick(cycles: u64) -> Self {
        Self {
            tick: cycles,
            ..Self::default()
        }
    }

    pub fn cycles(&self) -> u64 {
        self.tick + self.limit + self.handler + self.demux
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Raises the source's interrupt. If the source has no device queue and a request is already
    /// pending, the new request is lost. If it has one, the queue keeps the packets.
    pub(super) fn ask(&mut self, source: usize) {
        if self.lines[source].gate.is_some() {
            self.ask_gate(source);
        } else {
            self.raise(source, self.now);
        }
    }

    /// Sets the pending bit for a request that was raised at `asked`.
    fn raise(&mut self, source: usize, asked: u64) {
        let line = &mut self.lines[source];
        if line.pending {
            if line.device.is_none() {
                self.lose(source, Loss::Pending);
            }
            return;
        }
        line.pending = true;
        line.asked = asked;
        line.admitted = self.now;
        self.let_through(source);
    }

    pub(super) fn lose(&mut self, source: usize, why: Loss) {
        self.tally.sources[source].lost.add(why);
        self.tell(SimulationEvent::Lost(source, why));
    }

    /// Signals a pending request to the processor if its line is enabled.
    fn let_through(&mut self, source: usize) {
        let line = &self.lines[source];
        if let Some(rank) = line.request_rank {
            if line.pending && line.enabled {
                self.asking.insert(rank);
                self.attention = true;
            } else {
                self.asking.remove(rank);
            }
        }
    }

    /// Changes the level of a level-triggered line. If the level falls before the interrupt is
    /// taken, the request is not served.
    pub(super) fn level(&mut self, source: usize, is_high: bool) {
        let line = &mut self.lines[source];
        line.is_high = is_high;
        if is_high {
            self.ask(source);
        } else {
            line.pending = false;
            if let Some(gate) = &mut line.gate {
                gate.noted = None;
            }
            self.let_through(source);
        }
    }

    fn ask_gate(&mut self, source: usize) {
        let now = self.now;
        let Some(gate) = &mut self.lines[source].gate else {
            return;
        };
        if gate.noted.is_some() {
            if self.lines[source].device.is_none() {
                self.lose(source, Loss::Masked);
            }
        } else if gate.open {
            let orders = gate.limiter.request(now, false);
            self.gate_orders(source, orders, now);
        } else {
            gate.noted = Some(now);
        }
    }

    fn gate_orders(&mut self, source: usize, orders: Orders, asked: u64) {
        if let Some(gate) = &mut self.lines[source].gate {
            let was_open = gate.open;
            gate.open = (gate.open || orders.unmask) && !orders.mask;
            let is_open = gate.open;
            if let Some(at) = orders.arm {
                self.agenda.set(self.slots.own_timers + source, at);
            }
            if was_open != is_open {
                self.masked(source, !is_open);
            }
            if orders.serve {
                self.raise(source, asked);
            }
        }
    }

    /// Handles a match of the compare register of a source's own timer.
    pub(super) fn own_timer_matches(&mut self, source: usize) {
        let slot = self.slots.own_timers + source;
        let line = &mut self.lines[source];
        line.matched = self.now;
        self.agenda.set(
            slot,
            line.poll.map_or(NEVER, |interval| self.now + interval),
        );
        if let Some(gate) = &mut line.gate {
            let noted = gate.noted.take();
            let orders = gate.limiter.expired(self.now, noted.is_some());
            if !orders.serve {
                gate.noted = noted;
            }
            self.gate_orders(source, orders, noted.unwrap_or(self.now));
        } else if let Some(rank) = line.expiry_rank {
            self.asking.insert(rank);
            self.attention = true;
        }
    }

    /// Handles a match of a shared timer.
    pub(super) fn shared_timer_matches(&mut self, timer: usize) {
        let slot = self.slots.shared_timers + timer;
        self.agenda
            .set(slot, self.now + self.system.timers[timer].period.cycles());
        self.asking.insert(self.timer_ranks[timer]);
        self.attention = true;
        for &source in &self.clears[timer] {
            self.lines[source].matched = self.now;
        }
    }

    /// Starts the source's interrupt and asks the limiter what to do.
    pub(super) fn take_request(&mut self, source: usize) -> Service {
        let now = self.now;
        let line = &mut self.lines[source];
        self.tally.sources[source].interrupts += 1;
        // A line that is still high raises the interrupt again. If there is a hardware limiter, the
        // limiter does so.
        line.pending = line.is_high && line.gate.is_none();
        let asked = std::mem::replace(&mut line.asked, now);
        let admitted = std::mem::replace(&mut line.admitted, now);
        let orders = match &mut line.limiter {
            Some(limiter) => limiter.request(now, line.watched.is_some_and(|at| at <= now)),
            None => SERVE,
        };
        let (costs, plain) = (line.costs, line.plain);
        let service = if orders.serve {
            let overhead = costs.request_served.saturating_sub(plain);
            Service {
                admitted,
                ..self.serve(
                    source,
                    Some(asked),
                    costs.request_served - overhead,
                    overhead,
                )
            }
        } else {
            if !line.is_high {
                line.held.get_or_insert(asked);
            }
            self.tally.sources[source].refused += 1;
            Service {
                source,
                ..Service::limiting(self.draw_interrupt(costs.request_refused))
            }
        };
        self.perform(source, orders);
        if self.lines[source].is_high && self.lines[source].gate.is_some() {
            self.ask_gate(source);
        }
        service
    }

    /// Starts the interrupt of the source's own timer: asks the limiter, or polls the line.
    pub(super) fn take_expiry(&mut self, source: usize) -> Service {
        self.tally.sources[source].expiries += 1;
        self.clear(source)
    }

    /// Handles one source in a timer's interrupt.
    pub(super) fn clear(&mut self, source: usize) -> Service {
        let now = self.now;
        let line = &mut self.lines[source];
        // If the port does not serve requests inside the timer's interrupt, a pending request takes
        // an interrupt of its own.
        let pending = line.pending && (line.costs.expiry_served > 0 || line.poll.is_some());
        let orders = match &mut line.limiter {
            Some(limiter) => limiter.expired(now, pending),
            None => Orders {
                serve: pending,
                ack: pending,
                ..Orders::default()
            },
        };
        let costs = line.costs;
        let service = if orders.serve {
            let asked = if orders.ack {
                line.pending = line.is_high;
                Some(line.asked)
            } else {
                line.held.take()
            };
            let admitted = asked.unwrap_or(0).max(self.lines[source].matched);
            Service {
                admitted,
                ..self.serve(source, asked, 0, costs.expiry_served)
            }
        } else {
            Service {
                source,
                ..Service::limiting(self.draw_interrupt(costs.expiry_empty))
            }
        };
        self.perform(source, orders);
        service
    }

    /// Runs the handler: `entry` cycles for entering and leaving the interrupt, `overhead` for the
    /// limiter.
    fn serve(&mut self, source: usize, asked: Option<u64>, entry: u64, overhead: u64) -> Service {
        let line = &self.lines[source];
        let (handler, work) = (line.handler, line.work);
        let (packets, units) = match &line.device {
            Some(device) => {
                let packets = device.ready(line.max_work);
                (packets, packets as u64)
            }
            None => (0, line.max_work),
        };
        let (mut top_halves, mut demux) = (0, 0);
        for packet in 0..packets {
            let (top, find) = self.packet_costs(source, packet);
            top_halves += top;
            demux += find;
        }
        let limit = self.draw_interrupt(overhead);
        let handler = self.draw_interrupt(entry + handler + work * units);
        if packets > 0 {
            let (each, rest) = (handler / packets as u64, handler % packets as u64);
            self.spend(source, 0, rest);
            for packet in 0..packets {
                self.spend(source, packet, each);
            }
        }
        Service {
            source,
            serves: true,
            asked,
            admitted: self.now,
            packets,
            tick: 0,
            limit,
            handler: handler + top_halves,
            demux,
        }
    }

    /// Carries out the limiter's orders.
    fn perform(&mut self, source: usize, orders: Orders) {
        let line = &mut self.lines[source];
        let sets_timer = orders.arm.is_some() || orders.watch.is_some() || orders.disarm;
        if let Some(rank) = line.expiry_rank.filter(|_| sets_timer) {
            // A timer channel has one compare register, so a new instant replaces the old one.
            let slot = self.slots.own_timers + source;
            self.agenda.set(slot, orders.arm.unwrap_or(NEVER));
            self.asking.remove(rank);
            line.watched = None;
        }
        if let Some(at) = orders.watch {
            line.watched = Some(at);
        }
        let was = line.enabled;
        line.enabled = (was || orders.unmask) && !orders.mask;
        let is = line.enabled;
        if is && !was {
            line.admitted = self.now;
        }
        if was != is {
            self.masked(source, !is);
        }
        self.let_through(source);
    }

    /// Counts the requests that are past their deadline at the end of the run.
    pub(super) fn close_lines(&mut self) {
        for (source, line) in self.lines.iter().enumerate() {
            let deadline = self.system.sources[source].deadline;
            // The limiter has not admitted a request that waits for a poll.
            let is_polled = self.policy_of(source) == Policy::Poll;
            let waits = line.pending && line.enabled && !is_polled;
            if waits && deadline.is_some_and(|deadline| self.now - line.admitted > deadline) {
                self.tally.sources[source].missed += 1;
                self.tally.sources[source].overdue += 1;
            }
        }
    }

    /// Returns the limiting policy of the source in this run.
    pub(super) fn policy_of(&self, source: usize) -> Policy {
        if self.options.limits {
            self.system.sources[source].limit.policy
        } else {
            Policy::Off
        }
    }
}
