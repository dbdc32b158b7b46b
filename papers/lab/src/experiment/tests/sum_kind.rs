// SPDX-License-Identifier: GPL-3.0-or-later
//! A made-up kind of experiment: the sum of the numbers in its file.
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::experiment::error::ExperimentError;
use crate::experiment::findings::Measurements;
use crate::experiment::kind::{Ids, Kind, KindEntry};
use crate::experiment::place::Checkout;
use crate::experiment::report::Series;
use crate::experiment::setup::Setup;

pub(super) const KIND: KindEntry = KindEntry::of::<SumKind>("made-up");

/// The table `[made-up]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SumKind {
    values: Vec<f64>,
    quick: Option<Vec<f64>>,
}

impl Kind for SumKind {
    fn known(&self, _: &Setup) -> Ids {
        Ids {
            claims: BTreeSet::from(["sum".to_owned(), "count".to_owned()]),
            series: BTreeSet::from(["values".to_owned()]),
        }
    }

    fn shorten(&mut self) -> bool {
        let quick = self.quick.take();
        let is_shorter = quick.is_some();
        self.values = quick.unwrap_or_default();
        is_shorter
    }

    fn measure(&self, _: &Checkout, _: &Setup) -> Result<Measurements, ExperimentError> {
        let points = (1_u32..).zip(&self.values);
        Ok(Measurements {
            values: BTreeMap::from([
                ("sum".to_owned(), self.values.iter().sum()),
                ("count".to_owned(), self.values.len() as f64),
            ]),
            series: vec![Series {
                id: "values".to_owned(),
                x: "number".to_owned(),
                y: "value".to_owned(),
                points: points.map(|(x, &y)| (f64::from(x), y)).collect(),
            }],
            ..Measurements::default()
        })
    }
}
