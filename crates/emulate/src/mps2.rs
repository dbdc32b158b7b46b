// SPDX-License-Identifier: GPL-3.0-or-later
//! The board mps2-an385: a Cortex-M3 with an Ethernet controller, which QEMU emulates. A plugin in
//! QEMU (crates/emulate/plugin) moves its lines, sends it frames and counts what it executes.
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use weir_boards::Board;

use crate::board::{Abilities, Emulation};
use crate::firmware::Toolchain;
use crate::line::Line;
use crate::run::{RunError, RunResult, RunSpec};

mod answer;
mod qemu;
mod session;

use qemu::Qemu;
pub use qemu::QemuError;

/// The board, as `boards/mps2-an385/board.toml` describes it.
pub(crate) static BOARD: LazyLock<&'static Board> = LazyLock::new(|| {
    Board::named("mps2-an385")
        .unwrap_or_else(|| panic!("boards/mps2-an385 is part of this program"))
});

/// The inputs of its interrupt controller.
const IRQS: u8 = 32;
/// Nanoseconds of one instruction (`-icount shift=3`), which counts as a cycle.
const CYCLE_NS: u64 = 8;

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
