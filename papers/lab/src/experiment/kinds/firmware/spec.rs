// SPDX-License-Identifier: GPL-3.0-or-later
//! The tables of an experiment's file for firmware under floods.
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
    /// The length of the runs without a flood. If the key is missing, they are as long as all other
    /// runs.
    pub idle: Option<Quantity<Duration>>,
    /// The flavours whose measured costs formulas may name.
    #[serde(default)]
    pub costs: Vec<String>,
    /// Constants that formulas may name.
    #[serde(default)]
    pub constants: BTreeMap<String, f64>,
    /// The sets of floods, each with series over its runs.
    pub flood: Vec<FloodSpec>,
    /// Searches for the worst floods.
    #[serde(default)]
    pub search: Vec<SearchSpec>,
    /// Values that claims may name.
    pub measure: Vec<MeasureSpec>,
}

/// A set of floods. Each variant runs at every point with every phase.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FloodSpec {
    /// The points. If the file gives neither points nor patterns, they are the sources of Table 1
    /// of regehr2005.
    pub x: Option<Axis>,
    /// The times of the first request on INT0. The first request on INT1 comes at twice this time,
    /// and so on.
    #[serde(default)]
    pub phases: Vec<Quantity<Duration>>,
    /// The rates of periodic requests in Hz, one formula over x per line. A variant uses as many as
    /// it has lines.
    #[serde(default)]
    pub rates: Vec<Formula>,
    /// An alternative to `rates`: the flood of each point in the syntax of the command line. An
    /// empty text means no flood.
    #[serde(default)]
    pub patterns: Vec<String>,
    /// Whether requests come only within the counted part, and stop before its end.
    #[serde(default)]
    pub until_quiet: bool,
    /// Additional macros with which the variants are compiled.
    #[serde(default)]
    pub defines: Vec<String>,
    /// The part that `--quick` runs.
    pub quick: Option<Quick>,
    /// The series, which are formulas over the names `VARIANT.VALUE` ([`super::values`]).
    pub series: Vec<SeriesSpec>,
}

/// The part of a set that `--quick` runs. The same claims apply to it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quick {
    /// The points of this part. `None` means all points.
    pub values: Option<Vec<f64>>,
    pub phases: Vec<Quantity<Duration>>,
}

/// A value that claims may name: a formula over statistics such as `SERIES.max`. VARIANT and
/// FLAVOUR stand for ids as in [`SeriesSpec`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasureSpec {
    pub id: String,
    #[serde(default)]
    of: Vec<String>,
    pub value: Formula,
    /// Whether the value is an overhead, and so must not be below 0.
    #[serde(default)]
    pub overhead: bool,
}

impl Firmware {
    /// The values that claims may name, for the variants of `setup`.
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

    /// Whether any set of floods uses the sources of Table 1.
    pub fn has_worst_rates(&self) -> bool {
        self.flood.iter().any(FloodSpec::has_worst_rates)
    }
}

impl FloodSpec {
    fn has_worst_rates(&self) -> bool {
        self.x.is_none() && self.patterns.is_empty()
    }

    /// The axis of the points.
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

    /// The series for the variants of `setup`.
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
