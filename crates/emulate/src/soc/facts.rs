// SPDX-License-Identifier: GPL-3.0-or-later
//! Facts about the board that the emulation needs.
use std::sync::LazyLock;

use weir_boards::Board;

/// The board, as `boards/soc/board.toml` describes it.
pub(super) static BOARD: LazyLock<&'static Board> = LazyLock::new(|| {
    Board::named("soc").unwrap_or_else(|| panic!("boards/soc is part of this program"))
});
