// SPDX-License-Identifier: GPL-3.0-or-later
//! The boards that can run firmware: their facts, what each can do, and how it runs.
use std::fmt;
use std::path::{Path, PathBuf};

use weir_boards::Board;

use crate::firmware::Toolchain;
use crate::line::{Line, NameError};
use crate::run::{RunError, RunResult, RunSpec};
use crate::session::Atmega128;
use crate::{mps2::Mps2An385, soc::Soc};

/// How firmware runs on a board. A new board implements this, and has an entry in
/// [`EmulatedBoard::ALL`].
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
    /// A microcontroller, emulated in this process.
    pub const ATMEGA128: Self = Self(&Atmega128);
    /// A RISC-V with `weir_limit` between its lines and its interrupt controller, simulated by a
    /// program of its own.
    pub const SOC: Self = Self(&Soc);
    /// A Cortex-M3 with an Ethernet controller, emulated by QEMU.
    pub const MPS2_AN385: Self = Self(&Mps2An385);

    /// Every board.
    pub const ALL: [Self; 3] = [Self::ATMEGA128, Self::SOC, Self::MPS2_AN385];

    /// The board of this name.
    ///
    /// # Errors
    /// A message that lists the existing boards.
    pub fn named(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|board| board.name() == name)
            .ok_or_else(|| {
                let [first @ .., last] = Self::ALL.map(Self::name);
                let known = format!("{} and {last}", first.join(", "));
                format!("there is no board `{name}`: the boards are {known}")
            })
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
}

impl Default for EmulatedBoard {
    fn default() -> Self {
        Self::ATMEGA128
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_is_found_by_its_name_and_an_unknown_one_is_refused_with_all() {
        for board in EmulatedBoard::ALL {
            assert_eq!(EmulatedBoard::named(board.name()), Ok(board));
            let lines: Vec<String> = board.lines().iter().map(Line::to_string).collect();
            assert!(
                lines
                    .join(" ")
                    .starts_with(&board.board().line_names().join(" "))
            );
        }
        let message = EmulatedBoard::named("mps3").unwrap_err();
        assert!(
            message.contains("the boards are atmega128, soc and mps2-an385"),
            "{message}"
        );
    }

    #[test]
    fn a_board_knows_its_own_lines_only() {
        for board in EmulatedBoard::ALL {
            assert!(board.line("INT32").is_err(), "{}", board.name());
        }
        assert_eq!(EmulatedBoard::SOC.line("int7").unwrap().to_string(), "INT7");
    }
}
