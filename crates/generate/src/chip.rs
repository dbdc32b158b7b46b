// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chips for which code can be generated. They are the chips of the boards whose port has
//! rules.
use weir_boards::{Board, Flavour};
use weir_model::System;

fn boards() -> impl Iterator<Item = &'static Board> {
    Board::all().iter().filter(|board| has_port(board))
}

/// Whether Weir has code that keeps limits in software on this board.
pub(crate) fn has_port(board: &Board) -> bool {
    Flavour::ALL.iter().any(|&of| board.rules(of).is_some())
}

/// The names of all chips, each only once.
#[must_use]
pub fn chips() -> Vec<&'static str> {
    let mut names: Vec<&str> = boards().map(Board::chip).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The board of `system`, if it has the chip of this name; otherwise the first board that has the
/// chip.
///
/// # Errors
/// Returns the errors of [`chip`].
pub fn board(name: &str, system: &System) -> Result<&'static Board, UnknownChip> {
    let of_file = system.cpu.board.as_deref().and_then(Board::named);
    match of_file.filter(|board| has_port(board) && board.chip() == name) {
        Some(board) => Ok(board),
        None => chip(name),
    }
}

/// A chip for which there is no port.
#[derive(Debug, Clone, thiserror::Error, miette::Diagnostic)]
#[error("there is no port for the chip `{name}`")]
#[diagnostic(help("the chips are: {}", chips().join(", ")))]
pub struct UnknownChip {
    /// The name that the user asked for.
    pub name: String,
}

/// The first board with the chip of this name.
///
/// # Errors
/// Fails for a chip without a port; the message lists the chips that have one.
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
