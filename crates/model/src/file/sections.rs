// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of the system file. Their comments, defaults and examples are the reference
//! (docs/generated/system-file.md).
use toml_edit::{Item, TableLike};
use weir_boards::{Policy, Timing};

use super::freertos::Freertos;
use super::leaf::{
    Amount, Name, Network, PortNumber, StatedCost, Text, UrgencyNumber, Vector, Whole, Worst, YesNo,
};
use super::linux::{InterfaceName, Linux, Match};
use super::value::{List, section};
use super::words::{
    Nesting, Output, Place, Protocol, SiliconForm, SiliconReset, TaskModel, Trigger,
};
use crate::exact::{ExactRate, ExactTime};

/// A number that fits 32 bits.
pub(crate) type Number32 = Whole<0, 4_294_967_295>;
/// A count of at least one.
pub(crate) type Count = Whole<1, 4_611_686_018_427_387_904>;
/// What divides the clock for a timer.
pub(crate) type Divisor = Whole<1, 4_294_967_295>;

section! {
    /// A system.
    Root "the file" {
        /// The version of this format. It comes first; this Weir reads 1.
        required schema: Whole<1, 1>, default "", example "1";
        /// What the system is called in reports and generated code.
        optional name: Text, default "the file's name without its ending", example "\"motor\"";
        /// The processor.
        required cpu: Cpu, default "", example "{ board = \"atmega128\" }";
        /// The limiter in silicon, which enforces what has `place = "hardware"`.
        optional silicon: Silicon, default "one with the defaults, if a limit is in hardware", example "{ phase_bits = 16, rate_bits = 10 }";
        /// What `weir linux` does.
        optional linux: Linux, default "all as without its keys", example "{ mode = \"exact\" }";
        /// The FreeRTOS of `weir generate --rtos freertos`.
        optional freertos: Freertos, default "none", example "{ priorities = 25, common = { urgency = 2, queue = 8 } }";
        /// Timers that several limits share. Without a board, every timer that a limit uses.
        optional timer: List<Timer>, default "none", example "";
        /// The sources of interrupts.
        optional source: List<Source>, default "none", example "";
        /// The tasks that have to meet their deadlines.
        optional receiver: List<Receiver>, default "none", example "";
        /// The flows of packets or events from a source to a receiver.
        optional flow: List<Flow>, default "none", example "";
    }
}

section! {
    /// The processor, and what it costs to be interrupted.
    Cpu "[cpu]" {
        /// The board whose vectors, timers and measured costs hold. Without one, the file itself
        /// states `clock`, `interrupts` and the costs.
        optional board: Text, default "none", example "\"atmega128\"";
        /// The flavour of the board's port; the port's README.md tells them apart.
        optional flavour: Text, default "\"c\"", example "\"fast\"";
        /// Cycles per second: whole hertz.
        optional clock: ExactRate, default "the board's; without a board it must be stated", example "\"16MHz\"";
        /// How interrupts preempt each other.
        optional interrupts: Nesting, default "the board's; without a board it must be stated", example "\"grouped\"";
        /// How tasks share the processor.
        optional tasks: TaskModel, default "\"preemptive\"", example "\"cooperative\"";
        /// The execution after which tasks of the same urgency take turns (round robin). A
        /// preempted task keeps its turn and the rest of its slice.
        optional time_slice: ExactTime, default "none: each runs to its end, first come, first served; with `[freertos]` a tick", example "\"10ms\"";
        /// The longest time for which code outside of interrupts keeps them all off.
        optional critical_section: StatedCost, default "\"0 cycles\"", example "\"60 cycles\"";
        /// What switching to a task and back costs, per release and per time slice.
        optional context_switch: StatedCost, default "\"0 cycles\"", example "\"180 cycles\"";
        /// The longest instruction: an interrupt waits for its end, and one of them runs between
        /// two interrupts.
        optional longest_instruction: Amount, default "the board's; without a board it must be stated", example "\"4 cycles\"";
        /// What the limiters' interrupts cost: numbers that replace those of the board or, without
        /// a board, all that the limits need.
        optional costs: Costs, default "the board's", example "{ off = { request_served = \"26 cycles\" } }";
    }
}

section! {
    /// What limiters cost, by policy and timing.
    Costs "[cpu.costs]" {
        /// An ordinary interrupt, without a limiter. Only `request_served` happens.
        optional off: Events, default "the board's", example "{ request_served = \"26 cycles\" }";
        /// Polling: the interrupt of a timer that looks at the line. Only without a board.
        optional poll: Events, default "none", example "{ expiry_served = \"35 cycles\", expiry_empty = \"34 cycles\" }";
        /// Bursty limiters that share a timer.
        optional shared: Events, default "the board's", example "{ request_served = \"43 cycles\", expiry_base = \"44 cycles\", clear_empty = \"12 cycles\" }";
        /// Strict limiters.
        optional strict: Timings, default "the board's", example "{ lazy = { request_served = \"59 cycles\" } }";
        /// Paced limiters.
        optional paced: Timings, default "the board's", example "{ lazy = { request_served = \"59 cycles\" } }";
        /// Bursty limiters with a timer of their own.
        optional bursty: BurstyTimings, default "the board's", example "{ one_shot = { request_served = \"94 cycles\" } }";
        /// Token buckets.
        optional bucket: Timings, default "the board's", example "{ lazy = { request_served = \"80 cycles\" } }";
    }
}

section! {
    /// The costs of a policy by its timing.
    Timings "[cpu.costs.POLICY]" {
        /// Masks with the first request beyond what the policy allows.
        optional lazy: Events, default "the board's", example "{ request_served = \"59 cycles\" }";
        /// Masks with the request that uses up what the policy allows.
        optional eager: Events, default "the board's", example "{ request_served = \"71 cycles\" }";
    }
}

section! {
    /// The costs of bursty limiters by their timing.
    BurstyTimings "[cpu.costs.bursty]" {
        /// Masks with the first request beyond the burst.
        optional lazy: Events, default "the board's", example "{ request_served = \"66 cycles\" }";
        /// Masks with the last request of the burst.
        optional eager: Events, default "the board's", example "{ request_served = \"57 cycles\" }";
        /// The period begins with a request.
        optional one_shot: Events, default "the board's", example "{ request_served = \"94 cycles\" }";
    }
}

section! {
    /// The worst cost of each interrupt of a limiter, from its taking to its end, without the
    /// handler's body.
    Events "[cpu.costs.POLICY.TIMING]" {
        /// The line's interrupt that runs the handler.
        optional request_served: Amount, default "the board's", example "\"59 cycles\"";
        /// The line's interrupt that does not run the handler.
        optional request_refused: Amount, default "the board's", example "\"54 cycles\"";
        /// The timer's interrupt that runs the handler for a request that waited.
        optional expiry_served: Amount, default "the board's", example "\"71 cycles\"";
        /// The timer's interrupt that runs no handler.
        optional expiry_empty: Amount, default "the board's", example "\"60 cycles\"";
        /// Shared timers: the timer's interrupt without its sources.
        optional expiry_base: Amount, default "the board's", example "\"44 cycles\"";
        /// Shared timers: what each source adds to the timer's interrupt.
        optional clear_empty: Amount, default "the board's", example "\"12 cycles\"";
        /// Shared timers: what a source adds whose waiting request is served inside the timer's
        /// interrupt. Left out where the request takes an interrupt of its own.
        optional clear_served: Amount, default "the board's", example "\"60 cycles\"";
    }
}

section! {
    /// A timer that limits share (regehr2005 §3.5) or, without a board, one that a limit uses
    /// alone.
    Timer "[[timer]]" {
        /// What the limits call it.
        required name: Name, default "", example "\"slow\"";
        /// The board's compare channel. Without a board, the chip's name of the timer's interrupt.
        optional channel: Name, default "with a board it must be stated; without one `name`", example "\"TIMER1A\"";
        /// How often the timer clears the counts of its sources. It is rounded to the next slower
        /// rate. Either `rate` or `period` makes the timer a shared one.
        optional rate: ExactRate, default "none", example "\"110Hz\"";
        /// The time between two clearings, in place of `rate`. Never rounded to less.
        optional period: ExactTime, default "none", example "\"9ms\"";
        /// Cycles per tick.
        optional prescaler: Divisor, default "the smallest divisor with which all that use the timer fit", example "64";
        /// Without a board: the timer's bits, 8 to 64.
        optional width: Whole<8, 64>, default "without a board it must be stated", example "16";
        /// Without a board: the prescalers that the timer has.
        optional divisors: List<Divisor>, default "[1]", example "[1, 8, 64]";
        /// Without a board: the preemption group of its interrupt.
        optional group: Number32, default "0 if interrupts are flat; else it must be stated", example "2";
        /// Without a board: the order of its interrupt inside the group; the lowest is served
        /// first.
        optional order: Number32, default "without a board it must be stated", example "5";
    }
}

section! {
    /// A source of interrupts: a line, or a queue of a network card.
    Source "[[source]]" {
        /// Its name, which generated code gives to limit and handler.
        required name: Name, default "", example "\"encoder\"";
        /// Its interrupt: a vector of the board. Without a board, any name with `group` and
        /// `order`.
        required vector: Vector, default "", example "\"INT0\"";
        /// Without a board: the preemption group of its interrupt.
        optional group: Number32, default "0 if interrupts are flat; else it must be stated", example "2";
        /// Without a board: the order of its interrupt inside the group; the lowest is served
        /// first.
        optional order: Number32, default "without a board it must be stated", example "13";
        /// On a board whose interrupts have priorities (the NVIC of a Cortex-M): the one that the
        /// firmware gives to this interrupt. The smaller number preempts the larger. Sources whose
        /// limits name the same timer have the same priority, at least 1.
        optional priority: Number32, default "on such a board it must be stated", example "128";
        /// One run of its handler without the units of work. The registers that the handler saves
        /// are included; the cost of a limiter is not.
        required handler: StatedCost, default "", example "\"120 cycles\"";
        /// Of the handler's cycles, those that save and restore registers (`push` and `pop`: 4 for
        /// each on AVR). The compiler of the flavour `c` spends them also in the limiter's
        /// interrupts that do not run the handler.
        optional registers: Amount, default "flavour `c`: all that the handler takes, but at most 120 cycles (AVR) or 4 (Cortex-M); else 0 cycles", example "\"16 cycles\"";
        /// One unit of work of the handler (regehr2005 §5.2: t_work), beside what the flows cost.
        optional work: StatedCost, default "\"0 cycles\"", example "\"45 cycles\"";
        /// The most units of work that one interrupt may do. A limit bounds how often a handler
        /// runs, not how long: without this, nothing is proven.
        optional max_work: Count, default "not stated, so nothing is proven", example "1";
        /// How often the source asks for an interrupt.
        optional rate: Rates, default "nothing is known of it, so it may come without bound", example "{ expected = \"300Hz\", tolerated = \"1kHz\", worst = \"100kHz\" }";
        /// The time within which the handler has to end, after the limiter let the request through.
        optional deadline: ExactTime, default "none", example "\"2ms\"";
        /// How often it may interrupt.
        optional limit: Limit, default "no limit", example "{ policy = \"strict\", rate = \"1kHz\", timer = \"TIMER1A\" }";
        /// How long a packet may wait in the device to share an interrupt (behnke2022).
        optional moderation: Moderation, default "none: every packet interrupts", example "{ absolute = \"1ms\", packet = \"50us\", count = 8 }";
        /// The packets that the device holds (its ring) until an interrupt takes them (behnke2022
        /// §2.2). Only for sources with flows or moderation.
        optional queue: Count, default "not stated", example "64";
        /// The network interface whose queue it is, for `weir linux`.
        optional interface: InterfaceName, default "none", example "\"eth0\"";
    }
}

section! {
    /// The three rates of a source.
    Rates "[source.rate]" {
        /// What a healthy source does; no limit may be below.
        optional expected: ExactRate, default "not stated", example "\"300Hz\"";
        /// What the system can bear; no limit may be above.
        optional tolerated: ExactRate, default "not stated", example "\"1kHz\"";
        /// What a broken source can do: a rate, or a source of regehr2005 Table 1 by its name
        /// (`weir reproduce regehr2005/table1` lists them).
        optional worst: Worst, default "without bound, as a stuck line is", example "\"loose-wire\"";
    }
}

impl Limit {
    /// The keys that a limit in hardware, which counts by itself, does not have.
    pub const OF_SOFTWARE: [&'static str; 3] = ["timing", "timer", "prescaler"];
    /// The keys that a limit in software, whose port knows how its lines ask, does not have.
    pub const OF_HARDWARE: [&'static str; 1] = ["trigger"];

    /// Does the key go with the limit's place?
    fn fits(limit: &dyn TableLike, key: &str) -> bool {
        let place = limit.get("place").and_then(Item::as_str);
        if place == Some(Place::Hardware.name()) {
            !Self::OF_SOFTWARE.contains(&key)
        } else {
            !Self::OF_HARDWARE.contains(&key)
        }
    }
}

section! {
    /// How often a source may interrupt.
    Limit "[source.limit]", offers Limit::fits {
        /// How it limits.
        required policy: Policy, default "", example "\"bursty\"";
        /// When it masks the source.
        optional timing: Timing, default "\"eager\" with a shared timer and for strict of the flavour `fast`, else \"lazy\"", example "\"lazy\"";
        /// Who enforces the limit.
        optional place: Place, default "\"software\"", example "\"hardware\"";
        /// The rate that it lets through in the long run: one request per interval (bursty: `burst`
        /// per period). It is rounded so that it is never above; the outcome must lie between the
        /// source's `expected` and `tolerated`. With a shared timer it may be left out; if stated,
        /// the limit may not be above it.
        optional rate: ExactRate, default "`rate` or `interval` must be stated, but for `off` and with a shared timer", example "\"1kHz\"";
        /// In place of `rate`: the time between two requests (bursty: the period; bucket: between
        /// two tokens). Never rounded to less.
        optional interval: ExactTime, default "see `rate`", example "\"1ms\"";
        /// Bursty: the requests per period. Bucket: its tokens.
        optional burst: Whole<1, 255>, default "1", example "4";
        /// The board's compare channel, or the name of a `[[timer]]`.
        optional timer: Name, default "must be stated for limits in software", example "\"TIMER1A\"";
        /// Cycles per tick of the timer. All channels of one timer have the same.
        optional prescaler: Divisor, default "the smallest divisor with which all that use the timer fit", example "8";
        /// In hardware: how the line asks.
        optional trigger: Trigger, default "\"edge\"", example "\"level\"";
    }
}

section! {
    /// The limiter in silicon (rtl/limit) between the lines and the interrupt controller: its
    /// shape, the same for all sources whose limit has `place = "hardware"`. It runs with the
    /// processor's clock. An interval is exactly tick · ⌈2^`phase_bits` / rate⌉ clocks, where the
    /// whole number `rate` is at most 2^`rate_bits` - 1 and a tick is one clock, or the period of a
    /// memory's scan; what a limit asks for is rounded up to the next of these.
    /// `weir generate --rtl` tells the fewest bits that would do.
    Silicon "[silicon]" {
        /// Where it keeps the state of its sources.
        optional form: SiliconForm, default "\"registers\" for up to 32 sources, else \"memory\"", example "\"memory\"";
        /// Bits of a phase: the longest interval is 2^`phase_bits` ticks. Intervals up to the root
        /// of that are exact.
        optional phase_bits: Whole<8, 32>, default "24", example "16";
        /// Bits of a rate: the more, the shorter an interval may be. What is stated here is also
        /// the room for changes at run time.
        optional rate_bits: Whole<1, 32>, default "as `phase_bits`", example "10";
        /// Bits of a burst; 0 is strict only.
        optional burst_bits: Whole<0, 8>, default "those that the largest burst of the file needs; 0 if all are 1", example "4";
        /// Bits of the count of requests that were held back; 0: none are counted.
        optional held_bits: Whole<0, 16>, default "8", example "0";
        /// Stages of each line's synchroniser: 0, 2 or 3.
        optional synchroniser: Whole<0, 3>, default "2", example "3";
        /// How its registers are reset.
        optional reset: SiliconReset, default "\"synchronous\"", example "\"none\"";
        /// What a delivery does at the output.
        optional output: Output, default "\"held\"", example "\"pulse\"";
        /// Can rates and bursts be read back?
        optional readback: YesNo, default "true", example "false";
        /// Has each source an enable bit for the user (regehr2005 §4)?
        optional enables: YesNo, default "true", example "false";
        /// Does it tell when an overload begins?
        optional overload: YesNo, default "true", example "false";
        /// Can a source's limit be locked until reset?
        optional lock: YesNo, default "true", example "false";
        /// Has it an input and an output for streams of interrupt numbers (MSI)? The time that a
        /// message waits for the other side is in no bound.
        optional messages: YesNo, default "false", example "true";
        /// Does it let lines through while its clock is stopped?
        optional bypass: YesNo, default "true", example "false";
        /// The address of its registers, for the generated header: a multiple of 65536.
        optional base: Number32, default "none: the firmware defines `WEIR_LIMITS_BASE`", example "0x11000000";
    }
}

section! {
    /// Moderation by the device. Times are the device's, rounded down to whole cycles.
    Moderation "[source.moderation]" {
        /// The longest wait of a packet for its interrupt, whatever comes after it. Without it, a
        /// packet timer can starve, and a count may never be reached. With `[freertos]` the next
        /// tick ends the wait.
        required absolute: ExactTime, default "", example "\"1ms\"";
        /// The time without a packet after which the interrupt comes.
        optional packet: ExactTime, default "none", example "\"50us\"";
        /// The number of packets after which the interrupt comes.
        optional count: Count, default "none", example "8";
    }
}

section! {
    /// A receiver: a task or process that the system is for.
    Receiver "[[receiver]]" {
        /// Its name.
        required name: Name, default "", example "\"control\"";
        /// Higher is more urgent. Tasks of the same urgency delay each other.
        required urgency: UrgencyNumber, default "", example "10";
        /// The time between two releases.
        optional period: ExactTime, default "none: the packets of its flows release it", example "\"10ms\"";
        /// In place of `period`: the least time between two releases.
        optional interarrival: ExactTime, default "see `period`", example "\"10ms\"";
        /// How late after its nominal instant a release may come.
        optional jitter: Amount, default "\"0 cycles\"", example "\"100us\"";
        /// From its release to its end; without a period: from the delivery of a packet. It may be
        /// longer than the period.
        optional deadline: ExactTime, default "none", example "\"10ms\"";
        /// Its longest execution time, alone on the processor; without a period: for each packet
        /// that a flow delivers.
        optional wcet: StatedCost, default "\"0 cycles\": it only receives", example "\"2ms\"";
        /// The longest time that it waits for what less urgent tasks hold.
        optional blocking: StatedCost, default "\"0 cycles\"", example "\"50us\"";
        /// The longest time for which it keeps all interrupts off.
        optional critical_section: StatedCost, default "\"0 cycles\"", example "\"40 cycles\"";
        /// The packets or events that can wait for it after their bottom half, as in a socket's
        /// buffer.
        optional backlog: Count, default "not stated", example "32";
        /// The most frames that it gets, from code of `weir generate --rtos freertos`: those beyond
        /// it are dropped in the interrupt. It holds for each of FreeRTOS's ticks, rounded down to
        /// whole frames.
        optional budget: ExactRate, default "none: it gets as many as come", example "\"4kHz\"";
        /// How `weir linux` recognises the receiver's sockets.
        optional matches as "match": Match, default "none", example "{ port = 502 }";
    }
}

section! {
    /// Which packets belong to a flow.
    Selector "[flow.selector]" {
        /// The type of the Ethernet frame.
        optional ethertype: Whole<0, 65535>, default "any", example "0x0800";
        /// The priority code point of the VLAN tag.
        optional pcp: Whole<0, 7>, default "any", example "5";
        /// The protocol above IP.
        optional protocol: Protocol, default "any", example "\"tcp\"";
        /// The other side's address or network.
        optional address: Network, default "any", example "\"192.0.2.0/24\"";
        /// The destination port of TCP or UDP.
        optional port: PortNumber, default "any", example "502";
    }
}

section! {
    /// What goes from a source to a receiver.
    Flow "[[flow]]" {
        /// Its name.
        required name: Name, default "", example "\"modbus\"";
        /// The source that brings it.
        required source: Name, default "", example "\"eth\"";
        /// The receiver that it is for.
        required receiver: Name, default "", example "\"control\"";
        /// Which packets belong to it.
        optional selector: Selector, default "all of the source", example "{ protocol = \"tcp\", port = 502 }";
        /// The most packets of this flow.
        optional rate: ExactRate, default "whatever the source brings", example "\"200Hz\"";
        /// What the interrupt does for each packet.
        optional top_half: StatedCost, default "\"0 cycles\"", example "\"80 cycles\"";
        /// What finding out this receiver costs for a packet; for nobody's, the most of all flows.
        optional demux: StatedCost, default "\"0 cycles\"", example "\"20 cycles\"";
        /// What is done for each packet at the receiver's urgency.
        optional bottom_half: StatedCost, default "\"0 cycles\"", example "\"300 cycles\"";
        /// The packets that can wait for the bottom half. In the mode `exact` of `weir linux`, all
        /// flows to receivers of one urgency share one queue, of at least 1,000 packets where
        /// ordinary processes share it.
        optional queue: Count, default "not stated", example "16";
        /// From a packet's arrival to the end of its bottom half.
        optional deadline: ExactTime, default "none", example "\"5ms\"";
    }
}
