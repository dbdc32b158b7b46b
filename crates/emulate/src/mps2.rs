// SPDX-License-Identifier: GPL-3.0-or-later
//! The board mps2-an385: a Cortex-M3 with an Ethernet controller, which QEMU emulates. A plugin in
//! QEMU (crates/emulate/plugin) moves its lines, sends it frames and counts what it executes.
use std::net::Ipv4Addr;
use std::sync::LazyLock;

use weir_boards::Board;

use crate::line::Line;

mod answer;
mod qemu;
mod session;

pub use qemu::{Qemu, QemuError};
pub(crate) use session::{checked, run};

/// The board, as `boards/mps2-an385/board.toml` describes it.
pub(crate) static BOARD: LazyLock<&'static Board> = LazyLock::new(|| {
    Board::named("mps2-an385")
        .unwrap_or_else(|| panic!("boards/mps2-an385 is part of this program"))
});

/// The inputs of its interrupt controller.
const IRQS: u8 = 32;
/// Nanoseconds of one instruction (`-icount shift=3`), which counts as a cycle.
const CYCLE_NS: u64 = 8;

/// The lines that a flood can reach.
pub(crate) fn lines() -> Vec<Line> {
    (0..IRQS).map(Line::irq).chain([Line::ETH]).collect()
}

/// The frames of a flood: ready-made echo requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    /// Bytes of each, without the checksum: 60 to 1514.
    pub bytes: usize,
    /// The address that they are for.
    pub to: Ipv4Addr,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            bytes: 60,
            to: Ipv4Addr::new(10, 0, 0, 2),
        }
    }
}
