// SPDX-License-Identifier: GPL-3.0-or-later
//! The board soc: a RISC-V with `weir_limit` in front of its interrupt controller. The program
//! `weir-soc`, which `boards/soc/build.sh` makes, simulates it cycle by cycle.
use std::sync::LazyLock;

use weir_boards::Board;

mod answer;
mod moves;
mod session;
mod simulator;

pub(crate) use session::{checked, run};
pub use simulator::{Simulator, SimulatorError};

/// The board, as `boards/soc/board.toml` describes it.
pub(crate) static BOARD: LazyLock<&'static Board> = LazyLock::new(|| {
    Board::named("soc").unwrap_or_else(|| panic!("boards/soc is part of this program"))
});
