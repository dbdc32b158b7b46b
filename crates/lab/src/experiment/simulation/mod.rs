// SPDX-License-Identifier: GPL-3.0-or-later
//! Figures of papers whose machines nobody has any more, simulated: a described system, run in several ways over the values of an axis.
//!
//! Everything that one figure has and another has not stands in its file. A series ([`super::series`]) is a formula over what the simulator counted
//! ([`values`]).
mod runs;
mod spec;
mod values;

use super::series::Plan;
use super::{ExperimentError, Measured, Place};
use runs::Runs;
pub(super) use spec::SimulationSpec;

pub(super) fn measure(place: &Place, spec: &SimulationSpec) -> Result<Measured, ExperimentError> {
    let runs = Runs::plan(place, spec)?;
    let plan = Plan {
        x: &spec.x,
        seeds: &spec.seeds,
        series: &spec.series,
    };
    plan.check(runs.variants(), |value| runs.knows(value))?;
    plan.measure(&runs.carry_out()?)
}
