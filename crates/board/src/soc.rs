// SPDX-License-Identifier: GPL-3.0-or-later
//! The board soc: a RISC-V with `weir_limit` in front of its interrupt controller, simulated cycle by cycle by the program
//! `weir-soc`, which `boards/soc/build` makes.
use std::sync::LazyLock;

use serde::Deserialize;

mod answer;
mod moves;
mod session;
mod simulator;

pub(crate) use session::run;
pub use simulator::{Simulator, SimulatorError};

/// What of the board is a fact and no choice; what only analysis needs is left alone.
#[derive(Debug, Deserialize)]
pub(crate) struct Facts {
    /// As on the command line.
    pub name: String,
    /// The usual clock in Hz.
    pub clock_hz: u64,
    /// At address 0.
    pub ram_bytes: u32,
    /// INT0 upwards.
    pub lines: usize,
}

/// Those of `boards/soc/board.toml`.
pub(crate) static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../boards/soc/board.toml")).unwrap_or_else(|error| {
        panic!("boards/soc/board.toml, which is part of this program: {error}")
    })
});
