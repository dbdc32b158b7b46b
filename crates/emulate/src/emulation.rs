// SPDX-License-Identifier: GPL-3.0-or-later
//! The interface of an emulated board: the specification of a run, and the trait that every board
//! implements.
use std::fmt;
use std::path::{Path, PathBuf};

use weir_boards::Board;

use crate::error::RunError;
use crate::firmware::Toolchain;
use crate::line::{Line, NameError, Pin};
use crate::result::RunResult;
use crate::stimulus::{Frames, LineStimulus, StimulusError};

/// Emulates a board. A new board implements this trait and gets an entry in
/// [`EmulatedBoard::ALL`](crate::board).
pub(crate) trait Emulation: Sync {
    /// Returns the facts about the board.
    fn board(&self) -> &'static Board;

    /// Returns the compiler for the board's firmware.
    fn toolchain(&self) -> &'static Toolchain;

    /// Returns the features that only some boards have.
    fn abilities(&self) -> Abilities;

    /// Returns the lines that a flood can drive, in ascending order.
    fn lines(&self) -> Vec<Line> {
        Line::first(self.board().lines.len()).collect()
    }

    /// Returns the usual path of the program that emulates the board, or a part of it. The program
    /// may not exist. The path is empty if the board is emulated in this process.
    fn usual_program(&self) -> PathBuf {
        PathBuf::new()
    }

    /// Finds the program that emulates the board. It is also searched for in the clone of Weir
    /// around `here`, and is built if necessary.
    ///
    /// # Errors
    /// Fails if the program is missing, too old, or cannot be built.
    fn find_program(&self, _here: &Path) -> Result<PathBuf, RunError> {
        Ok(self.usual_program())
    }

    /// Checks everything that can be checked without the program: features that this board does not
    /// support, and the firmware if another program loads it.
    ///
    /// # Errors
    /// Fails as [`Emulation::run`] does, except for faults that occur during the run.
    fn check(&self, _spec: &RunSpec) -> Result<(), RunError> {
        Ok(())
    }

    /// Runs a checked specification with this program. If the board reports progress, calls
    /// `progress` with the number of simulated cycles.
    ///
    /// # Errors
    /// Fails if the firmware cannot be loaded, crashes, or lacks a symbol.
    fn run(
        &self,
        spec: &RunSpec,
        program: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<RunResult, RunError>;
}

/// Features that only some boards have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an ability of its own"
)]
pub struct Abilities {
    /// Whether a second chip can stand in front of a line.
    pub chip_in_front: bool,
    /// Whether the firmware states the clock it was compiled for. Such a board has no usual clock.
    pub clock_by_firmware: bool,
    /// Whether a run reports its progress.
    pub progress: bool,
    /// Whether the board has a serial port, and its firmware can end a run.
    pub serial: bool,
    /// Whether the board counts accesses that its bus refuses.
    pub bus_errors: bool,
    /// Whether the board's lines pass through the limiter in silicon (rtl/limit).
    pub silicon: bool,
}

/// A board that can run firmware.
#[derive(Clone, Copy)]
pub struct EmulatedBoard(&'static dyn Emulation);

impl EmulatedBoard {
    pub(crate) const fn of(emulation: &'static dyn Emulation) -> Self {
        Self(emulation)
    }

    /// Returns the emulation of the board.
    pub(crate) fn emulation(self) -> &'static dyn Emulation {
        self.0
    }

    /// Returns the facts about the board.
    #[must_use]
    pub fn board(self) -> &'static Board {
        self.0.board()
    }

    /// Returns the board's name on the command line and in experiments.
    #[must_use]
    pub fn name(self) -> &'static str {
        &self.board().name
    }

    /// Returns the board's usual clock in Hz. `None` if there is none.
    #[must_use]
    pub fn clock_hz(self) -> u64 {
        self.board().clock_hz
    }

    /// Returns the features that only some boards have.
    #[must_use]
    pub fn abilities(self) -> Abilities {
        self.0.abilities()
    }

    /// Returns the lines that a flood can drive, in ascending order.
    #[must_use]
    pub fn lines(self) -> Vec<Line> {
        self.0.lines()
    }

    /// Finds the line of this name.
    ///
    /// # Errors
    /// The error is a message that lists the board's lines.
    pub fn line(self, name: &str) -> Result<Line, NameError> {
        Line::among(&self.lines(), name)
    }

    /// Returns the compiler for the board's firmware.
    #[must_use]
    pub fn toolchain(self) -> &'static Toolchain {
        self.0.toolchain()
    }

    /// Parses a flood of this board, as [`LineStimulus::on`] does.
    ///
    /// # Errors
    /// Fails as [`LineStimulus::on`] does.
    pub fn stimulus(self, text: &str, clock_hz: u64) -> Result<LineStimulus, StimulusError> {
        LineStimulus::on(&self.lines(), text, clock_hz)
    }

    /// Makes a specification of `cycles` cycles at `clock_hz`, without a warm-up, stimuli or
    /// observations. Its target has not been [found](Target::find) yet.
    #[must_use]
    pub fn spec(self, elf: impl Into<PathBuf>, clock_hz: u64, cycles: u64) -> RunSpec {
        RunSpec {
            target: Target::unfound(self),
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
}

impl PartialEq for EmulatedBoard {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for EmulatedBoard {}

impl fmt::Debug for EmulatedBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A board with the program that emulates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    board: EmulatedBoard,
    program: PathBuf,
}

impl Target {
    /// Makes a target with the usual path of the board's program, which may not exist. This is
    /// enough for [`check`](fn@check).
    #[must_use]
    pub fn unfound(board: EmulatedBoard) -> Self {
        Self {
            board,
            program: board.emulation().usual_program(),
        }
    }

    /// Finds the program of `board`. The simulator of soc and the plugin of mps2-an385 are also
    /// searched for in the clone of Weir around `here`, and are built if necessary.
    ///
    /// # Errors
    /// Fails if a program is missing or cannot be built.
    pub fn find(here: &Path, board: EmulatedBoard) -> Result<Self, RunError> {
        Ok(Self {
            board,
            program: board.emulation().find_program(here)?,
        })
    }

    /// Returns the board of this target.
    #[must_use]
    pub fn board(&self) -> EmulatedBoard {
        self.board
    }

    /// Runs a checked specification; see [`Emulation::run`].
    pub(crate) fn run(
        &self,
        spec: &RunSpec,
        progress: &mut dyn FnMut(u64),
    ) -> Result<RunResult, RunError> {
        self.board.emulation().run(spec, &self.program, progress)
    }
}

/// The specification of a run: the firmware, the stimuli of the pins, the duration, and what to
/// observe.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// The emulator or simulator.
    pub target: Target,
    /// The path of the firmware.
    pub elf: PathBuf,
    /// The board's clock in Hz. regehr2005 §6.1 uses 4 000 000.
    pub clock_hz: u64,
    /// The cycles of the warm-up, during which nothing is counted.
    pub warmup_cycles: u64,
    /// The cycles of the counted part. A run ends at an instruction boundary, so that it may be a
    /// few cycles longer.
    pub cycles: u64,
    /// The floods. They start at cycle 0, the reset.
    pub floods: Vec<LineStimulus>,
    /// The frames of a flood of [`Line::ETH`].
    pub frames: Frames,
    /// The ideal filters between floods and their pins.
    pub hardware_limits: Vec<HardwareLimit>,
    /// A second microcontroller between a flood and its pin. `None` if there is none.
    pub front: Option<FrontController>,
    /// The ELF symbols of variables to observe. Each variable has 1, 2, 4 or 8 bytes.
    pub counters: Vec<String>,
    /// The ELF symbols of code addresses to observe. A run with marks takes about twice as long.
    pub marks: Vec<String>,
    /// Whether to record [`RunResult::events`].
    pub trace: bool,
}

impl RunSpec {
    /// Returns the lines that a flood or the chip in front drives, in ascending order.
    pub(crate) fn driven_lines(&self) -> Vec<Line> {
        let mut driven: Vec<Line> = self.floods.iter().map(|flood| flood.line).collect();
        driven.extend(self.front.as_ref().map(|front| front.to));
        driven.sort_unstable();
        driven.dedup();
        driven
    }
}

/// The ideal filter of regehr2005 §3.4 for one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardwareLimit {
    /// The line whose requests are filtered.
    pub line: Line,
    /// The least time between two requests that pass, in cycles; at least 1.
    pub interval_cycles: u64,
}

/// A second emulated ATmega128 in front of the board, used as the hardware scheduler of regehr2005
/// §6.1. A flood on `to` reaches this chip's `input`, and its `output` drives `to`. Both chips have
/// the same clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontController {
    /// The path of the firmware in front.
    pub elf: PathBuf,
    /// The line of the chip in front that receives the flood.
    pub input: Line,
    /// The pin of the chip in front that drives `to`.
    pub output: Pin,
    /// The line of the board that `output` drives.
    pub to: Line,
}
