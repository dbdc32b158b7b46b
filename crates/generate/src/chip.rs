// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chips for which code can be generated: those of the boards whose port has rules.
use weir_boards::{Board, Flavour};

fn boards() -> impl Iterator<Item = &'static Board> {
    Board::all()
        .iter()
        .filter(|board| Flavour::ALL.iter().any(|&of| board.rules(of).is_some()))
}

/// The names of all chips.
#[must_use]
pub fn chips() -> Vec<&'static str> {
    boards().map(Board::chip).collect()
}

/// A chip for which there is no port.
#[derive(Debug, Clone, thiserror::Error, miette::Diagnostic)]
#[error("there is no port for the chip `{name}`")]
#[diagnostic(help("the chips are: {}", chips().join(", ")))]
pub struct UnknownChip {
    /// What was asked for.
    pub name: String,
}

/// The board with the chip of this name.
///
/// # Errors
/// A chip that Weir has no port for; the message lists those there are.
pub fn chip(name: &str) -> Result<&'static Board, UnknownChip> {
    boards()
        .find(|board| board.chip() == name)
        .ok_or_else(|| UnknownChip {
            name: name.to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chip_of_the_list_is_there_and_no_other() {
        for name in chips() {
            assert_eq!(chip(name).unwrap().chip(), name);
        }
        let refused = chip("atmega8").unwrap_err();
        assert!(refused.to_string().contains("atmega8"), "{refused}");
    }
}
