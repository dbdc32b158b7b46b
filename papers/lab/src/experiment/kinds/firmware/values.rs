// SPDX-License-Identifier: GPL-3.0-or-later
//! The values that were counted in a run, by name.
//!
//! - `lost`: the share of the processor that the background did not get, 0 to 1
//! - `served`, `offered`: requests served, and requests offered on the first line
//! - `wakeups`: wake-ups from sleep
//! - `cycles`: the length of the run
//! - `taken`, `handler_cycles`, `handler_instructions`, `longest`: interrupts of INT0, their cycles
//!   and instructions together, and the cycles of the longest
//! - `flash`, `ram`: bytes of the firmware, on the ATmega128
//! - `t_int` and so on: the measured costs of the flavour in cycles, of the flavours in `costs`
use std::collections::BTreeMap;

use crate::experiment::bench::{Bench, as_f64, lost, served, sizes, turn_cycles};
use crate::experiment::costs;
use crate::experiment::error::ExperimentError;
use crate::experiment::place::Checkout;
use crate::experiment::series::Values;
use crate::experiment::series::formula::number;
use crate::experiment::setup::Variant;
use weir_emulate::board::EmulatedBoard;
use weir_emulate::firmware::Toolchain;
use weir_emulate::line::Line;
use weir_emulate::run::RunResult;

const NAMES: [&str; 11] = [
    "lost",
    "served",
    "offered",
    "wakeups",
    "cycles",
    "taken",
    "handler_cycles",
    "handler_instructions",
    "longest",
    "flash",
    "ram",
];

/// Computes the values of runs.
pub(super) struct Meter {
    /// The measured costs by flavour, in cycles.
    costs: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Meter {
    /// Reads the measured costs of these flavours.
    pub fn new(place: &Checkout, flavours: &[String]) -> Result<Self, ExperimentError> {
        let read = |flavour: &String| {
            let costs = costs::read(place, flavour, &Toolchain::AVR.version()?)?;
            Ok((flavour.clone(), costs))
        };
        Ok(Self {
            costs: flavours
                .iter()
                .map(read)
                .collect::<Result<_, ExperimentError>>()?,
        })
    }

    /// Checks that a run can have a value of this name.
    pub fn knows(&self, value: &str) -> Result<(), String> {
        let costs = self.costs.values().flat_map(BTreeMap::keys);
        let mut names: Vec<&str> = NAMES.to_vec();
        names.extend(costs.map(String::as_str));
        if names.contains(&value) {
            return Ok(());
        }
        Err(format!(
            "a run has no value `{value}`; it has {}",
            names.join(", ")
        ))
    }

    /// The values of a variant's run. `idle` is a run of the same variant without a flood.
    pub fn values(
        &self,
        bench: &Bench,
        variant: &Variant,
        result: &RunResult,
        idle: &RunResult,
    ) -> Result<Values, ExperimentError> {
        let line = Line::INT0.to_string();
        let handler = result.vectors.iter().find(|vector| vector.name == line);
        let mut all = vec![
            ("lost", Some(lost(result, turn_cycles(idle)?))),
            ("served", Some(served(result))),
            (
                "offered",
                result.lines.first().map(|line| as_f64(line.offered)),
            ),
            ("wakeups", Some(as_f64(result.wakeups))),
            ("cycles", Some(as_f64(result.cycles))),
            ("taken", handler.map(|of| as_f64(of.taken))),
            ("handler_cycles", handler.map(|of| as_f64(of.cycles))),
            (
                "handler_instructions",
                handler.and_then(|of| of.instructions).map(as_f64),
            ),
            ("longest", handler.map(|of| as_f64(of.longest_cycles))),
        ];
        if bench.setup.board == EmulatedBoard::ATMEGA128 {
            let sizes = sizes(variant.id(), &bench.elf(variant))?;
            all.push(("flash", Some(as_f64(sizes.flash))));
            all.push(("ram", Some(as_f64(sizes.ram))));
        }
        let costs = self.costs.get(variant.flavour()).into_iter().flatten();
        all.extend(costs.map(|(name, &cycles)| (name.as_str(), Some(cycles))));
        let known = all.into_iter();
        Ok(known
            .filter_map(|(name, value)| Some((name.to_owned(), number(value?))))
            .collect())
    }
}
