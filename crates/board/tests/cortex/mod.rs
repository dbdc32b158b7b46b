// SPDX-License-Identifier: GPL-3.0-or-later
//! What the tests of ports/cortex-m share: the limits, and the compiler's command.
#![allow(dead_code)] // each test crate uses its part

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use weir_board::board::EmulatedBoard;
use weir_board::firmware::{Firmware, FirmwareError, Toolchain};
use weir_board::mps2::Qemu;
use weir_board::run::{LineStimulus, RunSpec, Target};
use weir_core_sys::{Config, LimitPolicy, LimitTiming, Trigger};

pub mod generated;
#[path = "../../../linux/tests/skipped/mod.rs"]
mod skipped;
use skipped::skipped;

/// Instructions in a tick of the board's timers, which count at 25 MHz.
pub const PER_TICK: u64 = 5;
/// Every prescaler of the timer, with an interval of about 100 us in its ticks.
pub const DIVISORS: [(u64, u64); 3] = [(1, 2500), (16, 160), (256, 10)];
/// Has this machine QEMU and the compiler? If not, that is told.
pub fn can_run() -> bool {
    for tool in ["qemu-system-arm", "arm-none-eabi-gcc"] {
        if Command::new(tool).arg("--version").output().is_err() {
            skipped(&format!(
                "{tool} is missing; scripts/bootstrap.sh arm installs it"
            ));
            return false;
        }
    }
    true
}

/// A limit and the prescaler of its timer.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    pub config: Config,
    pub divisor: u64,
}

impl Limit {
    /// Every policy with every timing, at every prescaler.
    pub fn all() -> Vec<Self> {
        use LimitPolicy::{Bucket, Bursty, Paced, Strict};
        use LimitTiming::{Eager, Lazy, OneShot};
        let kinds = [
            (Strict, Eager, 1),
            (Strict, Lazy, 1),
            (Paced, Eager, 1),
            (Paced, Lazy, 1),
            (Bursty, Eager, 3),
            (Bursty, Lazy, 3),
            (Bursty, OneShot, 3),
            (Bucket, Eager, 4),
            (Bucket, Lazy, 4),
        ];
        let at = |(divisor, interval)| {
            kinds.map(|(policy, timing, burst)| Self {
                config: Config {
                    policy,
                    timing,
                    trigger: Trigger::Edge,
                    interval,
                    lag: 0,
                    burst,
                },
                divisor,
            })
        };
        DIVISORS.into_iter().flat_map(at).collect()
    }

    /// Instructions in a tick.
    pub fn tick(&self) -> u64 {
        self.divisor * PER_TICK
    }

    /// The macro LIMIT, an initialiser in C.
    pub fn initialiser(&self) -> String {
        let name = |debug: String| match debug.as_str() {
            "OneShot" => "ONE_SHOT".to_owned(),
            other => other.to_uppercase(),
        };
        format!(
            "LIMIT=.policy = WEIR_LIMIT_{}, .timing = WEIR_LIMIT_{}, .interval = {}, .burst = {}",
            name(format!("{:?}", self.config.policy)),
            name(format!("{:?}", self.config.timing)),
            self.config.interval,
            self.config.burst
        )
    }
}

/// A compiled firmware.
pub struct Elf {
    _folder: TempDir,
    pub path: PathBuf,
}

pub fn compile(source: &str, defines: &[String]) -> Result<Elf, FirmwareError> {
    compile_with(&root().join(source), &[], defines)
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles a source with further include paths.
pub fn compile_with(
    source: &Path,
    includes: &[PathBuf],
    defines: &[String],
) -> Result<Elf, FirmwareError> {
    let root = root();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limited.elf");
    let flags = [
        "-Werror",
        "-Wl,--undefined=vectors,--nmagic,--section-start=.vectors=0",
        "-Wl,-Ttext=0x100,-Tbss=0x20000000,--entry=0x100",
    ];
    let firmware = Firmware {
        sources: vec![source.to_owned(), root.join("core/src/limit.c")],
        defines: defines.to_vec(),
        includes: ["core/include", "ports/cortex-m/include"]
            .iter()
            .map(|include| root.join(include))
            .chain(includes.iter().cloned())
            .collect(),
        flags: flags.map(str::to_owned).to_vec(),
    };
    firmware.build_with(&Toolchain::CORTEX_M3, &path)?;
    Ok(Elf {
        _folder: folder,
        path,
    })
}

/// A run of `cycles` on the board, under floods.
pub fn spec(elf: &Elf, floods: &[&str], cycles: u64) -> RunSpec {
    let board = EmulatedBoard::Mps2An385;
    let clock = board.clock_hz();
    let mut spec = RunSpec::new(&elf.path, clock, cycles);
    spec.target = Target::Mps2An385(Qemu::find(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap());
    spec.floods = floods
        .iter()
        .map(|text| LineStimulus::on(board, text, clock).unwrap())
        .collect();
    spec
}
