// SPDX-License-Identifier: GPL-3.0-or-later
//! The board soc: a RISC-V with `weir_limit` in front of its interrupt controller. The program
//! `weir-soc`, built by `boards/soc/build.sh`, simulates the board cycle by cycle.
use std::path::{Path, PathBuf};

use weir_boards::Board;

use crate::emulation::{Abilities, Emulation, RunSpec};
use crate::error::RunError;
use crate::firmware::Toolchain;
use crate::result::RunResult;

mod answer;
pub(crate) mod error;
mod facts;
mod moves;
mod session;
mod simulator;

pub use error::SimulatorError;
use facts::BOARD;
use simulator::Simulator;

/// The board soc, which a separate program simulates.
pub(crate) struct Soc;

impl Emulation for Soc {
    fn board(&self) -> &'static Board {
        *BOARD
    }

    fn toolchain(&self) -> &'static Toolchain {
        &Toolchain::RISCV
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            serial: true,
            bus_errors: true,
            silicon: true,
            ..Abilities::default()
        }
    }

    fn usual_program(&self) -> PathBuf {
        "weir-soc".into()
    }

    fn find_program(&self, here: &Path) -> Result<PathBuf, RunError> {
        Ok(Simulator::find(here)?.program)
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
        session::run(spec, &Simulator::at(program))
    }
}
