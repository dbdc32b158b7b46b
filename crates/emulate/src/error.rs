// SPDX-License-Identifier: GPL-3.0-or-later
//! Why a run did not start, or ended early.
use crate::elf::ElfError;
use crate::line::Line;
use crate::mps2::error::QemuError;
use crate::soc::error::SimulatorError;
use crate::stimulus::StimulusError;

/// Why a run did not start, or ended early.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum RunError {
    /// The firmware cannot be loaded, or has no such symbol.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Elf(#[from] ElfError),
    /// A flood cannot be run.
    #[error("the flood on {line}: {cause}")]
    Stimulus {
        /// The line of the flood.
        line: Line,
        /// The error in the flood.
        cause: StimulusError,
    },
    /// The board's simulator is missing or fails.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Simulator(#[from] SimulatorError),
    /// QEMU is missing or fails.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Qemu(#[from] QemuError),
    /// The specification contradicts itself.
    #[error("{0}")]
    Spec(String),
    /// The firmware did something that is impossible on the chip, or that the board does not model.
    #[error("the firmware {what} at cycle {cycle}, near {place}")]
    #[diagnostic(help("{help}"))]
    Firmware {
        /// The predicate of the message: `uses …`.
        what: String,
        /// The cycle, counted from the reset.
        cycle: u64,
        /// The function and the address of the fault.
        place: String,
        /// Advice for the user.
        help: String,
    },
}
