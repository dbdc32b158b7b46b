// SPDX-License-Identifier: GPL-3.0-or-later
//! Measures how many cycles of the board soc the simulator executes per second under the flood of
//! soc-fig1. The exit code is 1 if the goal is missed.
//!
//! The goal applies to the fastest of several runs, because other load on the host can only make a
//! run slower.
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use weir_emulate::board::EmulatedBoard;
use weir_emulate::firmware::Firmware;
use weir_emulate::run::{Target, run};
use weir_report::{Claim, Goal, claims_table};

const CYCLES: u64 = 8_000_000;
const RUNS: usize = 5;
const LEAST_MHZ: f64 = 4.0;

/// Compiles the unprotected node of soc-fig1.
fn firmware(root: &Path, elf: &Path) -> miette::Result<()> {
    let path = |name: &str| root.join(name);
    let flags = ["-O2", "-fno-ipa-icf"].map(str::to_owned);
    let script = format!("-Wl,-T,{}", path("ports/riscv/start/soc.ld").display());
    let firmware = Firmware {
        sources: [
            "papers/experiments/regehr2005/firmware-soc/node.c",
            "papers/experiments/regehr2005/firmware-soc/unprotected.c",
            "core/src/limit.c",
            "ports/riscv/start/start.S",
        ]
        .map(path)
        .to_vec(),
        defines: vec!["NODE_WORK=0".to_owned(), "WEIR_LIMIT_RECORD=0".to_owned()],
        includes: ["core/include", "ports/riscv/include"].map(path).to_vec(),
        flags: flags.into_iter().chain([script]).collect(),
    };
    Ok(firmware.build_with(EmulatedBoard::SOC.toolchain(), elf)?)
}

fn main() -> miette::Result<ExitCode> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().map_err(|error| miette::miette!("{error}"))?;
    let elf = folder.path().join("node.elf");
    firmware(&root, &elf)?;
    let clock_hz = EmulatedBoard::SOC.clock_hz();
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf, clock_hz, CYCLES);
    spec.target = Target::find(&root, EmulatedBoard::SOC)?;
    let flood = EmulatedBoard::SOC.stimulus("INT0=16kHz", clock_hz);
    spec.floods
        .push(flood.map_err(|error| miette::miette!("{error}"))?);
    let mut fastest = 0.0_f64;
    for _ in 0..RUNS {
        let begin = Instant::now();
        let result = run(&spec)?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let megahertz = result.cycles as f64 / 1e6 / begin.elapsed().as_secs_f64();
        fastest = fastest.max(megahertz);
    }
    let claim = Claim {
        id: "soc".to_owned(),
        what: "simulated cycles per second, start and end of the process included".to_owned(),
        unit: "MHz".to_owned(),
        paper: None,
        goal: Goal::AtLeast(LEAST_MHZ),
        today: None,
        measured: fastest,
    };
    let met = claim.is_met();
    println!(
        "{}",
        claims_table(&[claim], std::io::stdout().is_terminal())
    );
    Ok(ExitCode::from(u8::from(!met)))
}
