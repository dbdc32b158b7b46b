// SPDX-License-Identifier: MIT OR Apache-2.0
//! The longest run of each interrupt by what the file states, for comparison with observed runs.
use weir_model::{Expiry, System};

use crate::analysis::Analysis;
use crate::units::{Part, Units};

/// An interrupt and its longest run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongestRun {
    /// The name of the interrupt's source or shared timer.
    pub name: String,
    /// The interrupt's vector, as the chip calls it.
    pub vector: String,
    /// The cycles from the start of the interrupt to its end, with the most work that one interrupt
    /// may do. A source without `max_work` counts with one unit of work.
    pub cycles: u64,
}

/// The longest run of each interrupt of `system`, whose analysis is `analysis`.
#[must_use]
pub fn longest_runs(system: &System, analysis: &Analysis) -> Vec<LongestRun> {
    let units = Units::new(system, &analysis.latencies);
    let named = |part: Part| {
        let of_source = |index: usize| system.sources.get(index);
        match part {
            Part::Request(index) => {
                of_source(index).map(|source| (&source.name, &source.level.vector))
            }
            Part::Expiry(index) => {
                let source = of_source(index)?;
                match source.limit.expiry.as_ref()? {
                    Expiry::Own { level, .. } => Some((&source.name, &level.vector)),
                    Expiry::Shared(_) => None,
                }
            }
            Part::Timer(index) => {
                let timer = system.timers.get(index)?;
                Some((&timer.name, &timer.level.vector))
            }
            Part::Task(_) | Part::BottomHalf(_) | Part::Delivered(_) => None,
        }
    };
    let run = |unit: &crate::units::Unit| {
        let (name, vector) = named(unit.part)?;
        Some(LongestRun {
            name: name.clone(),
            vector: vector.clone(),
            cycles: unit.longest,
        })
    };
    units.units.iter().filter_map(run).collect()
}
