// SPDX-License-Identifier: GPL-3.0-or-later
//! The list of the boards that can run firmware.
pub use crate::emulation::{Abilities, EmulatedBoard};
use crate::mps2::Mps2An385;
use crate::session::Atmega128;
use crate::soc::Soc;

impl EmulatedBoard {
    /// The ATmega128, emulated in this process.
    pub const ATMEGA128: Self = Self::of(&Atmega128);
    /// A RISC-V processor with `weir_limit` between its lines and its interrupt controller,
    /// simulated by a separate program.
    pub const SOC: Self = Self::of(&Soc);
    /// A Cortex-M3 with an Ethernet controller, emulated by QEMU.
    pub const MPS2_AN385: Self = Self::of(&Mps2An385);

    /// All boards.
    pub const ALL: [Self; 3] = [Self::ATMEGA128, Self::SOC, Self::MPS2_AN385];

    /// Finds the board of this name.
    ///
    /// # Errors
    /// The error is a message that lists all boards.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Line;

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
