// SPDX-License-Identifier: GPL-3.0-or-later
//! Facts about the board that the emulation needs.
use std::sync::LazyLock;

use weir_boards::Board;

/// The board, as `boards/mps2-an385/board.toml` describes it.
pub(super) static BOARD: LazyLock<&'static Board> = LazyLock::new(|| {
    Board::named("mps2-an385")
        .unwrap_or_else(|| panic!("boards/mps2-an385 is part of this program"))
});

/// The number of inputs of the interrupt controller.
pub(super) const IRQS: u8 = 32;
/// Nanoseconds per instruction (`-icount shift=3`). An instruction counts as one cycle.
pub(super) const CYCLE_NS: u64 = 8;
