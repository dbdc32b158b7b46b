// SPDX-License-Identifier: GPL-3.0-or-later
//! The boards' common interface to their facts: names, clocks, lines, compilers.
use weir_boards::Board;

use crate::chip::ATMEGA128;
use crate::firmware::Toolchain;
use crate::line::{Line, NameError};
use crate::{mps2, soc};

/// A board that can run firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmulatedBoard {
    /// A microcontroller, emulated in this process.
    #[default]
    Atmega128,
    /// A RISC-V with `weir_limit` between its lines and its interrupt controller, simulated by a
    /// program of its own.
    Soc,
    /// A Cortex-M3 with an Ethernet controller, emulated by QEMU.
    Mps2An385,
}

impl EmulatedBoard {
    /// Every board.
    pub const ALL: [Self; 3] = [Self::Atmega128, Self::Soc, Self::Mps2An385];

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

    /// The board's facts.
    #[must_use]
    pub fn board(self) -> &'static Board {
        match self {
            Self::Atmega128 => ATMEGA128.board,
            Self::Soc => *soc::BOARD,
            Self::Mps2An385 => *mps2::BOARD,
        }
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

    /// The lines that a flood can reach, in ascending order.
    #[must_use]
    pub fn lines(self) -> Vec<Line> {
        match self {
            Self::Atmega128 | Self::Soc => Line::first(self.board().lines.len()).collect(),
            Self::Mps2An385 => mps2::lines(),
        }
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
        match self {
            Self::Atmega128 => &Toolchain::AVR,
            Self::Soc => &Toolchain::RISCV,
            Self::Mps2An385 => &Toolchain::CORTEX_M3,
        }
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
        assert_eq!(EmulatedBoard::Soc.line("int7").unwrap().to_string(), "INT7");
    }
}
