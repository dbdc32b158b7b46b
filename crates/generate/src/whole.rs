// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks all the code that a file asks for.
use weir_boards::Board;
use weir_model::System;

use crate::chip::has_port;
use crate::plan::ChipPlan;
use crate::refusal::Refusal;
use crate::silicon::SiliconPlan;

/// Checks that all code that the file asks for can be generated. Other commands then do not promise
/// limits that nobody can build. The code is that for the chip of the file's board, with the
/// receivers of `[freertos]`, and the block for its limits in hardware. A file without a board and
/// without a limit in hardware asks for no code.
///
/// # Errors
/// Returns what `weir generate` refuses.
pub fn check(system: &System) -> Result<(), Refusal> {
    let board = system.cpu.board.as_deref().and_then(Board::named);
    if let Some(board) = board.filter(|board| has_port(board)) {
        match system.freertos {
            Some(_) => ChipPlan::with_freertos(system, board)?,
            None => ChipPlan::new(system, board)?,
        };
    }
    if system.silicon.is_some() {
        SiliconPlan::new(system)?;
    }
    Ok(())
}
