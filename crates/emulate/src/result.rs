// SPDX-License-Identifier: GPL-3.0-or-later
//! The result of a run.
use std::collections::BTreeMap;

use crate::line::Line;

/// The result of the counted part of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// The length of the counted part in cycles.
    pub cycles: u64,
    /// The interrupts by vector number. Vectors whose interrupt was never taken are left out.
    pub vectors: Vec<VectorUse>,
    /// The cycles spent neither in an interrupt nor asleep.
    pub background_cycles: u64,
    /// Cycles asleep.
    pub sleep_cycles: u64,
    /// The number of interrupts that ended a sleep.
    pub wakeups: u64,
    /// The use of the lines that a flood or the chip in front drives.
    pub lines: Vec<LineUse>,
    /// The increase of each variable, by symbol. Wrap-arounds are detected if a variable grows by
    /// less than half of its range in 512 cycles. A variable that falls below its first value
    /// counts as 0.
    pub counters: BTreeMap<String, u64>,
    /// The cycles at which the processor was about to execute at a mark, by symbol. They are
    /// counted from the start of the counted part.
    pub marks: BTreeMap<String, Vec<u64>>,
    /// The events of the trace in order. Empty unless
    /// [`RunSpec::trace`](crate::run::RunSpec::trace) is set.
    pub events: Vec<BoardEvent>,
    /// The firmware's output on the serial port. Empty on boards that do not read it (all but soc
    /// and mps2-an385).
    pub said: String,
    /// The exit code with which the firmware ended the run early. `None` if it did not, and on
    /// boards that do not support it (all but soc and mps2-an385).
    pub exit: Option<u32>,
    /// The number of accesses that the bus refused. 0 on boards that do not count them (all but
    /// soc).
    pub bus_errors: u64,
}

/// The use of one interrupt vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorUse {
    /// The vector's number in the data sheet, from 1; the reset is not listed. On soc it is the
    /// number of the cause: from 16 on for the lines, from 64 on for exceptions. On mps2-an385 it
    /// is the number of the exception, from 16 on for the lines.
    pub number: u8,
    /// The vector's name in the data sheet: `INT0`, `TIMER1_COMPA`. On soc: `INT0`, `TIMER`,
    /// `OVERLOAD` (the limiter's own interrupt) and so on.
    pub name: String,
    /// The number of interrupts taken.
    pub taken: u64,
    /// The cycles from taking an interrupt to the end of its RETI, without nested interrupts. The
    /// response time and that of a wake-up are included.
    pub cycles: u64,
    /// The cycles of the longest interrupt, counted in the same way.
    pub longest_cycles: u64,
    /// The instructions executed in the interrupts. `None` on boards that do not count them (all
    /// but soc and mps2-an385).
    pub instructions: Option<u64>,
    /// The interrupts that followed another interrupt without a return between them. `None` on
    /// boards that do not count them (all but mps2-an385).
    pub tail_chained: Option<u64>,
}

/// The requests on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineUse {
    /// The line.
    pub line: Line,
    /// The edges on the pin in the direction that requests an interrupt.
    pub offered: u64,
    /// The part of `offered` that found the pending bit already set. These requests are lost.
    pub missed: u64,
    /// The requests that the limiter in silicon passed. `None` on boards without such a limiter
    /// (all but soc).
    pub delivered: Option<u64>,
}

/// An event of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardEvent {
    /// The cycle, counted from the beginning of the counted part.
    pub cycle: u64,
    /// The kind of event.
    pub kind: EventKind,
}

/// The kinds of events in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// An interrupt is taken. The field is the number of its vector.
    VectorEntered(u8),
    /// A RETI has ended.
    Reti,
    /// EIMSK, EIFR, TIMSK, ETIMSK, TIFR, ETIFR, a TCNT or an OCR is written.
    IoWritten {
        /// The register's address in data space: 0x59 for EIMSK.
        address: u16,
        /// The byte that the program writes.
        value: u8,
    },
    /// A TCNT, TIFR or ETIFR is read.
    IoRead {
        /// The register's address in data space.
        address: u16,
        /// The byte that the program reads.
        value: u8,
    },
    /// An edge on the pin in the direction that requests an interrupt.
    PinEdge(Line),
    /// The processor is about to execute at this mark.
    PcReached(String),
}
