// SPDX-License-Identifier: GPL-3.0-or-later
//! The board mps2-an385: a Cortex-M3 with an Ethernet controller, emulated by QEMU. A QEMU plugin
//! (crates/emulate/plugin) drives the board's lines, sends frames and counts instructions.
use std::path::{Path, PathBuf};

use weir_boards::Board;

use crate::emulation::{Abilities, Emulation, RunSpec};
use crate::error::RunError;
use crate::firmware::Toolchain;
use crate::line::Line;
use crate::result::RunResult;

mod answer;
pub(crate) mod error;
mod facts;
mod qemu;
mod session;

pub use error::QemuError;
use facts::{BOARD, IRQS};
use qemu::Qemu;

/// The board mps2-an385, which QEMU emulates with a plugin.
pub(crate) struct Mps2An385;

impl Emulation for Mps2An385 {
    fn board(&self) -> &'static Board {
        *BOARD
    }

    fn toolchain(&self) -> &'static Toolchain {
        &Toolchain::CORTEX_M3
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            serial: true,
            ..Abilities::default()
        }
    }

    fn lines(&self) -> Vec<Line> {
        (0..IRQS).map(Line::irq).chain([Line::ETH]).collect()
    }

    fn usual_program(&self) -> PathBuf {
        Qemu::unfound().plugin
    }

    fn find_program(&self, here: &Path) -> Result<PathBuf, RunError> {
        Ok(Qemu::find(here)?.plugin)
    }

    fn check(&self, spec: &RunSpec) -> Result<(), RunError> {
        session::checked(spec).map(drop)
    }

    fn run(
        &self,
        spec: &RunSpec,
        program: &Path,
        _progress: &mut dyn FnMut(u64),
    ) -> Result<RunResult, RunError> {
        session::run(spec, &Qemu::with(program))
    }
}
