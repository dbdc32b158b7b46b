// SPDX-License-Identifier: GPL-3.0-or-later
//! Executes a [`RunSpec`] on the board soc: writes the simulator's input and starts the simulator.
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use weir_report::Temporary;

use super::error::SimulatorError;
use super::facts::BOARD;
use super::moves;
use super::simulator::Simulator;
use crate::atmega128::Driver;
use crate::elf::MemoryImage;
use crate::emulation::RunSpec;
use crate::error::RunError;
use crate::result::RunResult;

pub(super) fn run(spec: &RunSpec, simulator: &Simulator) -> Result<RunResult, RunError> {
    let program = checked(spec)?;
    let written = |cause: io::Error| RunError::from(SimulatorError::Workspace(cause));
    let folder = Temporary::folder("weir-soc-").map_err(written)?;
    let image = folder.path().join("image.bin");
    std::fs::write(&image, &program.memory).map_err(written)?;

    let mut arguments: Vec<OsString> = vec!["--image".into(), image.into()];
    let mut put = |name: &str, value: OsString| arguments.extend([name.into(), value]);
    put("--cycles", spec.cycles.to_string().into());
    put("--warmup", spec.warmup_cycles.to_string().into());
    put("--clock-hz", spec.clock_hz.to_string().into());
    for flood in &spec.floods {
        let limit = spec
            .hardware_limits
            .iter()
            .find(|limit| limit.line == flood.line);
        let interval = limit.map(|limit| limit.interval_cycles);
        let mut driver =
            Driver::new(&flood.stimulus, spec.clock_hz, interval).map_err(|cause| {
                RunError::Stimulus {
                    line: flood.line,
                    cause,
                }
            })?;
        let path = folder.path().join(format!("{}.moves", flood.line));
        write_moves(&mut driver, spec.warmup_cycles + spec.cycles, &path).map_err(written)?;
        let mut value = OsString::from(format!("{}=", flood.line.number()));
        value.push(&path);
        put("--moves", value);
    }
    for name in &spec.counters {
        let symbol = program.variable(name)?;
        let value = format!("{name}=0x{:x}:{}", symbol.address, symbol.size);
        put("--watch", value.into());
    }
    for name in &spec.marks {
        let value = format!("{name}=0x{:x}", program.code_address(name)?);
        put("--mark", value.into());
    }
    Ok(simulator.ask(&arguments)?.into_result(spec))
}

/// Checks that the board can run `spec`, and returns the firmware.
pub(super) fn checked(spec: &RunSpec) -> Result<MemoryImage, RunError> {
    check(spec)?;
    let program = MemoryImage::load(&spec.elf, &BOARD.name, BOARD.ram_bytes)?;
    for name in &spec.counters {
        program.variable(name)?;
    }
    for name in &spec.marks {
        program.code_address(name)?;
    }
    Ok(program)
}

/// Rejects what this board does not support.
fn check(spec: &RunSpec) -> Result<(), RunError> {
    if spec.trace {
        return Err(RunError::Spec(
            "the board soc records no trace: watch variables and places in the code".to_owned(),
        ));
    }
    Ok(())
}

fn write_moves(driver: &mut Driver, end: u64, path: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    moves::write(driver, end, &mut file)?;
    file.flush()
}
