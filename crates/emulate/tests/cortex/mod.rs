// SPDX-License-Identifier: GPL-3.0-or-later
//! Common code for the tests of ports/cortex-m: the limits, and the compiler's command.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use tempfile::TempDir;
use weir_core_sys::{Config, LimitPolicy, LimitTiming, Trigger};
use weir_emulate::board::EmulatedBoard;
use weir_emulate::firmware::{Firmware, FirmwareError, Toolchain};
use weir_emulate::run::{LineStimulus, RunSpec, Stimulus, Target};

pub mod events;
pub mod generated;
pub use crate::arm::has_tools as can_run;

/// The number of instructions per tick of the board's timers, which count at 25 MHz.
pub const PER_TICK: u64 = 5;
/// All prescalers of the timer, each with an interval of about 100 us in its ticks.
pub const DIVISORS: [(u64, u64); 3] = [(1, 2500), (16, 160), (256, 10)];

/// A limit with the prescaler of its timer.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    pub config: Config,
    pub divisor: u64,
}

impl Limit {
    /// Returns all policies with all timings, at all prescalers.
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

    /// Returns all policies with all timings, each at one of the prescalers in turn.
    pub fn each_kind() -> Vec<Self> {
        let all = Self::all();
        let kinds = all.len() / DIVISORS.len();
        let at = |kind| all[kind % DIVISORS.len() * kinds + kind];
        (0..kinds).map(at).collect()
    }

    /// Returns the limits that a test tries: in the long form every kind at every prescaler,
    /// otherwise every kind at one.
    pub fn tried() -> Vec<Self> {
        if crate::is_long() {
            Self::all()
        } else {
            Self::each_kind()
        }
    }

    /// Returns the number of instructions per tick.
    pub fn tick(&self) -> u64 {
        self.divisor * PER_TICK
    }

    /// Returns the policy and the timing as costs.toml and the system file write them.
    pub fn names(&self) -> [String; 2] {
        let timing = match self.config.timing {
            LimitTiming::OneShot => "one_shot".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        };
        [format!("{:?}", self.config.policy).to_lowercase(), timing]
    }

    /// Returns the definition of the macro `name` as a C initialiser.
    pub fn initialiser(&self, name: &str) -> String {
        let [policy, timing] = self.names().map(|name| name.to_uppercase());
        format!(
            "{name}=.policy = WEIR_LIMIT_{policy}, .timing = WEIR_LIMIT_{timing}, .trigger = WEIR_LIMIT_{}, .interval = {}, .burst = {}",
            format!("{:?}", self.config.trigger).to_uppercase(),
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

impl Elf {
    /// Makes a path in a new folder. There is no file at the path yet.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            path: folder.path().join("limited.elf"),
            _folder: folder,
        }
    }
}

pub fn compile(source: &str, defines: &[String]) -> Result<Elf, FirmwareError> {
    compile_with(&[root().join(source)], &[], &["-Werror"], defines)
}

/// Compiles these sources with the port. `includes` are header folders in addition to the port's.
pub fn compile_with(
    sources: &[PathBuf],
    includes: &[PathBuf],
    flags: &[&str],
    defines: &[String],
) -> Result<Elf, FirmwareError> {
    let elf = Elf::new();
    let layout = [
        "-Wl,--undefined=vectors,--nmagic,--section-start=.vectors=0",
        "-Wl,-Ttext=0x100,-Tbss=0x20000000,--entry=0x100",
    ];
    let own = ["core/include", "ports/cortex-m/include"].map(|include| root().join(include));
    let firmware = Firmware {
        sources: [sources, &[root().join("core/src/limit.c")]].concat(),
        defines: defines.to_vec(),
        includes: [&own, includes].concat(),
        flags: [flags, &layout]
            .concat()
            .iter()
            .map(ToString::to_string)
            .collect(),
    };
    firmware.build_with(&Toolchain::CORTEX_M3, &elf.path)?;
    Ok(elf)
}

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a run of `cycles` cycles on the board under floods.
pub fn spec(elf: &Elf, floods: &[LineStimulus], cycles: u64) -> RunSpec {
    let board = EmulatedBoard::MPS2_AN385;
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf.path, board.clock_hz(), cycles);
    spec.target = Target::find(Path::new(env!("CARGO_MANIFEST_DIR")), board).unwrap();
    spec.floods = floods.to_vec();
    spec
}

/// Parses a flood in the form of `weir run`.
pub fn flood(text: &str) -> LineStimulus {
    let board = EmulatedBoard::MPS2_AN385;
    board.stimulus(text, board.clock_hz()).unwrap()
}

/// Returns the fixed adversaries: floods far above the limit, around the limit, in bursts, and at
/// the highest rate.
pub fn adversaries(line: &str, limit: &Limit) -> [LineStimulus; 4] {
    let interval = limit.config.interval * limit.tick();
    [
        format!("uniform:1cycles..{}cycles:seed=1", interval * 2 / 3),
        format!(
            "uniform:{}cycles..{}cycles:seed=2",
            interval - limit.tick() - 20,
            interval + limit.tick() + 20
        ),
        format!(
            "bursts:12:gap={}cycles:period={}cycles",
            interval / 10,
            interval * 5
        ),
        "uniform:50cycles..700cycles:seed=3".to_owned(),
    ]
    .map(|pattern| flood(&format!("{line}={pattern}")))
}

/// Returns a random adversary until cycle `end`. It consists of floods of up to 80 requests and
/// pauses of up to eight intervals. The rates are around the limit and above it, and the floods
/// have random phases.
pub fn storm(line: &str, interval: u64, seed: u64, end: u64) -> LineStimulus {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let mut times = Vec::new();
    let mut now = random.random_range(1000..interval);
    while now < end {
        let gap = if random.random_bool(0.5) {
            random.random_range(30..interval * 3 / 2)
        } else {
            // The gap is about as long as the limit requires.
            random.random_range(interval - interval / 50..interval + interval / 50)
        };
        let scatter = if random.random_bool(0.3) { 0 } else { gap / 2 };
        for _ in 0..random.random_range(1..80) {
            times.push(now);
            now += gap - scatter / 2 + random.random_range(0..scatter + 3);
        }
        now += random.random_range(0..interval * 8);
    }
    times.retain(|&at| at < end);
    requests(line, times)
}

/// Returns requests at these cycles.
pub fn requests(line: &str, times: Vec<u64>) -> LineStimulus {
    LineStimulus {
        line: flood(&format!("{line}=1Hz")).line,
        stimulus: Stimulus::Trace {
            name: format!("{} requests", times.len()),
            times: Arc::from(times),
        },
    }
}
