// SPDX-License-Identifier: GPL-3.0-or-later
//! What a file of an experiment with firmware says.
use serde::Deserialize;
use weir_model::Duration;
use weir_model::worst_rates::{self, WorstRate};

use crate::experiment::bench::as_f64;
use crate::experiment::series::formula::Formula;
use crate::experiment::series::{Axis, SeriesSpec};
use crate::experiment::setup::{Quantity, Setup, Variant};

/// The table `[firmware]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Firmware {
    /// The length of the runs without a flood; that of all runs if it is missing.
    pub idle: Option<Quantity<Duration>>,
    /// The flavours whose measured costs formulas can name.
    #[serde(default)]
    pub costs: Vec<String>,
    /// The sets of floods, each with its series.
    pub flood: Vec<FloodSpec>,
    /// What can be claimed.
    pub measure: Vec<MeasureSpec>,
}

/// A set of floods: a run of each variant at every point with every phase.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FloodSpec {
    #[serde(default)]
    pub x: AxisSpec,
    /// When the first request comes on INT0; on INT1 it comes at twice that, and so on.
    #[serde(default)]
    pub phases: Vec<Quantity<Duration>>,
    /// The rates in Hz of regular requests, over x, on as many lines as the variant has.
    #[serde(default)]
    pub rates: Vec<Formula>,
    /// Instead: the flood of each point, as on the command line; an empty text is no flood.
    #[serde(default)]
    pub patterns: Vec<String>,
    /// Whether requests come only within the counted part and leave time at its end.
    #[serde(default)]
    pub until_quiet: bool,
    /// Besides the variant's.
    #[serde(default)]
    pub defines: Vec<String>,
    /// The part that `--quick` runs.
    pub quick: Option<Quick>,
    pub series: Vec<Row>,
}

/// The points of a set.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AxisSpec {
    /// With its unit.
    #[serde(default)]
    pub title: String,
    /// In ascending order; the rates of the sources that system files can name if there are none.
    #[serde(default)]
    pub values: Vec<f64>,
    /// What is drawn in place of x.
    pub shown: Option<Formula>,
}

/// Fewer points of the same set, for which the same is claimed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quick {
    pub values: Vec<f64>,
    pub phases: Vec<Quantity<Duration>>,
}

/// A series, or one of each variant: in its texts VARIANT and FLAVOUR stand for the variant's ids.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    id: String,
    /// Variants by their ids, as `ROLE` or as `FLAVOUR.ROLE`; all if there are none.
    #[serde(default)]
    of: Vec<String>,
    /// What it is, with its unit, where it is drawn.
    y: Option<String>,
    /// Whether a point is the worst of the phases, and not their mean.
    #[serde(default)]
    worst: bool,
    /// How many times the value is drawn; once if nothing says so.
    #[serde(default = "once")]
    scale: f64,
    value: Formula,
    #[serde(rename = "where")]
    only_where: Option<Formula>,
}

fn once() -> f64 {
    1.0
}

/// What can be claimed: a formula over `SERIES.max` and the like; VARIANT and FLAVOUR as in [`Row`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasureSpec {
    pub id: String,
    #[serde(default)]
    of: Vec<String>,
    pub value: Formula,
    /// Whether it is an overhead, which cannot be below 0.
    #[serde(default)]
    pub overhead: bool,
}

/// What `make` makes for each variant that is meant, or once if no id is in `id`.
pub(super) fn each<T>(
    setup: &Setup,
    (id, of): (&str, &[String]),
    make: impl Fn(&dyn Fn(&str) -> String) -> T,
) -> Vec<T> {
    if !id.contains(VARIANT) && !id.contains(FLAVOUR) {
        return vec![make(&str::to_owned)];
    }
    let is_meant = |variant: &&Variant| {
        let role = variant.role.name();
        let matches = |of: &String| {
            of == variant.id() || of == role || *of == format!("{}.{role}", variant.flavour())
        };
        of.is_empty() || of.iter().any(matches)
    };
    let make = |variant: &Variant| {
        make(&|text| {
            text.replace(VARIANT, variant.id())
                .replace(FLAVOUR, variant.flavour())
        })
    };
    setup.variant.iter().filter(is_meant).map(make).collect()
}

const VARIANT: &str = "VARIANT";
const FLAVOUR: &str = "FLAVOUR";

impl Firmware {
    /// What can be claimed of these variants.
    pub fn measures(&self, setup: &Setup) -> Vec<MeasureSpec> {
        let of = |measure: &MeasureSpec| {
            each(setup, (&measure.id, &measure.of), |rename| MeasureSpec {
                id: rename(&measure.id),
                of: Vec::new(),
                value: measure.value.renamed(rename),
                overhead: measure.overhead,
            })
        };
        self.measure.iter().flat_map(of).collect()
    }

    /// Whether the sources that system files can name are offered.
    pub fn has_worst_rates(&self) -> bool {
        self.flood.iter().any(FloodSpec::has_worst_rates)
    }
}

impl FloodSpec {
    fn has_worst_rates(&self) -> bool {
        self.x.values.is_empty() && self.patterns.is_empty()
    }

    /// The points.
    pub fn axis(&self) -> Axis {
        Axis {
            title: self.x.title.clone(),
            values: if self.has_worst_rates() {
                worst_rates::all().iter().map(WorstRate::hertz).collect()
            } else if self.x.values.is_empty() {
                (1..).take(self.patterns.len()).map(as_f64).collect()
            } else {
                self.x.values.clone()
            },
        }
    }

    /// The series of these variants.
    pub fn series_of(&self, setup: &Setup) -> Vec<SeriesSpec> {
        let of = |row: &Row| {
            each(setup, (&row.id, &row.of), |rename| SeriesSpec {
                id: rename(&row.id),
                y: row.y.clone().unwrap_or_default(),
                value: row.value.renamed(rename),
                only_where: row.only_where.as_ref().map(|only| only.renamed(rename)),
                worst: row.worst,
                scale: row.scale,
            })
        };
        self.series.iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::setup::Role;

    fn setup() -> Setup {
        let variant = |id: &str, role: &str| {
            let text = format!("id = {id:?}\nrole = {role:?}");
            toml::from_str(&text).unwrap()
        };
        Setup {
            board: weir_board::machine::Machine::default(),
            claim: Vec::new(),
            run: None,
            flavour: std::collections::BTreeMap::new(),
            variant: vec![
                variant("c.none", "unprotected"),
                variant("c.strict", "limited"),
                variant("fast.strict", "limited"),
            ],
        }
    }

    #[test]
    fn a_series_is_one_of_each_variant_that_is_meant() {
        let ids = |id: &str, of: &[&str]| {
            let of: Vec<String> = of.iter().map(ToString::to_string).collect();
            each(&setup(), (id, &of), |rename| rename(id))
        };
        assert_eq!(ids("all", &["limited"]), ["all"]);
        let all = ids("VARIANT", &[]);
        assert_eq!(all, ["c.none", "c.strict", "fast.strict"]);
        let limited = ids("FLAVOUR.error", &["limited"]);
        assert_eq!(limited, ["c.error", "fast.error"]);
        let some = ids("VARIANT.max", &["fast.limited", "c.none"]);
        assert_eq!(some, ["c.none.max", "fast.strict.max"]);
    }

    #[test]
    fn a_set_has_the_points_that_its_file_states() {
        let axis = |text: &str| -> Axis {
            let flood: FloodSpec = toml::from_str(&format!("series = []\n{text}")).unwrap();
            flood.axis()
        };
        assert_eq!(axis("x = { values = [4, 5] }").values, [4.0, 5.0]);
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
