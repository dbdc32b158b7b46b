// SPDX-License-Identifier: GPL-3.0-or-later
//! The tables of an experiment with firmware, in its file.
use std::collections::BTreeMap;

use serde::Deserialize;
use weir_model::Duration;
use weir_model::worst_rates::{self, WorstRate};

use crate::experiment::bench::as_f64;
use crate::experiment::search::SearchSpec;
use crate::experiment::series::formula::Formula;
use crate::experiment::series::{Axis, SeriesSpec, of_variants};
use crate::experiment::setup::{Quantity, Setup, each};

/// The table `[firmware]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Firmware {
    /// The length of the runs without a flood; that of all runs if the key is missing.
    pub idle: Option<Quantity<Duration>>,
    /// The flavours whose measured costs formulas can name.
    #[serde(default)]
    pub costs: Vec<String>,
    /// Constants for formulas, by name.
    #[serde(default)]
    pub constants: BTreeMap<String, f64>,
    /// The sets of floods, each with its series.
    pub flood: Vec<FloodSpec>,
    /// The worst floods that are searched for.
    #[serde(default)]
    pub search: Vec<SearchSpec>,
    /// The values that claims can name.
    pub measure: Vec<MeasureSpec>,
}

/// A set of floods: a run of each variant at every point with every phase.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FloodSpec {
    /// The points; if neither points nor patterns are given, the sources of Table 1.
    pub x: Option<Axis>,
    /// The times of the first request on INT0; on INT1 it comes at twice that time, and so on.
    #[serde(default)]
    pub phases: Vec<Quantity<Duration>>,
    /// The rates in Hz of regular requests, as formulas over x, one for each line; a variant uses
    /// as many as it has lines.
    #[serde(default)]
    pub rates: Vec<Formula>,
    /// In place of `rates`: the flood of each point, as on the command line; an empty text is no
    /// flood.
    #[serde(default)]
    pub patterns: Vec<String>,
    /// Whether requests come only within the counted part and stop before its end.
    #[serde(default)]
    pub until_quiet: bool,
    /// Additional macros for the variants.
    #[serde(default)]
    pub defines: Vec<String>,
    /// The part that `--quick` runs.
    pub quick: Option<Quick>,
    /// The series, over the names `VARIANT.VALUE` ([`super::values`]).
    pub series: Vec<SeriesSpec>,
}

/// Fewer points of the same set, for which the same is claimed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quick {
    /// None: all points.
    pub values: Option<Vec<f64>>,
    pub phases: Vec<Quantity<Duration>>,
}

/// A value that claims can name: a formula over `SERIES.max` and the like; VARIANT and FLAVOUR as
/// in [`SeriesSpec`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasureSpec {
    pub id: String,
    #[serde(default)]
    of: Vec<String>,
    pub value: Formula,
    /// Whether the value is an overhead, which cannot be below 0.
    #[serde(default)]
    pub overhead: bool,
}

impl Firmware {
    /// The values that claims can name, for these variants.
    pub fn measures(&self, setup: &Setup) -> Vec<MeasureSpec> {
        let names = setup.names();
        let of = |measure: &MeasureSpec| {
            each(&names, (&measure.id, &measure.of), |rename| MeasureSpec {
                id: rename(&measure.id),
                of: Vec::new(),
                value: measure.value.renamed(rename),
                overhead: measure.overhead,
            })
        };
        self.measure.iter().flat_map(of).collect()
    }

    /// Whether any set of floods uses the sources that system files can name.
    pub fn has_worst_rates(&self) -> bool {
        self.flood.iter().any(FloodSpec::has_worst_rates)
    }
}

impl FloodSpec {
    fn has_worst_rates(&self) -> bool {
        self.x.is_none() && self.patterns.is_empty()
    }

    /// The points.
    pub fn axis(&self) -> Axis {
        let numbers = (1..).take(self.patterns.len()).map(as_f64);
        let (title, values) = match &self.x {
            Some(x) => return x.clone(),
            None if self.has_worst_rates() => (
                "requests offered, Hz",
                worst_rates::all().iter().map(WorstRate::hertz).collect(),
            ),
            None => ("pattern", numbers.collect()),
        };
        Axis {
            title: title.to_owned(),
            values,
            shown: None,
        }
    }

    /// The series of these variants.
    pub fn series_of(&self, setup: &Setup) -> Vec<SeriesSpec> {
        of_variants(&self.series, &setup.names())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::setup::Role;

    #[test]
    fn a_set_has_the_points_that_its_file_states() {
        let axis = |text: &str| -> Axis {
            let flood: FloodSpec = toml::from_str(&format!("series = []\n{text}")).unwrap();
            flood.axis()
        };
        assert_eq!(
            axis("x = { title = \"kHz\", values = [4, 5] }").values,
            [4.0, 5.0]
        );
        assert_eq!(axis("patterns = [\"\", \"INT0=1kHz\"]").values, [1.0, 2.0]);
        assert_eq!(
            axis("rates = [\"x\"]").values.len(),
            worst_rates::all().len()
        );
    }

    #[test]
    fn a_role_is_read_by_its_name() {
        #[derive(Deserialize)]
        struct All {
            role: Vec<Role>,
        }
        let names = [
            "unprotected",
            "limited",
            "polling",
            "hardware",
            "ideal",
            "front",
        ];
        let all: All = toml::from_str(&format!("role = {names:?}")).unwrap();
        let back: Vec<&str> = all.role.iter().map(|role| role.name()).collect();
        assert_eq!(back, names);
    }
}
