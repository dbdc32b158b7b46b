// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of a system's limits in hardware, for rtl/limit and its driver.
mod header;
mod module;

use serde::Serialize;
use weir_model::{Place, Policy, Rate, Section, Silicon, Source, System};

use crate::identifier::c_identifier;
use crate::refusal::{Refusal, RefusalReason};

pub use header::silicon_header;
pub use module::silicon_module;

/// The parameters of the limiter in silicon for a system. Every plan can be built.
#[derive(Debug, Clone, Serialize)]
pub struct SiliconPlan<'a> {
    /// The system's name.
    pub system: &'a str,
    /// SHA-256 of the system file.
    pub sha256: &'a str,
    /// The name of the module and of the files: `NAME_limits`.
    pub module: String,
    /// The clock in cycles per second.
    pub clock_hz: u64,
    /// The clocks of a tick.
    pub tick_clocks: u64,
    /// The most clocks from a request to its delivery, while the limiter is open.
    pub delay_clocks: u64,
    /// The width of a phase in bits.
    pub phase_bits: u32,
    /// The width of a rate in bits.
    pub rate_bits: u32,
    /// The fewest phase bits and rate bits that are sufficient. With them no limit leaves its
    /// source's band or, if it has no band, falls by more than a hundredth.
    pub fewest_bits: (u32, u32),
    /// The sources in the order of the lines: `irq_i[n]` belongs to index n.
    pub sources: Vec<SiliconSource<'a>>,
    /// The parameters of the block.
    #[serde(skip)]
    pub silicon: Silicon,
}

/// A source with a limit in hardware.
#[derive(Debug, Clone, Serialize)]
pub struct SiliconSource<'a> {
    /// The source's name in the system.
    pub name: &'a str,
    /// The source's name in C.
    pub identifier: String,
    /// `strict`, `bucket` or `bursty`.
    pub policy: &'static str,
    /// The deliveries that come back together, or the bucket's tokens.
    pub burst: u32,
    /// Whether the source requests by the level of its line.
    pub is_level: bool,
    /// The interval that the file asks for, in clocks.
    pub asked_clocks: u64,
    /// The interval that results, in clocks.
    pub interval_clocks: u64,
    /// The value of the rate register.
    pub rate: u32,
    /// The rate that the limit lets through in the long run, in Hz.
    pub limit_hz: f64,
    /// The most units of work of one interrupt; `None` if the file does not state it, so that
    /// nothing is proven.
    pub max_work: Option<u64>,
    /// The system's data of this source.
    #[serde(skip)]
    pub source: &'a Source,
}

impl<'a> SiliconPlan<'a> {
    /// Plans the limits in hardware of `system`.
    ///
    /// # Errors
    /// Fails if no limit is in hardware, or if names are not valid or not distinct in C.
    pub fn new(system: &'a System) -> Result<Self, Refusal> {
        let refused = |reasons| Refusal::new(&system.name, "silicon", reasons);
        let of_system = Section::System(system.name.clone());
        let Some(silicon) = system.silicon else {
            return Err(refused(vec![RefusalReason::new(
                of_system,
                "no limit is in hardware",
                "say place = \"hardware\" in the `limit` of the sources that silicon is to limit",
            )]));
        };
        let mut reasons = Vec::new();
        let name = identifier(of_system, &system.name, &mut reasons);
        let mut sources: Vec<SiliconSource> = Vec::new();
        for source in &system.sources {
            let Some(of) = in_hardware(source, system.cpu.clock_hz) else {
                continue;
            };
            let of_source = Section::Source(source.name.clone());
            let identifier = identifier(of_source.clone(), &source.name, &mut reasons);
            let is_taken = |other: &&SiliconSource| {
                let other = other.identifier.as_str();
                other == identifier
                    || header::clash(other, &identifier)
                    || header::clash(&identifier, other)
            };
            if let Some(other) = sources
                .iter()
                .find(is_taken)
                .filter(|_| !identifier.is_empty())
            {
                let name = &other.name;
                reasons.push(RefusalReason::new(
                    of_source,
                    format!("in C its name `{identifier}` is one of those of `{name}`"),
                    "give one of them another name",
                ));
            }
            sources.push(SiliconSource { identifier, ..of });
        }
        if !reasons.is_empty() {
            return Err(refused(reasons));
        }
        Ok(Self {
            system: &system.name,
            sha256: &system.sha256,
            module: format!("{}_limits", name.to_ascii_lowercase()),
            clock_hz: system.cpu.clock_hz,
            tick_clocks: silicon.tick(),
            delay_clocks: silicon.delay(),
            phase_bits: silicon.phase_bits,
            rate_bits: silicon.rate_bits,
            fewest_bits: fewest_bits(&silicon, &sources, system.cpu.clock_hz),
            sources,
            silicon,
        })
    }
}

/// The name in C. If the name has no valid form in C, reports that and returns an empty text.
fn identifier(of: Section, name: &str, reasons: &mut Vec<RefusalReason>) -> String {
    c_identifier(name).unwrap_or_else(|error| {
        let what = format!("it cannot be called so in C: {error}");
        reasons.push(RefusalReason::new(of, what, "give it another name"));
        String::new()
    })
}

/// A source whose limit is in silicon, without its name in C; `None` for any other source.
fn in_hardware(source: &Source, clock_hz: u64) -> Option<SiliconSource<'_>> {
    let limit = &source.limit;
    let silicon = limit.silicon.filter(|_| limit.place == Place::Hardware)?;
    Some(SiliconSource {
        name: &source.name,
        identifier: String::new(),
        policy: limit.policy.name(),
        burst: limit.burst,
        is_level: silicon.is_level,
        asked_clocks: silicon.asked,
        interval_clocks: limit.interval.cycles(),
        rate: silicon.rate,
        limit_hz: rate(source, limit.interval.cycles(), clock_hz),
        max_work: source.max_work,
        source,
    })
}

/// The rate that a source's limit lets through with this interval, in Hz.
#[expect(
    clippy::cast_precision_loss,
    reason = "shown, or compared, to a few digits"
)]
fn rate(source: &Source, interval: u64, clock_hz: u64) -> f64 {
    f64::from(source.limit.per_interval()) * clock_hz as f64 / interval.max(1) as f64
}

/// The fewest phase bits with which every limit works, and the rate bits that they need.
fn fewest_bits(silicon: &Silicon, sources: &[SiliconSource], clock_hz: u64) -> (u32, u32) {
    let needed = |phase_bits: u32| {
        let narrower = Silicon {
            phase_bits,
            rate_bits: phase_bits,
            ..*silicon
        };
        sources.iter().try_fold(1, |bits: u32, of| {
            let register = narrower.rate(of.asked_clocks).ok()?;
            let interval = narrower.interval(register).cycles();
            let expected = of.source.rates.expected.map(Rate::hertz);
            let holds = match expected {
                Some(expected) => rate(of.source, interval, clock_hz) >= expected,
                None => interval - of.asked_clocks <= of.asked_clocks / 100,
            };
            (holds || interval <= of.interval_clocks)
                .then(|| bits.max(u32::BITS - register.leading_zeros()))
        })
    };
    (LEAST_PHASE_BITS..silicon.phase_bits)
        .find_map(|bits| Some((bits, needed(bits)?)))
        .unwrap_or_else(|| {
            (
                silicon.phase_bits,
                needed(silicon.phase_bits).unwrap_or(silicon.rate_bits),
            )
        })
}

/// The least width of a phase in bits that a system file may state.
const LEAST_PHASE_BITS: u32 = 8;

impl SiliconSource<'_> {
    /// Whether the source needs the block's bit for bursty limits. A burst of one is strict.
    fn is_bursty(&self) -> bool {
        self.source.limit.policy == Policy::Bursty && self.burst > 1
    }

    /// The promise of the source's limit, with its number in core/CONTRACTS.md.
    fn promise(&self) -> String {
        let (burst, clocks) = (self.burst, self.interval_clocks);
        match self.source.limit.policy {
            Policy::Bursty => {
                format!("bursty: at most {burst} in a period of {clocks} clocks (LIMIT-SILICON-2)")
            }
            Policy::Bucket => format!(
                "bucket: bursts of at most {burst}, one more after each {clocks} clocks (LIMIT-SILICON-2)"
            ),
            _ => format!("strict: at least {clocks} clocks apart (LIMIT-SILICON-1)"),
        }
    }
}
