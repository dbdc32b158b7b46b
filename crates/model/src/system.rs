// SPDX-License-Identifier: MIT OR Apache-2.0
//! A system as the analysis, the generators and the simulator see it: checked, in cycles, with
//! every cost resolved.
//!
//! This is what a system file means. `file` reads the text and `resolve` turns it into this;
//! nothing behind them has to think about units, names that do not exist or limits that a timer
//! cannot keep.

use weir_boards::Board;
pub use weir_boards::{Policy, Timing};

pub use crate::file::leaf::Network;
pub use crate::file::words::{Nesting, Place, Protocol, TaskModel, Trigger};

use crate::{Freertos, Linux, LinuxBoundError, Rate, Silicon, SiliconLimit};

/// A whole system. Names are unique among sources, timers, receivers and flows each.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// What the file calls the system; the file's stem if it does not say.
    pub name: String,
    /// SHA-256 of the file's bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// The processor.
    pub cpu: Cpu,
    /// The limiter in silicon; none if no limit is in hardware.
    pub silicon: Option<Silicon>,
    /// The sources of interrupts, in the file's order.
    pub sources: Vec<Source>,
    /// The timers that limits use, in the file's order.
    pub timers: Vec<Timer>,
    /// The tasks, in the file's order.
    pub receivers: Vec<Receiver>,
    /// The flows from sources to receivers, in the file's order.
    pub flows: Vec<Flow>,
    /// What the file says to `weir linux`.
    pub linux: Linux,
    /// What the file says of FreeRTOS; none: nothing.
    pub freertos: Option<Freertos>,
}

impl System {
    /// The flows of a source, with their indices in [`System::flows`].
    pub fn flows_of(&self, source: usize) -> impl Iterator<Item = (usize, &Flow)> {
        let flows = self.flows.iter().enumerate();
        flows.filter(move |(_, flow)| flow.source == source)
    }

    /// The system with what its operating system does as work of the analysis: the threads of
    /// Linux, and the lanes of FreeRTOS. Bounds hold for this system only.
    ///
    /// # Errors
    /// Those of [`System::with_threads`].
    pub fn with_kernel_work(self) -> Result<Self, LinuxBoundError> {
        Ok(self.with_threads()?.with_freertos_work())
    }

    /// The flows of a source that state a rate and a deadline, with their indices in
    /// [`System::flows`]: none of their packets may be lost.
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

    /// The requests per second that the limit of a source lets through in the long run, in hertz.
    /// None: it has no limit.
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

    /// Is this timer the alarm of a group, which interrupts also when the group is at rest? It
    /// clears no sources.
    #[must_use]
    pub fn is_alarm(&self, timer: &Timer) -> bool {
        let ends = |source: &Source| {
            let own = &source.limit.expiry;
            matches!(own, Some(Expiry::Own { channel, .. }) if *channel == timer.channel)
        };
        self.sources.iter().any(ends)
    }

    /// The prescaler with which a tick of a channel has so many cycles.
    #[must_use]
    pub fn prescaler(&self, channel: &str, tick: u64) -> u64 {
        let board = self.cpu.board.as_deref().and_then(Board::named);
        let channel = board.and_then(|board| board.channel(channel));
        channel.map_or(tick, |channel| channel.prescaler(tick))
    }

    /// Does a source hold packets until an interrupt takes them? Else it only asks for interrupts.
    #[must_use]
    pub fn brings_packets(&self, source: usize) -> bool {
        let held = |of: &Source| of.moderation.is_some() || of.queue.is_some();
        self.sources.get(source).is_some_and(held) || self.flows_of(source).next().is_some()
    }
}

impl Source {
    /// The packets that an interrupt takes if enough wait, at least: it does not begin another one
    /// when its work is done, but takes the last one whole.
    #[must_use]
    pub fn packets_taken(&self) -> u64 {
        let work = self.max_work.unwrap_or(1).max(1);
        work.div_ceil(self.packet_units.max(1))
    }
}

/// The processor and what it costs to be interrupted.
#[derive(Debug, Clone, PartialEq)]
pub struct Cpu {
    /// The board whose measured costs hold, for example `atmega128`; none if the file states its
    /// own.
    pub board: Option<String>,
    /// The flavour of the port whose costs hold, for example `c` or `fast`.
    pub flavour: Option<String>,
    /// Cycles per second.
    pub clock_hz: u64,
    /// How interrupts preempt each other.
    pub nesting: Nesting,
    /// The longest instruction, in cycles: an interrupt waits for its end, and one of them runs
    /// between two interrupts that follow each other.
    pub longest_instruction: u64,
    /// The longest time for which any code outside interrupts keeps them all off.
    pub critical_section: Cost,
    /// What switching to a task and back costs, per release.
    pub context_switch: Cost,
    /// Do tasks preempt each other, or does each run to its end?
    pub tasks: TaskModel,
    /// Cycles of execution, at least one, after which tasks of the same urgency take turns (round
    /// robin). None: each runs to its end, first come, first served. Only preemptive tasks have
    /// slices. A job begins its turn with a full slice; a job that more urgent work preempts keeps
    /// its turn and the rest of its slice.
    pub time_slice: Option<u64>,
    /// What the interrupts of a source cost without a limiter (`[limiter.FLAVOUR.off]` of the
    /// board). Only `request_served` happens.
    pub unlimited: EventCosts,
    /// The origin of the costs of interrupts, for example `boards/atmega128/costs.toml, avr-gcc
    /// (GCC) 5.4.0`.
    pub costs_from: String,
}

/// The rank of an interrupt among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// What the chip calls it: `INT0`, `TIMER1_COMPA`, `IRQ13`.
    pub vector: String,
    /// The preemption group; a higher number preempts a lower one where interrupts nest.
    pub group: u32,
    /// The order inside a group; the *lowest* is served first, like vector numbers.
    pub order: u32,
}

/// A number of cycles and why it should be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Cycles, at worst.
    pub cycles: u64,
    /// Where the number comes from.
    pub origin: Origin,
}

impl Cost {
    /// No cost.
    pub const NONE: Self = Self {
        cycles: 0,
        origin: Origin::Default,
    };
}

/// The origin of a cost, which tells the reader of an analysis on what it rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The file states it.
    Declared,
    /// The file states it as measured, not as proven.
    Measured,
    /// Nobody stated it; the default holds.
    Default,
}

/// A source of interrupts: a line, or a queue of a network card.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The source's name, which generated code gives to the limit.
    pub name: String,
    /// Its own interrupt.
    pub level: Level,
    /// Cycles of one run of its handler without the units of work, with the registers that it
    /// saves.
    pub handler: Cost,
    /// One unit of work (regehr2005 §5.2's t_work), beside what the flows cost.
    pub work: Cost,
    /// The most units of work that one interrupt may do. None: not stated, so nothing is proven.
    pub max_work: Option<u64>,
    /// Units of work that the longest packet takes, at least 1: 1 where a packet is a unit.
    pub packet_units: u64,
    /// How often the source asks.
    pub rates: Rates,
    /// How often the source may interrupt.
    pub limit: Limit,
    /// Cycles within which the handler has to end, after the limiter let the request through; none
    /// if there is no deadline.
    pub deadline: Option<u64>,
    /// Moderation by the device in front of the limit; only packets are moderated.
    pub moderation: Option<Moderation>,
    /// Packets that the device holds (its ring) until an interrupt takes them, at least 1
    /// (behnke2022 §2.2). None: not stated. Only sources with flows or moderation have one.
    pub queue: Option<u64>,
}

/// The three rates of a source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// What a healthy source does.
    pub expected: Option<Rate>,
    /// The most that the system can bear; a limit lies between the two.
    pub tolerated: Option<Rate>,
    /// What a broken source can do; none: no bound (a stuck level-triggered line).
    pub worst: Option<Rate>,
    /// The source of regehr2005 Table 1 by whose name the worst rate was stated; none if by a
    /// number.
    pub worst_name: Option<&'static str>,
}

/// What a limiter enforces and what its events cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// How it limits.
    pub policy: Policy,
    /// When it masks.
    pub timing: Timing,
    /// Who enforces it.
    pub place: Place,
    /// Strict, paced, bucket: the interval between two; bursty: the period of the clearing timer;
    /// poll: of the polling timer. Effective after rounding; 0 only if the policy is off.
    pub interval: Interval,
    /// Bits of the timer that counts the interval's ticks; 64 where nothing counts.
    pub bits: u32,
    /// N: requests per period, or tokens; at least 1.
    pub burst: u32,
    /// Ticks by which the one-shot is set short, to make up for the least latency of its service.
    pub lag: u32,
    /// The interrupt that ends an interval; none in hardware and if the policy is off.
    pub expiry: Option<Expiry>,
    /// The settings of the limiter in silicon. None in software, and for an ideal limiter in
    /// hardware, which keeps any interval and delivers at once.
    pub silicon: Option<SiliconLimit>,
    /// What its interrupts cost.
    pub costs: EventCosts,
}

/// An interval or a period in whole ticks of the timer that measures it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Whole ticks.
    pub ticks: u64,
    /// Cycles of one tick: the timer's prescaler, or a step of the limiter in silicon.
    pub tick: u64,
}

impl Interval {
    /// An interval of so many cycles, which are its ticks.
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
    /// No limit; `costs` are those of the source's interrupts without one.
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

    /// Requests that it lets through per interval in the long run: the burst of a bursty limit, one
    /// of any other.
    #[must_use]
    pub const fn per_interval(&self) -> u32 {
        match self.policy {
            Policy::Bursty => self.burst,
            _ => 1,
        }
    }

    /// Cycles from a request to its delivery, at most, if the limiter in hardware is open; 0 in
    /// software.
    #[must_use]
    pub fn delay(&self) -> u64 {
        self.silicon.map_or(0, |silicon| silicon.delay)
    }
}

/// Who ends an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expiry {
    /// An interrupt of the source's own.
    Own {
        /// The channel, as the port calls it: `TIMER1A`.
        channel: String,
        /// Its interrupt.
        level: Level,
    },
    /// The shared timer with this index in [`System::timers`].
    Shared(usize),
}

/// What a limiter's interrupts cost, in cycles at worst, without the handler's body
/// (boards/*/costs.toml says how each is measured).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventCosts {
    /// The line's interrupt that serves.
    pub request_served: u64,
    /// The line's interrupt that refuses; 0 where the policy never refuses.
    pub request_refused: u64,
    /// The timer's interrupt that serves what waited; with a shared timer, what this source adds to
    /// it then.
    pub expiry_served: u64,
    /// The timer's interrupt that serves nothing; with a shared timer, what this source adds to it
    /// then.
    pub expiry_empty: u64,
}

/// A timer that several limits share (regehr2005 §3.5).
#[derive(Debug, Clone, PartialEq)]
pub struct Timer {
    /// Its name in the file.
    pub name: String,
    /// The channel, as the port calls it: `TIMER1A`.
    pub channel: String,
    /// Its interrupt.
    pub level: Level,
    /// Its effective period.
    pub period: Interval,
    /// What its interrupt costs beside what each source adds.
    pub base: u64,
}

/// A receiver: a task or a process that the system is for.
#[derive(Debug, Clone, PartialEq)]
pub struct Receiver {
    /// Its name.
    pub name: String,
    /// Higher is more urgent.
    pub urgency: u8,
    /// Its period or minimum interarrival time in cycles; none: each packet that a flow delivers
    /// releases it.
    pub period: Option<u64>,
    /// Release jitter in cycles.
    pub jitter: u64,
    /// Cycles from the release to the end; none if there is no deadline.
    pub deadline: Option<u64>,
    /// Its worst execution time alone, in cycles: of a period, or of a packet if it has none, and
    /// then a flow leads to it. With a WCET of 0 it only receives.
    pub wcet: Cost,
    /// The longest wait for resources that less urgent tasks hold, in cycles.
    pub blocking: Cost,
    /// The longest time for which the task disables interrupts, in cycles.
    pub critical_section: Cost,
    /// Packets or events that can wait for it after their bottom half (a socket's buffer), at least
    /// 1; none: not stated.
    pub backlog: Option<u64>,
    /// The port at which the receiver listens, 1 to 65535; none: any.
    pub port: Option<u16>,
}

impl Receiver {
    /// Is it released by each packet that a flow delivers, and not by time?
    #[must_use]
    pub const fn works_per_packet(&self) -> bool {
        self.period.is_none() && self.wcet.cycles > 0
    }
}

/// Packets or events on their way from a source to a receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Index in [`System::sources`].
    pub source: usize,
    /// Index in [`System::receivers`].
    pub receiver: usize,
    /// Which packets of the source belong to it.
    pub selector: Selector,
    /// The most packets per second of this flow; none: whatever the source brings.
    pub rate: Option<Rate>,
    /// What the interrupt does for each packet.
    pub top_half: Cost,
    /// What finding out the receiver costs, for every packet of the source (lee2010: high and low
    /// alike).
    pub demux: Cost,
    /// What is done for each packet at the receiver's urgency.
    pub bottom_half: Cost,
    /// Packets that can wait for the bottom half; none: not stated.
    pub queue: Option<u64>,
    /// Cycles from the packet's arrival to the end of its bottom half; none if there is no
    /// deadline.
    pub deadline: Option<u64>,
}

/// Which packets belong to a flow: those that match everything stated, so the default is all
/// packets. No selector contradicts itself: ICMP has no port, and a frame that is not of IP neither
/// protocol, address nor port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Selector {
    /// The type of the Ethernet frame.
    pub ethertype: Option<u16>,
    /// The priority code point of the VLAN tag, 0 to 7.
    pub pcp: Option<u8>,
    /// The protocol above IP.
    pub protocol: Option<Protocol>,
    /// The address or network of the other side.
    pub address: Option<Network>,
    /// The destination port of TCP or UDP, 1 to 65535.
    pub port: Option<u16>,
}

/// How long a packet may wait in the device to share an interrupt (behnke2022).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moderation {
    /// Cycles from the first waiting packet to the interrupt, whatever comes after it.
    pub absolute: u64,
    /// Cycles without a packet after which the interrupt comes.
    pub packet: Option<u64>,
    /// Packets after which the interrupt comes.
    pub count: Option<u64>,
    /// Cycles of the tick that ends a wait, once it has been long enough; none: a timer does. Then
    /// the packet that begins a wait has interrupted, too, and was left where it was
    /// (ports/freertos, `gather`).
    pub tick: Option<u64>,
}

impl Moderation {
    /// Cycles after which the device asks for the interrupt at the latest. A tick may come late, by
    /// less than a tick.
    #[must_use]
    pub fn longest(&self) -> u64 {
        let late = self.tick.map_or(0, |tick| tick.saturating_mul(2));
        self.absolute.saturating_add(late)
    }
}
