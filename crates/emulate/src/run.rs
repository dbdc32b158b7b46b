// SPDX-License-Identifier: GPL-3.0-or-later
//! One run of one firmware on one board: its specification and its result.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::board::EmulatedBoard;
use crate::elf::ElfError;
use crate::line::{Line, Pin};
use crate::mps2::{Frames, QemuError};
use crate::soc::SimulatorError;
use crate::stimulus::StimulusError;
pub use crate::stimulus::{LineStimulus, Stimulus};

mod check;

/// The board that runs the firmware, and the program that emulates it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Target {
    board: EmulatedBoard,
    program: PathBuf,
}

impl Target {
    /// The target of `board` by the usual name of its program, which may not be there: enough for
    /// [`check`](fn@check).
    #[must_use]
    pub fn unfound(board: EmulatedBoard) -> Self {
        Self {
            board,
            program: board.emulation().usual_program(),
        }
    }

    /// The target of `board`. The simulator of soc and the plugin of mps2-an385 are searched for in
    /// the clone of Weir around `here`, too, and are built if necessary.
    ///
    /// # Errors
    /// A program that is missing or cannot be built.
    pub fn find(here: &Path, board: EmulatedBoard) -> Result<Self, RunError> {
        Ok(Self {
            board,
            program: board.emulation().find_program(here)?,
        })
    }

    /// The board of this target.
    #[must_use]
    pub fn board(&self) -> EmulatedBoard {
        self.board
    }
}

/// A run: the firmware, the stimuli of the pins, the duration, and the quantities to observe.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// The emulator or simulator.
    pub target: Target,
    /// The path of the firmware.
    pub elf: PathBuf,
    /// The board's clock in Hz; 4 000 000 in regehr2005 §6.1.
    pub clock_hz: u64,
    /// Cycles of the warm-up, which are not counted: counters and statistics are differences from
    /// its end.
    pub warmup_cycles: u64,
    /// Cycles of the counted part. A run ends between two instructions, so up to a few cycles
    /// later.
    pub cycles: u64,
    /// The floods; they start at cycle 0, which is the reset.
    pub floods: Vec<LineStimulus>,
    /// The frames of a flood of [`Line::ETH`].
    pub frames: Frames,
    /// Filters between a flood and its pin.
    pub hardware_limits: Vec<HardwareLimit>,
    /// A second microcontroller between a flood and its pin.
    pub front: Option<FrontController>,
    /// Variables to observe, by their ELF symbols; 1, 2, 4 or 8 bytes each.
    pub counters: Vec<String>,
    /// Code addresses to observe, by their ELF symbols. With marks a run takes about twice as long.
    pub marks: Vec<String>,
    /// Whether to record [`RunResult::events`].
    pub trace: bool,
}

impl RunSpec {
    /// A run of `cycles` at `clock_hz` on the ATmega128 without a warm-up, stimuli or observations.
    #[must_use]
    pub fn new(elf: impl Into<PathBuf>, clock_hz: u64, cycles: u64) -> Self {
        Self {
            target: Target::default(),
            elf: elf.into(),
            clock_hz,
            warmup_cycles: 0,
            cycles,
            floods: Vec::new(),
            frames: Frames::default(),
            hardware_limits: Vec::new(),
            front: None,
            counters: Vec::new(),
            marks: Vec::new(),
            trace: false,
        }
    }

    /// The lines that a flood or the chip in front drives, in ascending order.
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
    /// The path of the firmware in front.
    pub elf: PathBuf,
    /// The line of the chip in front that the flood reaches.
    pub input: Line,
    /// The pin of the chip in front that drives `to`.
    pub output: Pin,
    /// The line of the board that `output` drives.
    pub to: Line,
}

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
    /// The trace that [`RunSpec::trace`] asked for, in order.
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

/// Why a run did not start, or ended early.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum RunError {
    /// The firmware cannot be loaded, or has no such symbol.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Elf(#[from] ElfError),
    /// A flood cannot be run.
    #[error("the flood on {line}: {cause}")]
    Stimulus {
        /// The line of the flood.
        line: Line,
        /// The error in the flood.
        cause: StimulusError,
    },
    /// The board's simulator is missing or fails.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Simulator(#[from] SimulatorError),
    /// QEMU is missing or fails.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Qemu(#[from] QemuError),
    /// The specification contradicts itself.
    #[error("{0}")]
    Spec(String),
    /// The firmware did something that is impossible on the chip, or that the board does not model.
    #[error("the firmware {what} at cycle {cycle}, near {place}")]
    #[diagnostic(help("{help}"))]
    Firmware {
        /// The predicate: `uses …`.
        what: String,
        /// The cycle, counted from the reset.
        cycle: u64,
        /// The function and the address.
        place: String,
        /// A remedy.
        help: String,
    },
}

/// Checks what can be checked before the programs of the target are there: the specification, and
/// the firmware of a target that is another program.
///
/// # Errors
/// The same as those of [`run`], apart from what the firmware does.
pub fn check(spec: &RunSpec) -> Result<(), RunError> {
    check::check(spec)?;
    spec.target.board.emulation().check(spec)
}

/// Runs one firmware. The result is deterministic; several runs may be in parallel.
///
/// # Errors
/// A firmware that cannot be loaded or that crashes, a missing symbol, an impossible specification.
pub fn run(spec: &RunSpec) -> Result<RunResult, RunError> {
    run_with(spec, &mut |_| {})
}

/// Runs one firmware, and now and then tells `progress` how many cycles, with those of the warm-up,
/// are done. The boards soc and mps2-an385 report no progress before its end.
///
/// # Errors
/// The same as those of [`run`].
pub fn run_with(spec: &RunSpec, progress: &mut dyn FnMut(u64)) -> Result<RunResult, RunError> {
    check::check(spec)?;
    let Target { board, program } = &spec.target;
    board.emulation().run(spec, program, progress)
}
