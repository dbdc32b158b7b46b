// SPDX-License-Identifier: GPL-3.0-or-later
//! What is measured: a firmware and what stands in front of it.
use std::path::PathBuf;

use crate::experiment::error::ExperimentError;
use weir_model::Rate;

use super::{OverheadSweep, suffix};
use crate::experiment::bench::{Bench, as_f64};
use crate::experiment::model::Policy;
use crate::experiment::setup::{Quantity, Role, Variant, hardware};
use weir_board::line::Line;
use weir_board::run::{FrontController, HardwareLimit, RunSpec};

/// Where the program on the second microcontroller puts its requests (limiter.c).
const FRONT_OUTPUT: &str = "PB0";
/// The flavour whose unprotected firmware runs behind it, as in the paper.
const BEHIND_FRONT: &str = "paper";

/// One firmware in one setting.
#[derive(Debug)]
pub(super) struct Subject {
    /// Of its series.
    pub id: String,
    pub flavour: String,
    pub setting: Setting,
    pub elf: PathBuf,
    /// The same with a background that sleeps, where a claim needs it.
    pub sleeping: Option<PathBuf>,
    pub admission: Admission,
    pub model: Option<Policy>,
}

/// What a limiter is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Admission {
    /// Requests that may come together.
    pub burst: u32,
    /// Of one request, in the long run.
    pub interval_cycles: u64,
}

impl Admission {
    /// Whether regular requests at this rate are below the limit.
    pub fn admits(self, bench: &Bench, hertz: f64) -> bool {
        as_f64(bench.clock_hz) / hertz > as_f64(self.interval_cycles)
    }
}

/// What stands between the flood and the firmware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    /// An ordinary handler, and nothing.
    Unprotected,
    /// A limiter or a poller in the firmware itself.
    Software,
    /// The ideal hardware limiter, with this interval in cycles.
    Hardware(u64),
    /// The hardware limiter of the board itself.
    Silicon,
    /// Another microcontroller with this firmware.
    Front(PathBuf),
}

impl Setting {
    /// Whether it keeps a limit that was set in the firmware.
    pub fn is_limiter(&self) -> bool {
        matches!(self, Self::Software | Self::Silicon)
    }
}

impl Subject {
    /// A run of it without any flood.
    pub fn spec(&self, bench: &Bench) -> Result<RunSpec, ExperimentError> {
        let mut spec = bench.spec(&self.elf);
        match &self.setting {
            Setting::Unprotected | Setting::Software | Setting::Silicon => {}
            Setting::Hardware(interval_cycles) => spec.hardware_limits.push(HardwareLimit {
                line: Line::INT0,
                interval_cycles: *interval_cycles,
            }),
            Setting::Front(elf) => {
                spec.front = Some(FrontController {
                    elf: elf.clone(),
                    input: Line::INT0,
                    output: FRONT_OUTPUT.parse().map_err(|error| {
                        ExperimentError::Evaluation(format!("{FRONT_OUTPUT}: {error}"))
                    })?,
                    to: Line::INT0,
                });
            }
        }
        Ok(spec)
    }
}

/// Every variant, and each flavour's unprotected firmware a second time, behind the ideal hardware limiter, unless the flavour has one in silicon.
pub(super) fn subjects(
    bench: &Bench,
    spec: &OverheadSweep,
) -> Result<Vec<Subject>, ExperimentError> {
    let interval = interval_cycles(bench, spec.limit);
    let mut subjects = Vec::new();
    for variant in &bench.setup.variant {
        let mut add = |id: String, setting, elf| -> Result<(), ExperimentError> {
            let sleeping =
                if needs_sleep(bench, variant) && !matches!(setting, Setting::Hardware(_)) {
                    Some(bench.compile(variant, &["NODE_SLEEP"])?)
                } else {
                    None
                };
            subjects.push(Subject {
                id,
                flavour: variant.flavour().to_owned(),
                setting,
                elf,
                sleeping,
                admission: Admission {
                    burst: variant.burst,
                    interval_cycles: interval_cycles(
                        bench,
                        variant.effective_limit.unwrap_or(spec.limit),
                    ),
                },
                model: variant.model,
            });
            Ok(())
        };
        let id = variant.id().to_owned();
        match variant.role {
            Role::Unprotected => {
                add(id, Setting::Unprotected, bench.elf(variant))?;
                let reference = hardware(variant.flavour());
                if !bench
                    .setup
                    .variant
                    .iter()
                    .any(|other| other.id() == reference)
                {
                    add(reference, Setting::Hardware(interval), bench.elf(variant))?;
                }
            }
            Role::Limited | Role::Polling => add(id, Setting::Software, bench.elf(variant))?,
            Role::Hardware => add(id, Setting::Silicon, bench.elf(variant))?,
            Role::Front => add(
                id,
                Setting::Front(bench.elf(variant)),
                bench.elf(unprotected(bench, BEHIND_FRONT)?),
            )?,
        }
    }
    Ok(subjects)
}

/// A limit as an interval.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a period is positive and far below 2^52"
)]
fn interval_cycles(bench: &Bench, limit: Quantity<Rate>) -> u64 {
    (limit.0.period_cycles(bench.clock_hz).ceil() as u64).max(1)
}

fn unprotected<'a>(bench: &'a Bench, flavour: &str) -> Result<&'a Variant, ExperimentError> {
    bench
        .setup
        .variant
        .iter()
        .find(|variant| variant.role == Role::Unprotected && variant.flavour() == flavour)
        .ok_or_else(|| {
            ExperimentError::Evaluation(format!(
                "the flavour `{flavour}` has no variant with role = \"unprotected\" to compare with"
            ))
        })
}

/// Whether its wake-ups are claimed, or those of a limiter that is compared with it.
fn needs_sleep(bench: &Bench, variant: &Variant) -> bool {
    bench.setup.limited().any(|limited| {
        bench
            .setup
            .claims(&format!("{}.{}", limited.id(), suffix::WAKEUPS))
            && (limited.id() == variant.id()
                || variant.role == Role::Unprotected && limited.flavour() == variant.flavour())
    })
}
