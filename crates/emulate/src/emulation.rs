// SPDX-License-Identifier: GPL-3.0-or-later
//! How firmware runs on a board: what a run is made of, and what every board has to do for it.
use std::fmt;
use std::path::{Path, PathBuf};

use weir_boards::Board;

use crate::error::RunError;
use crate::firmware::Toolchain;
use crate::line::{Line, NameError, Pin};
use crate::result::RunResult;
use crate::stimulus::{Frames, LineStimulus, StimulusError};

/// How firmware runs on a board. A new board implements this, and has an entry in
/// [`EmulatedBoard::ALL`](crate::board).
pub(crate) trait Emulation: Sync {
    /// The board's facts.
    fn board(&self) -> &'static Board;

    /// The compiler for the board's firmware.
    fn toolchain(&self) -> &'static Toolchain;

    /// What it can do that others cannot.
    fn abilities(&self) -> Abilities;

    /// The lines that a flood can reach, in ascending order.
    fn lines(&self) -> Vec<Line> {
        Line::first(self.board().lines.len()).collect()
    }

    /// The program that emulates the board, or a part of it, by the name that it usually has; it
    /// may not be there. Empty if the board is emulated in this process.
    fn usual_program(&self) -> PathBuf {
        PathBuf::new()
    }

    /// The same program where it is. It is searched for in the clone of Weir around `here`, too,
    /// and is built if necessary.
    ///
    /// # Errors
    /// It is missing, too old, or cannot be built.
    fn find_program(&self, _here: &Path) -> Result<PathBuf, RunError> {
        Ok(self.usual_program())
    }

    /// Checks what can be checked before the program is there: what this board does not support,
    /// and the firmware if another program loads it.
    ///
    /// # Errors
    /// The same as those of [`Emulation::run`], apart from what the firmware does.
    fn check(&self, _spec: &RunSpec) -> Result<(), RunError> {
        Ok(())
    }

    /// Runs a checked specification by this program, and tells `progress` how many cycles are done,
    /// if the board reports progress.
    ///
    /// # Errors
    /// A firmware that cannot be loaded or that crashes, a missing symbol.
    fn run(
        &self,
        spec: &RunSpec,
        program: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<RunResult, RunError>;
}

/// What a board can do that others cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an ability of its own"
)]
pub struct Abilities {
    /// A second chip can stand in front of a line.
    pub chip_in_front: bool,
    /// Its firmware says for which clock it was compiled; there is no usual clock.
    pub clock_by_firmware: bool,
    /// A run reports its progress.
    pub progress: bool,
    /// It has a serial port, and its firmware can end a run.
    pub serial: bool,
    /// It counts accesses that its bus refuses.
    pub bus_errors: bool,
    /// Its lines pass the limiter in silicon (rtl/limit).
    pub silicon: bool,
}

/// A board that can run firmware.
#[derive(Clone, Copy)]
pub struct EmulatedBoard(&'static dyn Emulation);

impl EmulatedBoard {
    pub(crate) const fn of(emulation: &'static dyn Emulation) -> Self {
        Self(emulation)
    }

    /// How firmware runs on it.
    pub(crate) fn emulation(self) -> &'static dyn Emulation {
        self.0
    }

    /// The board's facts.
    #[must_use]
    pub fn board(self) -> &'static Board {
        self.0.board()
    }

    /// The board's name on the command line and in experiments.
    #[must_use]
    pub fn name(self) -> &'static str {
        &self.board().name
    }

    /// The board's usual clock in Hz.
    #[must_use]
    pub fn clock_hz(self) -> u64 {
        self.board().clock_hz
    }

    /// What it can do that others cannot.
    #[must_use]
    pub fn abilities(self) -> Abilities {
        self.0.abilities()
    }

    /// The lines that a flood can reach, in ascending order.
    #[must_use]
    pub fn lines(self) -> Vec<Line> {
        self.0.lines()
    }

    /// The line of this name.
    ///
    /// # Errors
    /// A message that lists the board's lines.
    pub fn line(self, name: &str) -> Result<Line, NameError> {
        Line::among(&self.lines(), name)
    }

    /// The compiler for the board's firmware.
    #[must_use]
    pub fn toolchain(self) -> &'static Toolchain {
        self.0.toolchain()
    }

    /// Reads a flood of this board, as [`LineStimulus::on`] does.
    ///
    /// # Errors
    /// The same as those of [`LineStimulus::on`].
    pub fn stimulus(self, text: &str, clock_hz: u64) -> Result<LineStimulus, StimulusError> {
        LineStimulus::on(&self.lines(), text, clock_hz)
    }

    /// A run of `cycles` at `clock_hz` without a warm-up, stimuli or observations, of a target that
    /// is not [found](Target::find) yet.
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

/// The board that runs the firmware, and the program that emulates it.
#[derive(Debug, Clone, PartialEq, Eq)]
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

    /// Runs a checked specification: see [`Emulation::run`].
    pub(crate) fn run(
        &self,
        spec: &RunSpec,
        progress: &mut dyn FnMut(u64),
    ) -> Result<RunResult, RunError> {
        self.board.emulation().run(spec, &self.program, progress)
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
