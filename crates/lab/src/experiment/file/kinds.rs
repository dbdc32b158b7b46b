// SPDX-License-Identifier: GPL-3.0-or-later
//! The kinds of experiments, and which of them a file is.
use toml::Spanned;

use super::{CurveSpec, Pointer};
use crate::experiment::ExperimentError;
use crate::experiment::area::AreaSpec;
use crate::experiment::bounds::BoundsSpec;
use crate::experiment::constants::ConstantsSpec;
use crate::experiment::linux::LinuxSpec;
use crate::experiment::rates::RatesSpec;
use crate::experiment::simulation::SimulationSpec;
use crate::experiment::sweep::SweepSpec;
use crate::experiment::two_sources::TwoSourcesSpec;
use weir_board::machine::Machine;

/// What is done, with the parameters that only this kind has.
#[derive(Debug)]
pub(in crate::experiment) enum Kind {
    OverheadSweep(Box<SweepSpec>),
    Constants(ConstantsSpec),
    Rates(RatesSpec),
    TwoSources(TwoSourcesSpec),
    Bounds(BoundsSpec),
    Simulation(Box<SimulationSpec>),
    Area(AreaSpec),
    Linux(Box<LinuxSpec>),
}

impl Kind {
    /// Whether it compiles firmware and runs it.
    pub(super) fn runs_firmware(&self) -> bool {
        !matches!(self, Self::Simulation(_) | Self::Area(_) | Self::Linux(_))
    }

    /// Whether its firmware can run on this board.
    pub(super) fn runs_on(&self, machine: Machine) -> bool {
        match self {
            Self::OverheadSweep(_) | Self::Rates(_) => true,
            Self::Constants(_) | Self::TwoSources(_) | Self::Bounds(_) => {
                machine == Machine::Atmega128
            }
            Self::Simulation(_) | Self::Area(_) | Self::Linux(_) => false,
        }
    }

    /// The curves of the series that all variants have, after their names and a point; none where variants are not drawn by themselves.
    pub(super) fn curves(&self, series: &Spanned<String>) -> Vec<CurveSpec> {
        match self {
            Self::Linux(spec) => spec.curves(series),
            _ => Vec::new(),
        }
    }

    /// The title, which says so if it was not measured on a board's own firmware.
    pub(super) fn marked(&self, title: String) -> String {
        match self {
            Self::Simulation(_) => format!("{title} (simulated)"),
            Self::Linux(_) => format!("{title} (Linux in an emulated machine)"),
            _ => title,
        }
    }
}

const KINDS: &str = "`overhead-sweep`, `constants`, `rates`, `two-sources`, `bounds`, `simulation`, `area` and `linux`";

/// The tables of which a file has the one that its kind names.
pub(super) struct Kinds {
    pub sweep: Option<SweepSpec>,
    pub constants: Option<ConstantsSpec>,
    pub rates: Option<RatesSpec>,
    pub two_sources: Option<TwoSourcesSpec>,
    pub bounds: Option<BoundsSpec>,
    pub simulation: Option<SimulationSpec>,
    pub area: Option<AreaSpec>,
    pub linux: Option<LinuxSpec>,
}

impl Kinds {
    /// The one that the file says it is.
    pub fn named(self, pointer: &Pointer, name: &Spanned<String>) -> Result<Kind, ExperimentError> {
        let tables = [
            self.sweep.is_some(),
            self.constants.is_some(),
            self.rates.is_some(),
            self.two_sources.is_some(),
            self.bounds.is_some(),
            self.simulation.is_some(),
            self.area.is_some(),
            self.linux.is_some(),
        ];
        let found = match name.get_ref().as_str() {
            "overhead-sweep" => self.sweep.map(|spec| Kind::OverheadSweep(Box::new(spec))),
            "constants" => self.constants.map(Kind::Constants),
            "rates" => self.rates.map(Kind::Rates),
            "two-sources" => self.two_sources.map(Kind::TwoSources),
            "bounds" => self.bounds.map(Kind::Bounds),
            "simulation" => self.simulation.map(|spec| Kind::Simulation(Box::new(spec))),
            "area" => self.area.map(Kind::Area),
            "linux" => self.linux.map(|spec| Kind::Linux(Box::new(spec))),
            other => {
                return Err(pointer.wrong(
                    name,
                    format!("there is no kind of experiment `{other}`"),
                    format!("the kinds are {KINDS}"),
                ));
            }
        };
        match found {
            Some(kind) if tables.iter().filter(|there| **there).count() == 1 => Ok(kind),
            _ => Err(pointer.wrong(
                name,
                format!(
                    "a file of the kind `{0}` has a table [{0}] and none of another kind",
                    name.get_ref()
                ),
                format!("the kinds are {KINDS}"),
            )),
        }
    }
}
