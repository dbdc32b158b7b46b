// SPDX-License-Identifier: GPL-3.0-or-later
//! The boards' common interface to their facts: names, clocks, lines, compilers.
use weir_target::Board;

use crate::chip::ATMEGA128;
use crate::firmware::Toolchain;
use crate::line::{Line, NameError};
use crate::soc;

/// A board that can run firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmulatedBoard {
    /// A microcontroller, emulated in this process.
    #[default]
    Atmega128,
    /// A RISC-V with `weir_limit` between its lines and its interrupt controller, simulated by a
    /// program of its own.
    Soc,
}

impl EmulatedBoard {
    /// Every board.
    pub const ALL: [Self; 2] = [Self::Atmega128, Self::Soc];

    /// The board of this name.
    ///
    /// # Errors
    /// A message that lists the existing boards.
    pub fn named(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|board| board.name() == name)
            .ok_or_else(|| {
                let known = Self::ALL.map(Self::name).join(" and ");
                format!("there is no board `{name}`: the boards are {known}")
            })
    }

    /// The board's facts.
    #[must_use]
    pub fn board(self) -> &'static Board {
        match self {
            Self::Atmega128 => ATMEGA128.board,
            Self::Soc => *soc::BOARD,
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

    /// The number of the board's interrupt lines, from INT0 on; at most [`Line::MOST`].
    #[must_use]
    pub fn lines(self) -> usize {
        self.board().lines.len()
    }

    /// The line of this name.
    ///
    /// # Errors
    /// A message that lists the board's lines.
    pub fn line(self, name: &str) -> Result<Line, NameError> {
        Line::among(self.lines(), name)
    }

    /// The compiler for the board's firmware.
    #[must_use]
    pub fn toolchain(self) -> &'static Toolchain {
        match self {
            Self::Atmega128 => &Toolchain::AVR,
            Self::Soc => &Toolchain::RISCV,
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
            assert!(board.lines() <= Line::MOST);
        }
        let message = EmulatedBoard::named("mps3").unwrap_err();
        assert!(
            message.contains("the boards are atmega128 and soc"),
            "{message}"
        );
    }

    #[test]
    fn a_board_knows_its_own_lines_only() {
        for board in EmulatedBoard::ALL {
            assert!(board.line("INT31").is_err(), "{}", board.name());
        }
        assert_eq!(EmulatedBoard::Soc.line("int7").unwrap().to_string(), "INT7");
    }
}
