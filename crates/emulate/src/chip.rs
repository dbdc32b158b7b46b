// SPDX-License-Identifier: GPL-3.0-or-later
//! The ATmega128, as `boards/atmega128/board.toml` describes it.
use std::sync::LazyLock;

use weir_boards::{Avr, Board};

/// An AVR microcontroller with its board.
#[derive(Debug, Clone, Copy)]
pub struct Chip {
    /// The board that has the chip.
    pub board: &'static Board,
    /// The facts about the chip that the emulator needs.
    pub avr: &'static Avr,
}

impl Chip {
    fn of_board(name: &str) -> Option<Self> {
        let board = Board::named(name)?;
        Some(Self {
            board,
            avr: board.avr.as_ref()?,
        })
    }

    /// Returns the chip's name for avr-gcc's `-mmcu`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.board.chip()
    }

    /// Returns the data sheet's name of a vector.
    #[must_use]
    pub fn vector_name(&self, number: u8) -> &'static str {
        let index = usize::from(number).checked_sub(1);
        index
            .and_then(|index| self.board.vectors.get(index))
            .map_or("RESET", String::as_str)
    }
}

/// The ATmega128.
pub static ATMEGA128: LazyLock<Chip> = LazyLock::new(|| {
    Chip::of_board("atmega128").unwrap_or_else(|| {
        panic!("boards/atmega128/board.toml, which is part of this program, is no AVR's")
    })
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{Line, Pin};

    #[test]
    fn the_boards_file_names_every_line_and_pin_as_the_code_does() {
        for line in Line::all() {
            let facts = &ATMEGA128.board.lines[line.number()];
            assert_eq!(facts.name, line.to_string());
            let pin: Pin = facts.pin.as_deref().unwrap().parse().unwrap();
            assert_eq!(usize::from(pin.bit()), line.number());
        }
        assert_eq!(ATMEGA128.board.vectors.len(), 34);
        assert_eq!(ATMEGA128.vector_name(34), "SPM_READY");
    }
}
