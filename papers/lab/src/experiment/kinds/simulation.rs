// SPDX-License-Identifier: GPL-3.0-or-later
//! Simulations of figures whose machines are no longer available. A described system is run in
//! several ways over the points of an axis.
//!
//! Everything that is specific to a figure is in its file. A series ([`series`]) is a formula over
//! the simulator's counts ([`values`]).
mod runs;
mod spec;
mod values;

use crate::experiment::error::ExperimentError;
use crate::experiment::findings::Measurements;
use crate::experiment::kind::{Ids, Kind, KindEntry};
use crate::experiment::place::Checkout;
use crate::experiment::series;
use crate::experiment::series::{SeriesPlan, Values};
use crate::experiment::setup::Setup;
use runs::Model;
use spec::Simulation;

pub(super) const KIND: KindEntry = KindEntry::of::<Simulation>("simulation");

impl Kind for Simulation {
    fn remark(&self) -> Option<&'static str> {
        Some("simulated")
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn known(&self, _: &Setup) -> Ids {
        series::known(&self.series())
    }

    fn shorten(&mut self) -> bool {
        let Some(quick) = self.quick.take() else {
            return false;
        };
        self.x.shorten(quick.values);
        self.seeds = quick.seeds;
        true
    }

    fn measure(&self, place: &Checkout, _: &Setup) -> Result<Measurements, ExperimentError> {
        let model = Model::load(place, self)?;
        let plan = SeriesPlan {
            x: self.x.clone(),
            seeds: self.seeds.clone(),
            series: self.series(),
            variants: self.variant.iter().map(|of| of.id.clone()).collect(),
            constants: Values::new(),
        };
        plan.check(|value| model.knows(value))?;
        plan.measure(&model.simulate(self, &plan)?)
    }
}
