// SPDX-License-Identifier: GPL-3.0-or-later
//! The result of one run of one firmware on one board.
use std::collections::BTreeMap;

use crate::line::Line;

/// The result of the counted part of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// The length of the counted part in cycles.
    pub cycles: u64,
    /// The interrupts that were taken, by vector number; those never taken are not listed.
    pub vectors: Vec<VectorUse>,
    /// Cycles neither in an interrupt nor asleep.
    pub background_cycles: u64,
    /// Cycles asleep.
    pub sleep_cycles: u64,
    /// The number of interrupts that ended a sleep.
    pub wakeups: u64,
    /// The lines that a flood or the chip in front drives.
    pub lines: Vec<LineUse>,
    /// The growth of each variable, by symbol. Wrap-arounds are followed as long as a variable
    /// grows by less than half of its range in 512 cycles; a variable that falls below its first
    /// value counts 0.
    pub counters: BTreeMap<String, u64>,
    /// The cycles at which the processor was about to execute at a mark, by symbol; counted from
    /// the beginning of the counted part.
    pub marks: BTreeMap<String, Vec<u64>>,
    /// The trace that [`RunSpec::trace`](crate::run::RunSpec::trace) asked for, in order.
    pub events: Vec<BoardEvent>,
    /// The firmware's output on the serial port, on boards that read it (soc, mps2-an385).
    pub said: String,
    /// The exit code with which the firmware ended the run early, on boards that support it (soc,
    /// mps2-an385).
    pub exit: Option<u32>,
    /// Accesses that the bus refused, on boards that count them (soc).
    pub bus_errors: u64,
}

/// The use of one interrupt vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorUse {
    /// The data sheet's number, from 1; the reset is not listed. On soc the number of the cause,
    /// from 16 on for the lines, from 64 on for exceptions. On mps2-an385 that of
    /// the exception, from 16 on for the lines.
    pub number: u8,
    /// The data sheet's name: `INT0`, `TIMER1_COMPA`. On soc `INT0`, `TIMER`, `OVERLOAD` (the
    /// limiter's own) and so on.
    pub name: String,
    /// The number of interrupts taken.
    pub taken: u64,
    /// Cycles from taking an interrupt (with the response time, also that of a wake-up) to the end
    /// of its RETI, without nested interrupts.
    pub cycles: u64,
    /// The cycles of the longest interrupt, counted in the same way.
    pub longest_cycles: u64,
    /// Instructions executed in the interrupts, on boards that count them (soc, mps2-an385).
    pub instructions: Option<u64>,
    /// Those of the interrupts that followed another one without a return between them, on boards
    /// that count them (mps2-an385).
    pub tail_chained: Option<u64>,
}

/// The requests on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineUse {
    /// The line.
    pub line: Line,
    /// Edges on the pin, of the direction that requests an interrupt.
    pub offered: u64,
    /// Those of the offered edges that found the pending bit set: the requests are lost.
    pub missed: u64,
    /// Requests that the limiter in silicon passed on, on boards that have one (soc).
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
    /// An interrupt is taken; the number of its vector.
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
    /// An edge on the pin, of the direction that requests an interrupt.
    PinEdge(Line),
    /// The processor is about to execute at this mark.
    PcReached(String),
}
