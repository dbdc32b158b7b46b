// SPDX-License-Identifier: GPL-3.0-or-later
//! Compiles the firmware of an experiment's runs, and computes how much progress the background
//! loop loses.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use weir_report::{Temporary, give_way_to_interruption, uninterrupted};

use super::error::ExperimentError;
use super::place::Checkout;
use super::setup::{FlavourSources, Setup, Variant};
use weir_emulate::chip::ATMEGA128;
use weir_emulate::elf::Image;
use weir_emulate::firmware::Firmware;
use weir_emulate::line::Line;
use weir_emulate::run::Frames;
use weir_emulate::run::{LineStimulus, RunResult, RunSpec, Stimulus, Target};

/// The variable that counts turns of the background loop, in every firmware of an experiment.
const PROGRESS: &str = "progress";
/// The variable that counts requests served.
const HANDLED: &str = "handled";

/// The compiled firmware of one experiment, and the length of its runs.
pub(super) struct Bench<'a> {
    pub place: &'a Checkout,
    pub setup: &'a Setup,
    pub clock_hz: u64,
    pub warmup_cycles: u64,
    pub length_cycles: u64,
    target: Target,
    workspace: Temporary,
    elves: BTreeMap<String, PathBuf>,
}

impl<'a> Bench<'a> {
    /// Compiles every variant of the experiment.
    pub fn new(place: &'a Checkout, setup: &'a Setup) -> Result<Self, ExperimentError> {
        let run = setup.run.as_ref().ok_or_else(|| {
            ExperimentError::Evaluation("nothing says how long the firmware runs".to_owned())
        })?;
        let clock_hz = run.clock.0.whole_hertz();
        let mut bench = Self {
            place,
            setup,
            clock_hz,
            warmup_cycles: cycles(run.warmup.0, clock_hz)?,
            length_cycles: cycles(run.length.0, clock_hz)?,
            target: Target::find(&place.path(""), setup.board).map_err(Box::new)?,
            workspace: Temporary::folder("weir-").map_err(ExperimentError::Workspace)?,
            elves: BTreeMap::new(),
        };
        bench.elves = setup
            .variant
            .par_iter()
            .map(|variant| Ok((variant.id().to_owned(), bench.compile(variant, &[])?)))
            .collect::<Result<_, ExperimentError>>()?;
        Ok(bench)
    }

    /// The path of a variant's ELF file, compiled as the experiment's file states it.
    pub fn elf(&self, variant: &Variant) -> PathBuf {
        self.elves[variant.id()].clone()
    }

    /// Compiles a variant with additional macros. The macros become part of the ELF file's name.
    pub fn compile(&self, variant: &Variant, defines: &[&str]) -> Result<PathBuf, ExperimentError> {
        let name = [&[variant.id()], defines].concat().join("+");
        let own = FlavourSources {
            sources: variant.sources.clone(),
            includes: Vec::new(),
            defines: [
                variant.defines.clone(),
                defines.iter().map(ToString::to_string).collect(),
            ]
            .concat(),
            flags: variant.flags.clone(),
            linker_script: None,
        };
        self.compile_parts(&name, &[&self.setup.flavour[variant.flavour()], &own])
    }

    /// Compiles the sources of several parts together. `name` becomes the ELF file's name and must
    /// be unique in the experiment.
    pub fn compile_parts(
        &self,
        name: &str,
        parts: &[&FlavourSources],
    ) -> Result<PathBuf, ExperimentError> {
        let all = |field: fn(&FlavourSources) -> &Vec<String>| -> Vec<String> {
            parts.iter().flat_map(|part| field(part).clone()).collect()
        };
        let paths = |names: Vec<String>| names.iter().map(|name| self.place.path(name)).collect();
        let scripts = parts.iter().filter_map(|part| part.linker_script.as_ref());
        let scripts = scripts.map(|script| format!("-Wl,-T,{}", self.place.path(script).display()));
        let firmware = Firmware {
            sources: paths(all(|part| &part.sources)),
            defines: all(|part| &part.defines),
            includes: paths(all(|part| &part.includes)),
            flags: all(|part| &part.flags).into_iter().chain(scripts).collect(),
        };
        let elf = self.workspace.path().join(format!("{name}.elf"));
        let toolchain = self.setup.board.toolchain();
        uninterrupted(|| firmware.build_with(toolchain, &elf))
            .inspect_err(|_| give_way_to_interruption())?;
        Ok(elf)
    }

    /// A temporary folder, which is removed when the experiment ends.
    pub fn folder(&self, name: &str) -> Result<PathBuf, ExperimentError> {
        let folder = self.workspace.path().join(name);
        std::fs::create_dir_all(&folder).map_err(ExperimentError::Workspace)?;
        Ok(folder)
    }

    /// A run without a flood, as long as the experiment's file states.
    pub fn spec(&self, elf: &Path) -> RunSpec {
        RunSpec {
            target: self.target.clone(),
            elf: elf.to_owned(),
            clock_hz: self.clock_hz,
            warmup_cycles: self.warmup_cycles,
            cycles: self.length_cycles,
            floods: Vec::new(),
            frames: Frames::default(),
            hardware_limits: Vec::new(),
            front: None,
            counters: vec![PROGRESS.to_owned(), HANDLED.to_owned()],
            marks: Vec::new(),
            trace: false,
        }
    }

    /// Converts a duration of the experiment's file to cycles of the file's clock.
    pub fn cycles(&self, duration: weir_model::Duration) -> Result<u64, ExperimentError> {
        cycles(duration, self.clock_hz)
    }
}

fn cycles(duration: weir_model::Duration, clock_hz: u64) -> Result<u64, ExperimentError> {
    duration
        .cycles(clock_hz)
        .map_err(|error| ExperimentError::Evaluation(error.to_string()))
}

/// The vector number of an ATmega128 interrupt, or `None` if the chip has no interrupt of this
/// name.
pub(super) fn vector(name: &str) -> Option<u8> {
    let vectors = &ATMEGA128.board.vectors;
    let index = vectors.iter().position(|known| known == name)?;
    u8::try_from(index + 1).ok()
}

/// A compare register of the ATmega128 that a limiter on this channel does not use: its name and
/// its address in data space.
pub(super) fn free_register(channel: &str) -> (&'static str, u16) {
    if channel.starts_with("TIMER2") {
        ("OCR0", 0x51)
    } else {
        ("OCR2", 0x43)
    }
}

/// A flood with edges at the given cycles. `name` identifies the flood in messages.
pub(super) fn edges(name: &str, line: Line, times: Vec<u64>) -> LineStimulus {
    LineStimulus {
        line,
        stimulus: Stimulus::Trace {
            name: name.to_owned(),
            times: times.into(),
        },
    }
}

/// The cycles per turn of the background loop: the cycles outside interrupts in a run of the same
/// firmware without a flood, divided by the number of turns.
pub(super) fn turn_cycles(idle: &RunResult) -> Result<f64, ExperimentError> {
    let progress = counter(idle, PROGRESS);
    if progress == 0.0 {
        return Err(ExperimentError::Evaluation(
            "a firmware without a flood makes no progress: its background must count `progress`"
                .to_owned(),
        ));
    }
    Ok(as_f64(idle.background_cycles) / progress)
}

/// The share of the processor that the background loop did not get, from 0 to 1. As in regehr2005
/// §6.1, the share is inferred from the progress of the background loop, compared with the progress
/// of an uninterrupted one.
pub(super) fn lost(result: &RunResult, turn_cycles: f64) -> f64 {
    1.0 - counter(result, PROGRESS) * turn_cycles / as_f64(result.cycles)
}

/// The largest error, in percentage points, that a run's resolution can cause in an overhead of 0.
const NOISE_POINTS: f64 = 0.05;

/// Checks an overhead before a claim uses it. No limiter has a negative cost: an overhead below 0
/// means that the reference is wrong, for example because the compiler made its handlers slower.
/// Every comparison with such a reference is meaningless.
///
/// # Errors
/// Returns an error if the overhead is below 0 by more than the resolution of a run.
pub(super) fn plausible(of: &str, points: f64) -> Result<f64, ExperimentError> {
    if points < -NOISE_POINTS {
        return Err(ExperimentError::Evaluation(format!(
            "`{of}` seems to cost {points:.3} points, less than no limiter at all: look at the firmware that it is compared with"
        )));
    }
    Ok(points)
}

/// The number of requests served in the counted part of a run.
pub(super) fn served(result: &RunResult) -> f64 {
    counter(result, HANDLED)
}

fn counter(result: &RunResult, name: &str) -> f64 {
    as_f64(result.counters.get(name).copied().unwrap_or(0))
}

/// The memory that a firmware occupies, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Code, constants and the initial values of variables.
    pub flash: u64,
    /// Static variables, initialised or not.
    pub ram: u64,
}

/// Reads the sizes of the firmware called `name`.
pub(super) fn sizes(name: &str, elf: &Path) -> Result<Sizes, ExperimentError> {
    let chip = &*ATMEGA128;
    let image = Image::load(elf, chip).map_err(|cause| ExperimentError::Run {
        firmware: name.to_owned(),
        cause: Box::new(cause.into()),
    })?;
    let end = image.data_end.unwrap_or(chip.avr.ram_start);
    Ok(Sizes {
        flash: image.flash.len() as u64,
        ram: u64::from(end.saturating_sub(chip.avr.ram_start)),
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "cycles and counts of a run are far below 2^52"
)]
pub(super) fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overhead_below_nothing_is_an_error_and_not_a_good_result() {
        assert!(plausible("c.shared2", -0.57).is_err());
        assert!(plausible("c.shared2", -0.01).is_ok());
        assert!(plausible("c.shared2", 1.1).is_ok());
    }
}
