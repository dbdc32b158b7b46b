// SPDX-License-Identifier: MIT OR Apache-2.0
//! A system as the analysis, the generators and the simulator see it. It has been checked, its
//! times are in cycles, and every cost is known.
//!
//! This is the meaning of a system file. `file` reads the text and `resolve` turns it into these
//! types. Code that uses them does not have to handle units, names that do not exist, or limits
//! that a timer cannot keep.

use weir_boards::Board;
pub use weir_boards::{Policy, Timing};

pub use crate::file::leaf::Network;
pub use crate::file::words::{Nesting, Place, Protocol, TaskModel, Trigger};

use crate::{Freertos, Linux, LinuxBoundError, Rate, Silicon, SiliconLimit};

/// A whole system. Names are unique among the sources, and likewise among the timers, receivers and
/// flows.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// The name of the system in the file; the file's stem if the file states no name.
    pub name: String,
    /// SHA-256 of the file's bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// The processor.
    pub cpu: Cpu,
    /// The limiter in silicon; `None` if no limit is in hardware.
    pub silicon: Option<Silicon>,
    /// The sources of interrupts, in the file's order.
    pub sources: Vec<Source>,
    /// The timers that limits use, in the file's order.
    pub timers: Vec<Timer>,
    /// The tasks, in the file's order.
    pub receivers: Vec<Receiver>,
    /// The flows from sources to receivers, in the file's order.
    pub flows: Vec<Flow>,
    /// The settings of the file for `weir linux`.
    pub linux: Linux,
    /// The settings of the file for FreeRTOS; `None` if it has none.
    pub freertos: Option<Freertos>,
}

impl System {
    /// The flows of a source, each with its index in [`System::flows`].
    pub fn flows_of(&self, source: usize) -> impl Iterator<Item = (usize, &Flow)> {
        let flows = self.flows.iter().enumerate();
        flows.filter(move |(_, flow)| flow.source == source)
    }

    /// Adds the work of the operating system to the system: the threads of Linux and the lanes of
    /// FreeRTOS. Bounds only hold for the system with this work.
    ///
    /// # Errors
    /// Returns the errors of [`System::with_threads`].
    pub fn with_kernel_work(self) -> Result<Self, LinuxBoundError> {
        Ok(self.with_threads()?.with_freertos_work())
    }

    /// The flows of a source that state a rate and a deadline, as their indices in
    /// [`System::flows`] and their rates. None of their packets may be lost.
    pub fn promised_rates(&self, source: usize) -> impl Iterator<Item = (usize, Rate)> {
        let promised = self
            .flows_of(source)
            .filter(|(_, flow)| flow.deadline.is_some());
        promised.filter_map(|(index, flow)| Some((index, flow.rate?)))
    }

    /// The sum of [`Self::promised_rates`], in hertz.
    #[must_use]
    pub fn promised_hertz(&self, source: usize) -> f64 {
        let rates = self.promised_rates(source);
        rates.map(|(_, rate)| rate.hertz()).sum()
    }

    /// The requests per second that the limit of a source lets through in the long run; `None` if
    /// the source has no limit.
    #[must_use]
    pub fn let_through(&self, source: usize) -> Option<f64> {
        let limit = &self.sources.get(source)?.limit;
        let interval = match limit.expiry {
            Some(Expiry::Shared(timer)) => self.timers.get(timer)?.period,
            _ => limit.interval,
        };
        let per_interval = f64::from(limit.per_interval());
        let seconds = interval.cycles().max(1) as f64 / self.cpu.clock_hz as f64;
        (limit.policy != Policy::Off).then_some(per_interval / seconds)
    }

    /// Whether this timer is the alarm of a group. Such an alarm also interrupts when the group is
    /// at rest, and it clears no sources.
    #[must_use]
    pub fn is_alarm(&self, timer: &Timer) -> bool {
        let ends = |source: &Source| {
            let own = &source.limit.expiry;
            matches!(own, Some(Expiry::Own { channel, .. }) if *channel == timer.channel)
        };
        self.sources.iter().any(ends)
    }

    /// The prescaler with which a tick of the channel takes `tick` processor cycles.
    #[must_use]
    pub fn prescaler(&self, channel: &str, tick: u64) -> u64 {
        let board = self.cpu.board.as_deref().and_then(Board::named);
        let channel = board.and_then(|board| board.channel(channel));
        channel.map_or(tick, |channel| channel.prescaler(tick))
    }

    /// Whether a source brings packets, which its device holds until an interrupt takes them. Other
    /// sources only request interrupts.
    #[must_use]
    pub fn brings_packets(&self, source: usize) -> bool {
        let held = |of: &Source| of.moderation.is_some() || of.queue.is_some();
        self.sources.get(source).is_some_and(held) || self.flows_of(source).next().is_some()
    }
}

impl Source {
    /// The least number of packets that an interrupt takes if enough packets wait. The interrupt
    /// begins no further packet when it has done `max_work` units of work, but it completes the
    /// last one.
    #[must_use]
    pub fn packets_taken(&self) -> u64 {
        let work = self.max_work.unwrap_or(1).max(1);
        work.div_ceil(self.packet_units.max(1))
    }
}

/// The processor and the costs of interrupting it.
#[derive(Debug, Clone, PartialEq)]
pub struct Cpu {
    /// The board whose measured costs apply, for example `atmega128`; `None` if the file states its
    /// own costs.
    pub board: Option<String>,
    /// The flavour of the port whose costs apply, for example `c` or `fast`; `None` if there is no
    /// board.
    pub flavour: Option<String>,
    /// The clock in cycles per second.
    pub clock_hz: u64,
    /// How interrupts preempt each other.
    pub nesting: Nesting,
    /// The cycles of the longest instruction. An interrupt waits for the end of an instruction, and
    /// one instruction runs between two consecutive interrupts.
    pub longest_instruction: u64,
    /// The longest time for which any code outside interrupts disables all of them.
    pub critical_section: Cost,
    /// The cost of switching to a task and back, per release.
    pub context_switch: Cost,
    /// Whether tasks preempt each other, or each task runs to its end.
    pub tasks: TaskModel,
    /// Cycles of execution, at least one, after which tasks of the same urgency take turns (round
    /// robin). Only preemptive tasks have slices. A job begins its turn with a full slice. A job
    /// that more urgent work preempts keeps its turn and the rest of its slice. `None` if each task
    /// runs to its end in FIFO order.
    pub time_slice: Option<u64>,
    /// The costs of a source's interrupts without a limiter (`[limiter.FLAVOUR.off]` of the board).
    /// Only `request_served` is used.
    pub unlimited: EventCosts,
    /// The origin of the costs of interrupts, for example
    /// `boards/atmega128/costs.toml, avr-gcc (GCC) 5.4.0`.
    pub costs_from: String,
}

/// The rank of an interrupt among all interrupts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// The chip's name of the interrupt, for example `INT0`, `TIMER1_COMPA` or `IRQ13`.
    pub vector: String,
    /// The preemption group. Where interrupts nest, a higher number preempts a lower one.
    pub group: u32,
    /// The order inside a group. The *lowest* is served first, like vector numbers.
    pub order: u32,
}

/// A number of cycles and the evidence for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// The cost in cycles, at worst.
    pub cycles: u64,
    /// The evidence for the number.
    pub origin: Origin,
}

impl Cost {
    /// A cost of zero cycles.
    pub const NONE: Self = Self {
        cycles: 0,
        origin: Origin::Default,
    };
}

/// The origin of a cost. It tells the reader of an analysis what the result depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The file states the cost.
    Declared,
    /// The file states the cost as measured, which does not prove it.
    Measured,
    /// The file does not state the cost, so it has its default.
    Default,
}

/// A source of interrupts: a line, or a queue of a network card.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The source's name, which generated code gives to the limit.
    pub name: String,
    /// The source's own interrupt.
    pub level: Level,
    /// Cycles of one run of the source's handler without the units of work. The registers that the
    /// handler saves are included.
    pub handler: Cost,
    /// The cost of one unit of work (t_work of regehr2005 §5.2), without the costs of flows.
    pub work: Cost,
    /// The most units of work that one interrupt may do. `None` if the file does not state it; then
    /// nothing is proven.
    pub max_work: Option<u64>,
    /// The units of work that the longest packet takes, at least 1. It is 1 where a packet is a
    /// unit.
    pub packet_units: u64,
    /// How often the source requests interrupts.
    pub rates: Rates,
    /// The limit on how often the source may interrupt.
    pub limit: Limit,
    /// Cycles within which the handler has to end, after the limiter let the request through;
    /// `None` if there is no deadline.
    pub deadline: Option<u64>,
    /// Moderation by the device, which comes before the limit; only packets are moderated. `None`
    /// if the device has none.
    pub moderation: Option<Moderation>,
    /// The packets, at least 1, that the device's ring holds until an interrupt takes them
    /// (behnke2022 §2.2). Only sources with flows or moderation have one. `None` if the file does
    /// not state it.
    pub queue: Option<u64>,
}

/// The three rates of a source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// The rate of a healthy source; `None` if the file does not state it.
    pub expected: Option<Rate>,
    /// The most that the system can bear; a limit lies between this and `expected`. `None` if the
    /// file does not state it.
    pub tolerated: Option<Rate>,
    /// The rate of a broken source; `None` if there is no bound (a stuck level-triggered line).
    pub worst: Option<Rate>,
    /// The source of regehr2005 Table 1 that the file names as the worst rate; `None` if it states
    /// a number.
    pub worst_name: Option<&'static str>,
}

/// The rule that a limiter enforces, and the costs of its events.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// How it limits.
    pub policy: Policy,
    /// When the limiter masks the source.
    pub timing: Timing,
    /// Whether software or hardware enforces the limit.
    pub place: Place,
    /// The interval of the policies strict, paced and bucket, the period of the clearing timer for
    /// bursty, or the period of the polling timer for poll. It is the effective value after
    /// rounding, and 0 only if the policy is off.
    pub interval: Interval,
    /// Bits of the timer that counts the interval's ticks; 64 if no timer counts them.
    pub bits: u32,
    /// N: the requests per period of a bursty limit, or the tokens of a bucket; at least 1.
    pub burst: u32,
    /// Ticks by which the one-shot is set short, to make up for the least latency of its service.
    pub lag: u32,
    /// The interrupt that ends an interval; `None` in hardware and if the policy is off.
    pub expiry: Option<Expiry>,
    /// The settings of the limiter in silicon. `None` for a limit in software, and for an ideal
    /// limiter in hardware, which keeps any interval and delivers at once.
    pub silicon: Option<SiliconLimit>,
    /// The costs of the limiter's interrupts.
    pub costs: EventCosts,
}

/// An interval or a period in whole ticks of the timer that measures it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The number of whole ticks.
    pub ticks: u64,
    /// Processor cycles of one tick. A tick is the timer's prescaler, or a step of the limiter in
    /// silicon.
    pub tick: u64,
}

impl Interval {
    /// An interval of `cycles` ticks of one cycle.
    #[must_use]
    pub const fn of_cycles(cycles: u64) -> Self {
        Self {
            ticks: cycles,
            tick: 1,
        }
    }

    /// The interval in cycles.
    #[must_use]
    pub const fn cycles(self) -> u64 {
        self.ticks.saturating_mul(self.tick)
    }
}

impl Limit {
    /// No limit. `costs` are the costs of the source's interrupts without a limiter.
    #[must_use]
    pub const fn off(costs: EventCosts) -> Self {
        Self {
            policy: Policy::Off,
            timing: Timing::Eager,
            place: Place::Software,
            interval: Interval::of_cycles(0),
            bits: 64,
            burst: 1,
            lag: 0,
            expiry: None,
            silicon: None,
            costs,
        }
    }

    /// The requests that the limit lets through per interval in the long run: the burst of a bursty
    /// limit, and 1 for every other policy.
    #[must_use]
    pub const fn per_interval(&self) -> u32 {
        match self.policy {
            Policy::Bursty => self.burst,
            _ => 1,
        }
    }

    /// The most cycles from a request to its delivery while the limiter in hardware is open; 0 in
    /// software.
    #[must_use]
    pub fn delay(&self) -> u64 {
        self.silicon.map_or(0, |silicon| silicon.delay)
    }
}

/// The interrupt that ends an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expiry {
    /// The source has an interrupt of its own for this.
    Own {
        /// The channel of the timer, as the port calls it, for example `TIMER1A`.
        channel: String,
        /// The interrupt of the channel.
        level: Level,
    },
    /// The shared timer with this index in [`System::timers`].
    Shared(usize),
}

/// The worst-case costs of a limiter's interrupts in cycles, without the handler's body.
/// boards/*/costs.toml says how each is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventCosts {
    /// The cost of the line's interrupt if it serves the request.
    pub request_served: u64,
    /// The cost of the line's interrupt if it refuses the request; 0 if the policy never refuses.
    pub request_refused: u64,
    /// The cost of the timer's interrupt if it serves a waiting request. With a shared timer, it is
    /// what this source adds to the interrupt.
    pub expiry_served: u64,
    /// The cost of the timer's interrupt if it serves nothing. With a shared timer, it is what this
    /// source adds to the interrupt.
    pub expiry_empty: u64,
}

/// A timer that several limits share (regehr2005 §3.5).
#[derive(Debug, Clone, PartialEq)]
pub struct Timer {
    /// The timer's name in the file.
    pub name: String,
    /// The timer's channel, as the port calls it, for example `TIMER1A`.
    pub channel: String,
    /// The interrupt of the timer.
    pub level: Level,
    /// The period of the timer after rounding.
    pub period: Interval,
    /// The cost of the timer's interrupt in cycles, without what each source adds.
    pub base: u64,
}

/// A receiver: a task or process whose work the system exists for.
#[derive(Debug, Clone, PartialEq)]
pub struct Receiver {
    /// The receiver's name.
    pub name: String,
    /// The urgency; a higher number is more urgent.
    pub urgency: u8,
    /// The period or minimum interarrival time in cycles. `None` if each packet that a flow
    /// delivers releases the receiver.
    pub period: Option<u64>,
    /// The release jitter in cycles.
    pub jitter: u64,
    /// Cycles from the release to the end; `None` if there is no deadline.
    pub deadline: Option<u64>,
    /// The worst execution time, without interference. It is the time per period or, if there is no
    /// period, per packet of the flows that lead to the receiver. A receiver with a WCET of 0 does
    /// no work of its own.
    pub wcet: Cost,
    /// The longest wait for resources that less urgent tasks hold, in cycles.
    pub blocking: Cost,
    /// The longest time for which the task disables interrupts, in cycles.
    pub critical_section: Cost,
    /// Packets or events, at least 1, that can wait for the receiver after their bottom half, as in
    /// a socket's buffer. `None` if the file does not state it.
    pub backlog: Option<u64>,
    /// The port at which the receiver listens, 1 to 65535; `None` if it accepts any port.
    pub port: Option<u16>,
}

impl Receiver {
    /// Whether each packet that a flow delivers releases the receiver, as opposed to time.
    #[must_use]
    pub const fn works_per_packet(&self) -> bool {
        self.period.is_none() && self.wcet.cycles > 0
    }
}

/// A flow of packets or events from a source to a receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Index in [`System::sources`].
    pub source: usize,
    /// Index in [`System::receivers`].
    pub receiver: usize,
    /// The condition that packets of the source meet if they belong to the flow.
    pub selector: Selector,
    /// The most packets per second of this flow; `None` if only its source bounds them.
    pub rate: Option<Rate>,
    /// The cost of the interrupt's work for each packet.
    pub top_half: Cost,
    /// The cost of finding the receiver of a packet. Every packet of the source has this cost,
    /// whether its receiver is urgent or not (lee2010).
    pub demux: Cost,
    /// The cost of the work for each packet that runs at the receiver's urgency.
    pub bottom_half: Cost,
    /// Packets that can wait for the bottom half; `None` if the file does not state it.
    pub queue: Option<u64>,
    /// Cycles from the packet's arrival to the end of its bottom half; `None` if there is no
    /// deadline.
    pub deadline: Option<u64>,
}

/// The packets that belong to a flow. A packet has to match every field that is stated, so the
/// default matches all packets. The fields never contradict each other: a selector of ICMP has no
/// port, and one of frames other than IP has neither protocol, address nor port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Selector {
    /// The EtherType of the frame; `None` matches any.
    pub ethertype: Option<u16>,
    /// The priority code point of the VLAN tag, 0 to 7; `None` matches any.
    pub pcp: Option<u8>,
    /// The protocol above IP; `None` matches any.
    pub protocol: Option<Protocol>,
    /// The address or network of the remote side; `None` matches any.
    pub address: Option<Network>,
    /// The destination port of TCP or UDP, 1 to 65535; `None` matches any.
    pub port: Option<u16>,
}

/// The time that a packet may wait in the device to share an interrupt (behnke2022).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moderation {
    /// Cycles from the first waiting packet to the interrupt, regardless of later packets.
    pub absolute: u64,
    /// Cycles without a packet after which the device interrupts; `None` if it has no such timer.
    pub packet: Option<u64>,
    /// The number of packets after which the device interrupts; `None` if it does not count.
    pub count: Option<u64>,
    /// Cycles of the tick that ends a wait, once the wait has been long enough. With a tick, the
    /// first packet of a wait has also interrupted, and was left in the device (ports/freertos,
    /// `gather`). `None` if a timer of the device ends the wait.
    pub tick: Option<u64>,
}

impl Moderation {
    /// The most cycles after which the device requests the interrupt. A tick may come late, by less
    /// than one tick.
    #[must_use]
    pub fn longest(&self) -> u64 {
        let late = self.tick.map_or(0, |tick| tick.saturating_mul(2));
        self.absolute.saturating_add(late)
    }
}
