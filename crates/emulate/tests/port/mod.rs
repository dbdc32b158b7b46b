// SPDX-License-Identifier: GPL-3.0-or-later
//! Runs firmware of the AVR port under a flood on the board, and splits the trace into episodes.

pub mod curve;
pub mod history;
pub mod replay;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use tempfile::TempDir;
use weir_core_sys::{Config, LimitPolicy, LimitTiming, Trigger};
use weir_emulate::board::EmulatedBoard;
use weir_emulate::firmware::{Firmware, FirmwareError};
use weir_emulate::line::Line;
use weir_emulate::run::{LineStimulus, RunResult, Stimulus, run};

/// The clock of all tests in Hz.
pub const CLOCK: u64 = 4_000_000;

/// The same values as in ports/avr/tests/watched.h.
pub mod mark {
    pub const END: u8 = 0x00;
    pub const START: u8 = 0x10;
    pub const DISABLE: u8 = 0x11;
    pub const ENABLE: u8 = 0x12;
    pub const OVERLOAD_BEGINS: u8 = 0x13;
    pub const OVERLOAD_ENDS: u8 = 0x14;
    pub const FAILURE: u8 = 0x1f;
    pub const HANDLER: u8 = 0x20;
    pub const CHANGE: u8 = 0x30;
}

/// The two flavours of ports/avr, and the shared timers of the fast flavour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    C,
    Fast,
    FastShared,
}

/// A compiled firmware. Its file exists as long as this value.
pub struct Elf {
    _folder: TempDir,
    pub path: PathBuf,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the build of `ports/avr/tests/SOURCES` with these macros. A name with a slash is a path
/// from the root of the repository.
pub fn firmware(sources: &[&str], flavour: Flavour, defines: &[String]) -> Firmware {
    let root = root();
    let mut all: Vec<PathBuf> = sources
        .iter()
        .map(|source| {
            if source.contains('/') {
                root.join(source)
            } else {
                root.join("ports/avr/tests").join(source)
            }
        })
        .collect();
    all.push(root.join("core/src/limit.c"));
    let mut flags: Vec<String> = Vec::new();
    let mut defines = [
        &["WEIR_TICK_BITS=16".to_owned(), "F_CPU=4000000UL".to_owned()],
        defines,
    ]
    .concat();
    if flavour != Flavour::C {
        defines.push("WEIR_AVR_FAST".to_owned());
        flags.extend((2..=10).map(|register| format!("-ffixed-r{register}")));
    }
    if flavour == Flavour::Fast {
        all.push(root.join("ports/avr/start/start.S"));
        flags.push("-nostartfiles".to_owned());
    }
    Firmware {
        sources: all,
        defines,
        includes: vec![
            root.join("core/include"),
            root.join("ports/avr/include"),
            root.join("ports/avr/tests"),
        ],
        flags,
    }
}

/// Compiles the firmware, or returns the error.
pub fn try_build(firmware: &Firmware) -> Result<Elf, FirmwareError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("firmware.elf");
    firmware.build(&path)?;
    Ok(Elf {
        _folder: folder,
        path,
    })
}

/// Compiles the firmware, and panics on an error.
pub fn build(sources: &[&str], flavour: Flavour, defines: &[String]) -> Elf {
    try_build(&firmware(sources, flavour, defines)).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs the firmware once, with a trace from the reset on.
pub fn trace(elf: &Elf, floods: &[LineStimulus], cycles: u64) -> RunResult {
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf.path, CLOCK, cycles);
    spec.floods = floods.to_vec();
    spec.trace = true;
    run(&spec).unwrap_or_else(|error| panic!("{error}"))
}

/// Parses the text form of a flood.
pub fn flood(text: &str) -> LineStimulus {
    EmulatedBoard::ATMEGA128
        .stimulus(text, CLOCK)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns a flood of bursts and pauses of every length, both in step with the interval and not: 60
/// % of the gaps are short, and some are close to multiples of the interval.
pub fn storm(limit: &Limit, seed: u64, cycles: u64) -> LineStimulus {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let interval = limit.interval_cycles();
    let mut times = Vec::new();
    let mut now = 3000;
    while now < cycles {
        times.push(now);
        now += match random.random_range(0..20) {
            0..12 => random.random_range(60..400),
            12..16 => random.random_range(interval / 8..interval),
            16..19 => {
                interval * random.random_range(1..4) - random.random_range(0..300.min(interval))
            }
            _ => random.random_range(interval..interval * 12),
        };
    }
    LineStimulus {
        line: Line::INT0,
        stimulus: Stimulus::Trace {
            name: "storm".to_owned(),
            times: Arc::from(times),
        },
    }
}

/// A limit, as macros of a firmware and as a configuration of core/.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    pub config: Config,
    pub channel: &'static str,
    pub prescaler: u64,
}

impl Limit {
    pub fn new(
        policy: LimitPolicy,
        timing: LimitTiming,
        interval: u64,
        burst: u8,
        channel: &'static str,
        prescaler: u64,
    ) -> Self {
        Self {
            config: Config {
                policy,
                timing,
                trigger: Trigger::Edge,
                interval,
                lag: 0,
                burst,
            },
            channel,
            prescaler,
        }
    }

    /// Returns the macros for ports/avr/tests/limited.c.
    pub fn defines(&self) -> Vec<String> {
        let mark = if self.channel == "TIMER2" {
            "OCR0"
        } else {
            "OCR2"
        };
        vec![
            format!("TEST_POLICY={}", self.config.policy as u8),
            format!("TEST_TIMING={}", self.config.timing as u8),
            format!("TEST_INTERVAL={}", self.config.interval),
            format!("TEST_LAG={}", self.config.lag),
            format!("TEST_BURST={}", self.config.burst),
            format!("TEST_CHANNEL={}", self.channel),
            format!("TEST_PRESCALER={}", self.prescaler),
            format!("TEST_MARK={mark}"),
        ]
    }

    /// Returns the interval (or the period of bursty) in cycles.
    pub fn interval_cycles(&self) -> u64 {
        self.config.interval * self.prescaler
    }

    /// Returns the long-run rate of the limit in Hz.
    pub fn rate(&self) -> f64 {
        let per_interval = if self.config.policy == LimitPolicy::Bursty {
            f64::from(self.config.burst)
        } else {
            1.0
        };
        CLOCK as f64 / self.interval_cycles() as f64 * per_interval
    }

    /// Returns floods below, at and above the limit: random ones, pairs and bursts, some in step
    /// with the interval.
    pub fn floods(&self) -> Vec<String> {
        let rate = self.rate();
        let burst = u64::from(self.config.burst);
        let span = self.interval_cycles()
            * if self.config.policy == LimitPolicy::Bursty {
                1
            } else {
                burst
            };
        let hz = |factor: f64| format!("INT0={:.3}Hz", rate * factor);
        vec![
            hz(0.31),
            hz(0.99),
            hz(1.0),
            hz(1.013),
            hz(1.9),
            hz(2.37),
            hz(7.1),
            format!("INT0=poisson:{:.3}Hz:seed=1", rate * 0.7),
            format!("INT0=poisson:{:.3}Hz:seed=2", rate * 1.2),
            format!("INT0=poisson:{:.3}Hz:seed=3", rate * 4.0),
            // A large burst is used up only occasionally, by chance. These floods add two more
            // chances.
            format!("INT0=poisson:{:.3}Hz:seed=4", rate * 1.1),
            format!("INT0=poisson:{:.3}Hz:seed=5", rate * 1.3),
            format!(
                "INT0=pairs:{}cycles:gap={}cycles",
                span * 2,
                span / (2 * burst + 1)
            ),
            format!("INT0=pairs:{}cycles:gap=60cycles", span),
            format!(
                "INT0=bursts:{}:gap={}cycles:period={}cycles",
                burst + 3,
                200,
                span * 3 + 600 * burst
            ),
            // These gaps are longer than half a wrap of the timer, and longer than a whole one.
            format!(
                "INT0=bursts:{}:gap={}cycles:period={}cycles",
                burst * 2 + 2,
                150,
                40_000 * self.prescaler + 500 * burst
            ),
            format!(
                "INT0=bursts:{}:gap={}cycles:period={}cycles",
                burst * 2 + 2,
                150,
                70_001 * self.prescaler + 500 * burst
            ),
        ]
    }
}
