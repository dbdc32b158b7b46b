// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor, as the other sections of a file need it.
use weir_boards::{Board, Flavour, PortRules};

use super::units::CycleClock;
use crate::file::sections as raw;
use crate::system::Cpu;

/// The processor with what the other sections need of it.
#[derive(Debug)]
pub(crate) struct Processor<'a> {
    pub cpu: Cpu,
    pub clock: CycleClock,
    pub hardware: Hardware,
    /// What the file says of the limiters' costs.
    pub costs: Option<&'a raw::Costs>,
}

/// Who states the vectors and timers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hardware {
    /// The file's own.
    Own,
    /// A board's, with a flavour of its port.
    Board {
        board: &'static Board,
        flavour: Flavour,
    },
}

impl Processor<'_> {
    /// The board and the flavour of its port; none: the file describes its own.
    pub fn board(&self) -> Option<(&'static Board, Flavour)> {
        match self.hardware {
            Hardware::Own => None,
            Hardware::Board { board, flavour } => Some((board, flavour)),
        }
    }

    /// What the flavour of the board's port can do. None: there is no board, or Weir analyses no
    /// limit in software on it.
    pub fn rules(&self) -> Option<&'static PortRules> {
        let (board, flavour) = self.board()?;
        board.rules(flavour)
    }
}
