// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor in the form that the other sections of a file need.
use weir_boards::{Board, Flavour, PortRules};

use super::units::CycleClock;
use crate::file::sections as raw;
use crate::system::Cpu;

/// The processor, with the data that the other sections need.
#[derive(Debug)]
pub(crate) struct Processor<'a> {
    pub cpu: Cpu,
    pub clock: CycleClock,
    pub hardware: Hardware,
    /// The costs of limiters that the file states.
    pub costs: Option<&'a raw::Costs>,
}

/// The origin of the vectors and timers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hardware {
    /// The file describes its own vectors and timers.
    Own,
    /// The vectors and timers are those of a board, with a flavour of its port.
    Board {
        board: &'static Board,
        flavour: Flavour,
    },
}

impl Processor<'_> {
    /// The board and the flavour of its port; `None` if the file describes its own processor.
    pub fn board(&self) -> Option<(&'static Board, Flavour)> {
        match self.hardware {
            Hardware::Own => None,
            Hardware::Board { board, flavour } => Some((board, flavour)),
        }
    }

    /// The rules of the flavour of the board's port. `None` if there is no board, or if Weir
    /// analyses no limits in software on it.
    pub fn rules(&self) -> Option<&'static PortRules> {
        let (board, flavour) = self.board()?;
        board.rules(flavour)
    }
}
