// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words that a file chooses from.
use weir_boards::{Policy, Timing};

use super::value::{choice, words};

choice! {
    /// How interrupts preempt each other.
    Nesting "way of interrupts" {
        /// No interrupt preempts another; the lowest order is served first (AVR).
        Flat = "flat",
        /// A higher group preempts a lower one; inside a group none preempts and the lowest order
        /// is served first (Cortex-M, RISC-V).
        Grouped = "grouped",
    }
}

choice! {
    /// How tasks share the processor.
    TaskModel "way of tasks" {
        /// The most urgent task runs.
        Preemptive = "preemptive",
        /// The most urgent task is started next and runs to its end (a super-loop).
        Cooperative = "cooperative",
    }
}

words! {
    Policy "policy" {
        /// Every request is served.
        Off,
        /// A minimum time between two requests (LIMIT-STRICT-1).
        Strict,
        /// Strict with nominal instants: exact in the long run, without a minimum time
        /// (LIMIT-PACED-1).
        Paced,
        /// `burst` per period of a timer (LIMIT-BURSTY-1, -2).
        Bursty,
        /// A bucket of `burst` tokens (LIMIT-BUCKET-1).
        Bucket,
        /// The source has no interrupt of its own; a timer polls it (regehr2005 §5.2). No port has
        /// code for it: it is analysed in a file without a board, and refused with one.
        Poll,
    }
}

words! {
    Timing "timing" {
        /// With the first request beyond what the policy allows.
        Lazy,
        /// With the request that uses up what the policy allows.
        Eager,
        /// Bursty only: the period begins with a request.
        OneShot,
    }
}

choice! {
    /// Who enforces a limit.
    Place "place" {
        /// The interrupt handler, with a timer.
        Software = "software",
        /// Logic between the line and the processor (`[silicon]`): strict, bucket and bursty. It
        /// costs no time (regehr2005 §3.4).
        Hardware = "hardware",
    }
}

choice! {
    /// How a line asks.
    Trigger "trigger" {
        /// With each rising edge. One that comes too early is noted.
        Edge = "edge",
        /// As long as it is high.
        Level = "level",
    }
}

choice! {
    /// Where a limiter in silicon keeps the state of its sources.
    SiliconForm "form" {
        /// In registers: an interval is exact to the clock.
        Registers = "registers",
        /// In memories that a scan goes through: small for many sources. An interval is a whole
        /// number of scans, and a request waits for one.
        Memory = "memory",
    }
}

choice! {
    /// How registers are reset.
    SiliconReset "reset" {
        /// Not at all: they power up with their values, as in FPGAs.
        None = "none",
        /// With the clock.
        Synchronous = "synchronous",
        /// At once.
        Asynchronous = "asynchronous",
    }
}

choice! {
    /// What a limiter in silicon does with its output.
    Output "output" {
        /// A pulse of one clock for each delivery, for interrupt controllers that latch edges.
        Pulse = "pulse",
        /// High from a delivery until it is acknowledged or, for a level, until the level falls.
        Held = "held",
    }
}

choice! {
    /// The protocol above IP.
    Protocol "protocol" {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
        /// ICMP, of either version of IP.
        Icmp = "icmp",
    }
}
