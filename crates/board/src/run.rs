// SPDX-License-Identifier: GPL-3.0-or-later
//! One run of one firmware on one board: what goes in and what comes out.
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::board::EmulatedBoard;
use crate::elf::ElfError;
use crate::line::{Line, Pin};
use crate::soc::{Simulator, SimulatorError};
use crate::stimulus::StimulusError;
pub use crate::stimulus::{LineStimulus, Stimulus};

mod check;

/// What runs the firmware.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Target {
    /// The emulated ATmega128, in this process.
    #[default]
    Atmega128,
    /// The board soc, in a process of its own.
    Soc(Simulator),
}

impl Target {
    /// The board.
    #[must_use]
    pub fn board(&self) -> EmulatedBoard {
        match self {
            Self::Atmega128 => EmulatedBoard::Atmega128,
            Self::Soc(_) => EmulatedBoard::Soc,
        }
    }
}

/// What to load, what to do to the pins, for how long, and what to watch.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// The board.
    pub target: Target,
    /// The firmware.
    pub elf: PathBuf,
    /// The board's clock in Hz; 4 000 000 in regehr2005 §6.1.
    pub clock_hz: u64,
    /// Run but not counted, in cycles: counters and statistics are differences from its end.
    pub warmup_cycles: u64,
    /// Counted, in cycles. A run ends between two instructions, so up to a few cycles later.
    pub cycles: u64,
    /// Start at cycle 0, which is the reset.
    pub floods: Vec<LineStimulus>,
    /// Filters between a flood and its pin.
    pub hardware_limits: Vec<HardwareLimit>,
    /// A second microcontroller between a flood and its pin.
    pub front: Option<FrontController>,
    /// Variables to follow, by their ELF symbols; 1, 2, 4 or 8 bytes each.
    pub counters: Vec<String>,
    /// Code addresses to watch, by their ELF symbols. With marks a run takes about twice as long.
    pub marks: Vec<String>,
    /// Whether to record [`RunResult::events`].
    pub trace: bool,
}

impl RunSpec {
    /// A run of `cycles` at `clock_hz` on the ATmega128 without a warm-up, in which nothing happens
    /// to the pins and nothing is watched.
    #[must_use]
    pub fn new(elf: impl Into<PathBuf>, clock_hz: u64, cycles: u64) -> Self {
        Self {
            target: Target::default(),
            elf: elf.into(),
            clock_hz,
            warmup_cycles: 0,
            cycles,
            floods: Vec::new(),
            hardware_limits: Vec::new(),
            front: None,
            counters: Vec::new(),
            marks: Vec::new(),
            trace: false,
        }
    }

    /// The lines that a flood or the chip in front drives, ascending.
    pub(crate) fn driven_lines(&self) -> Vec<Line> {
        let mut driven: Vec<Line> = self.floods.iter().map(|flood| flood.line).collect();
        driven.extend(self.front.as_ref().map(|front| front.to));
        driven.sort_unstable();
        driven.dedup();
        driven
    }
}

/// The ideal filter of regehr2005 §3.4 on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardwareLimit {
    /// The line whose requests are filtered.
    pub line: Line,
    /// The least time between two requests that pass, in cycles; at least 1.
    pub interval_cycles: u64,
}

/// A second emulated ATmega128 in front of the board, as the hardware scheduler of regehr2005 §6.1:
/// a flood on `to` reaches its `input`, and its `output` drives `to`. Both chips have the same
/// clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontController {
    /// The firmware in front.
    pub elf: PathBuf,
    /// The line of the chip in front that the flood reaches.
    pub input: Line,
    /// The pin of the chip in front that drives `to`.
    pub output: Pin,
    /// The line of the board.
    pub to: Line,
}

/// What happened in the counted part of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// How long the counted part was.
    pub cycles: u64,
    /// The interrupts that were taken, by vector number; those never taken are not listed.
    pub vectors: Vec<VectorUse>,
    /// Neither in an interrupt nor asleep.
    pub background_cycles: u64,
    /// Asleep.
    pub sleep_cycles: u64,
    /// How often an interrupt ended a sleep.
    pub wakeups: u64,
    /// The lines that a flood or the chip in front drives.
    pub lines: Vec<LineUse>,
    /// By symbol: by how much the variable grew. Wrap-arounds are followed as long as it grows by
    /// less than half of its range in 512 cycles; a variable that falls below where it began counts
    /// 0.
    pub counters: BTreeMap<String, u64>,
    /// By symbol: the cycles, from the begin of the counted part, at which the processor was about
    /// to execute there.
    pub marks: BTreeMap<String, Vec<u64>>,
    /// What [`RunSpec::trace`] asked for, in order.
    pub events: Vec<BoardEvent>,
    /// What the firmware wrote to the serial port, on boards that listen to it (soc).
    pub said: String,
    /// The code with which the firmware ended the run before its time, on boards that can (soc).
    pub exit: Option<u32>,
    /// Accesses that the bus refused, on boards that count them (soc).
    pub bus_errors: u64,
}

/// What one interrupt vector used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorUse {
    /// The data sheet's number, from 1; the reset is not listed. On soc the cause's number, from 16
    /// on the lines, from 64 on exceptions.
    pub number: u8,
    /// The data sheet's name: `INT0`, `TIMER1_COMPA`. On soc `INT0`, `TIMER`, `OVERLOAD` (the
    /// limiter's own) and so on.
    pub name: String,
    /// How often it was taken.
    pub taken: u64,
    /// From the taking (the response's cycles included, also those of a wake-up) to the end of
    /// RETI, without the interrupts nested in it.
    pub cycles: u64,
    /// The longest single one, counted in the same way.
    pub longest_cycles: u64,
    /// Instructions executed in it, on boards that count them (soc).
    pub instructions: Option<u64>,
}

/// What happened on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineUse {
    /// The line.
    pub line: Line,
    /// Edges on the pin, of the direction that requests an interrupt.
    pub offered: u64,
    /// Of these, edges that found the pending bit set: nothing remembers them.
    pub missed: u64,
    /// What came through the limiter in silicon, on boards that have one (soc).
    pub delivered: Option<u64>,
}

/// Something that happened at a cycle, counted from the begin of the counted part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardEvent {
    /// When.
    pub cycle: u64,
    /// What.
    pub kind: EventKind,
}

/// What a trace records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// An interrupt is taken; its number.
    VectorEntered(u8),
    /// A RETI has ended.
    Reti,
    /// EIMSK, EIFR, TIMSK, ETIMSK, TIFR, ETIFR, a TCNT or an OCR is written.
    IoWritten {
        /// In data space: 0x59 for EIMSK.
        address: u16,
        /// What the program writes.
        value: u8,
    },
    /// A TCNT, TIFR or ETIFR is read.
    IoRead {
        /// In data space.
        address: u16,
        /// What the program reads.
        value: u8,
    },
    /// An edge on the pin, of the direction that requests an interrupt.
    PinEdge(Line),
    /// The processor is about to execute at this mark.
    PcReached(String),
}

/// Why a run did not happen or did not end.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum RunError {
    /// A firmware cannot be loaded, or has no such symbol.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Elf(#[from] ElfError),
    /// A flood cannot be run.
    #[error("the flood on {line}: {cause}")]
    Stimulus {
        /// Where.
        line: Line,
        /// Why.
        cause: StimulusError,
    },
    /// The board's simulator is not there, or does not do what it should.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Simulator(#[from] SimulatorError),
    /// The specification contradicts itself.
    #[error("{0}")]
    Spec(String),
    /// The firmware did something that the chip does not do, or that the board does not model.
    #[error("the firmware {what} at cycle {cycle}, near {place}")]
    #[diagnostic(help("{help}"))]
    Firmware {
        /// What.
        what: String,
        /// When, from the reset.
        cycle: u64,
        /// The function and the address.
        place: String,
        /// What to do about it.
        help: String,
    },
}

/// Runs one firmware. Deterministic; several may run in parallel.
///
/// # Errors
/// A firmware that cannot be loaded or that goes astray, a symbol that it does not have, an
/// impossible specification.
pub fn run(spec: &RunSpec) -> Result<RunResult, RunError> {
    run_with(spec, &mut |_| {})
}

/// As [`run`]; `progress` is told from time to time how many of all cycles, the warm-up included,
/// are done. The board soc tells nothing before its end.
///
/// # Errors
/// As [`run`].
pub fn run_with(spec: &RunSpec, progress: &mut dyn FnMut(u64)) -> Result<RunResult, RunError> {
    check::check(spec)?;
    match &spec.target {
        Target::Atmega128 => crate::session::run(spec, progress),
        Target::Soc(simulator) => crate::soc::run(spec, simulator),
    }
}
