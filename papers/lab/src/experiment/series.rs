// SPDX-License-Identifier: GPL-3.0-or-later
//! Series over values that runs count: each variant runs at every point of an axis with every seed.
//! A series is a formula over the values of runs. A claim is a statistic of a series over all
//! points and seeds ([`Statistic`]).
pub(super) mod formula;
mod statistic;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::error::{ExperimentError, list};
use super::findings::Measurements;
use super::kind::Ids;
use super::setup::{Name, each};
use crate::experiment::report::Series;
use formula::{Formula, Names, Number, X};
use statistic::{SeriesPoint, Statistic};

/// The values of a run, by name.
pub(super) type Values = BTreeMap<String, Number>;

/// The key of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunKey {
    pub variant: String,
    /// The index of the point on the axis.
    pub index: usize,
    pub seed: u64,
}

/// The axis of the points.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Axis {
    /// The name of x, with its unit.
    pub title: String,
    /// The points, in ascending order.
    pub values: Vec<f64>,
    /// The formula over x of the quantity that is drawn in place of x. `None` means that x is
    /// drawn.
    pub shown: Option<Formula>,
}

impl Axis {
    /// Keeps only the points in `values`. `None` keeps all.
    pub fn shorten(&mut self, values: Option<Vec<f64>>) {
        if let Some(values) = values {
            self.values = values;
        }
    }
}

/// The points and the seeds of the form `--quick`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickPoints {
    /// The points of this part. `None` means all points.
    pub values: Option<Vec<f64>>,
    pub seeds: Vec<u64>,
}

/// A series for claims and curves, or one series per variant. In the second case, the word VARIANT
/// in the texts stands for the id of the variant, and FLAVOUR for the id of its flavour.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeriesSpec {
    pub id: String,
    /// The variants, each as an id, as ROLE or as FLAVOUR.ROLE; an empty list means all variants.
    #[serde(default)]
    of: Vec<String>,
    /// The title of the y axis, with its unit. `None` means that the series is not drawn.
    pub y: Option<String>,
    /// A formula over x and the names `VARIANT.VALUE`. A name with the prefix `first.` stands for
    /// its value at the first point.
    value: Formula,
    /// A condition. The series leaves out points at which the condition is false.
    #[serde(rename = "where")]
    only_where: Option<Formula>,
    /// Whether the curve shows the largest value with any seed, instead of the mean.
    #[serde(default)]
    worst: bool,
    /// The factor by which the drawn mean is multiplied.
    #[serde(default = "once")]
    scale: f64,
}

fn once() -> f64 {
    1.0
}

/// The series for these variants. A series whose id contains VARIANT is repeated for each variant.
pub(super) fn of_variants(series: &[SeriesSpec], variants: &[Name]) -> Vec<SeriesSpec> {
    let of = |series: &SeriesSpec| {
        each(variants, (&series.id, &series.of), |rename| SeriesSpec {
            id: rename(&series.id),
            value: series.value.renamed(rename),
            only_where: series.only_where.as_ref().map(|only| only.renamed(rename)),
            ..series.clone()
        })
    };
    series.iter().flat_map(of).collect()
}

impl SeriesSpec {
    fn formulas(&self) -> impl Iterator<Item = &Formula> {
        std::iter::once(&self.value).chain(&self.only_where)
    }
}

/// The runs of an experiment, and the series over them.
#[derive(Debug, Default)]
pub(super) struct SeriesPlan {
    pub x: Axis,
    pub seeds: Vec<u64>,
    pub series: Vec<SeriesSpec>,
    pub variants: BTreeSet<String>,
    /// Constants that formulas may name.
    pub constants: Values,
}

/// The ids of these series, which claims and curves may name.
pub(super) fn known(series: &[SeriesSpec]) -> Ids {
    let claims_of =
        |series: &SeriesSpec| Statistic::ALL.map(|(over, _)| format!("{}.{over}", series.id));
    Ids {
        claims: series.iter().flat_map(claims_of).collect(),
        series: series
            .iter()
            .filter(|series| series.y.is_some())
            .map(|series| series.id.clone())
            .collect(),
    }
}

impl SeriesPlan {
    /// Checks every name in a formula before the runs, so that a wrong name is reported at once. A
    /// name must begin with a variant, and `knows` must accept the rest.
    pub fn check(&self, knows: impl Fn(&str) -> Result<(), String>) -> Result<(), ExperimentError> {
        for series in &self.series {
            for formula in series.formulas() {
                self.check_formula(formula, |_, value| knows(value))
                    .map_err(|what| in_series(series, &what))?;
            }
        }
        Ok(())
    }

    /// Checks the names in one formula before the runs. `knows` gets the variant and the rest of
    /// each name.
    pub fn check_formula(
        &self,
        formula: &Formula,
        knows: impl Fn(&str, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        for name in self.names(formula) {
            match self.split(name) {
                Some((variant, value)) => knows(variant, value)?,
                None => {
                    return Err(format!(
                        "`{name}` does not begin with a variant; the variants are {}",
                        list(&self.variants)
                    ));
                }
            }
        }
        Ok(())
    }

    /// The variants that occur in the formulas of all series.
    pub fn used(&self) -> BTreeSet<&str> {
        let formulas = self.series.iter().flat_map(SeriesSpec::formulas);
        formulas.flat_map(|formula| self.used_in(formula)).collect()
    }

    /// The variants that occur in a formula.
    pub fn used_in<'a>(&'a self, formula: &'a Formula) -> BTreeSet<&'a str> {
        let names = self.names(formula);
        names.filter_map(|name| Some(self.split(name)?.0)).collect()
    }

    /// The names of values in a formula.
    fn names<'a>(&'a self, formula: &'a Formula) -> impl Iterator<Item = &'a str> {
        let names = formula.names();
        let names = names.filter(|&name| name != X && !self.constants.contains_key(name));
        names.map(|name| name.strip_prefix(FIRST).unwrap_or(name))
    }

    /// The runs of a variant at every point with every seed, each with its value of x.
    pub fn runs_of(&self, variant: &str) -> impl Iterator<Item = (RunKey, f64)> {
        let points = self.x.values.iter().enumerate();
        points.flat_map(move |(index, &x)| {
            self.seeds.iter().map(move |&seed| {
                let variant = variant.to_owned();
                (
                    RunKey {
                        variant,
                        index,
                        seed,
                    },
                    x,
                )
            })
        })
    }

    /// Splits a name into the variant and the name of the value. `None` if the name begins with no
    /// variant.
    fn split<'n>(&self, name: &'n str) -> Option<(&'n str, &'n str)> {
        let variants = self.variants.iter();
        let split = variants.filter_map(|variant| {
            let value = name.strip_prefix(variant.as_str())?.strip_prefix('.')?;
            Some((&name[..variant.len()], value))
        });
        split.max_by_key(|(variant, _)| variant.len())
    }

    /// Computes the series from the results, and the statistics for claims.
    pub fn measure(
        &self,
        results: &BTreeMap<RunKey, Values>,
    ) -> Result<Measurements, ExperimentError> {
        let mut values = BTreeMap::new();
        let mut all = Vec::new();
        for series in &self.series {
            let points = self
                .points(series, results)
                .map_err(|what| in_series(series, &what))?;
            for (over, of) in Statistic::ALL {
                if let Some(value) = of.of(&points) {
                    values.insert(format!("{}.{over}", series.id), value);
                }
            }
            let Some(y) = &series.y else {
                continue;
            };
            let shown = |x| self.x.shown.as_ref().map_or(Ok(x), |shown| shown.at(x));
            let points = points
                .iter()
                .map(|point| Ok((shown(point.x)?, point.drawn(series.worst, series.scale))))
                .collect::<Result<_, String>>();
            all.push(Series {
                id: series.id.clone(),
                x: self.x.title.clone(),
                y: y.clone(),
                points: points.map_err(|what| in_series(series, &what))?,
            });
        }
        Ok(Measurements {
            values,
            series: all,
            ..Measurements::default()
        })
    }

    /// The values of all names at one point with one seed.
    pub fn at<'a>(
        &'a self,
        results: &'a BTreeMap<RunKey, Values>,
        (index, seed): (usize, u64),
        x: f64,
    ) -> Scope<'a> {
        Scope {
            plan: self,
            results,
            index,
            seed,
            x: formula::number(x),
        }
    }

    /// The series whose formulas name only the variant that their id begins with. Each comes with
    /// the variant and with the rest of its id: the series `a.off` is the value `off` of `a`.
    fn own_series(&self) -> impl Iterator<Item = (&SeriesSpec, &str, &str)> {
        self.series.iter().filter_map(|series| {
            let (variant, name) = self.split(&series.id)?;
            let is_its = |formula| self.used_in(formula).into_iter().all(|of| of == variant);
            let is_own = series.formulas().all(is_its);
            is_own.then_some((series, variant, name))
        })
    }

    /// Adds the series about a single variant to the values of this variant at the given point, if
    /// the variant has a run there. The condition of a series is ignored, because it is about
    /// points of the axis.
    pub fn add_series(
        &self,
        results: &mut BTreeMap<RunKey, Values>,
        (index, seed): (usize, u64),
        x: f64,
    ) -> Result<(), ExperimentError> {
        for (series, variant, name) in self.own_series() {
            let key = RunKey {
                variant: variant.to_owned(),
                index,
                seed,
            };
            if !results.contains_key(&key) {
                continue;
            }
            let value = series.value.evaluate(&self.at(results, (index, seed), x));
            let value = formula::number(value.map_err(|what| in_series(series, &what))?);
            if let Some(values) = results.get_mut(&key) {
                values.insert(name.to_owned(), value);
            }
        }
        Ok(())
    }

    /// Whether [`Self::add_series`] adds a value of this name to this variant.
    ///
    /// # Errors
    /// Returns an error if the condition of the series excludes `x`.
    pub fn has_series(&self, variant: &str, name: &str, x: f64) -> Result<bool, String> {
        let mut all = self.own_series();
        let Some((series, ..)) = all.find(|&(_, of, own)| (of, own) == (variant, name)) else {
            return Ok(false);
        };
        let (runs, condition) = (BTreeMap::new(), series.only_where.as_ref());
        // A condition on values of runs cannot be evaluated before the runs, and excludes nothing
        // here.
        if condition.is_some_and(|of| of.holds(&self.at(&runs, (0, 0), x)) == Ok(false)) {
            return Err(format!("the `where` of `{}` leaves out x = {x}", series.id));
        }
        Ok(true)
    }

    /// The points of a series. Values for which the series' condition is false are left out.
    fn points(
        &self,
        series: &SeriesSpec,
        results: &BTreeMap<RunKey, Values>,
    ) -> Result<Vec<SeriesPoint>, String> {
        let mut points = Vec::new();
        for (index, &x) in self.x.values.iter().enumerate() {
            let mut values = Vec::new();
            for &seed in &self.seeds {
                let names = self.at(results, (index, seed), x);
                let holds = series
                    .only_where
                    .as_ref()
                    .map_or(Ok(true), |condition| condition.holds(&names))?;
                if holds {
                    values.push(series.value.evaluate(&names)?);
                }
            }
            if !values.is_empty() {
                points.push(SeriesPoint { x, values });
            }
        }
        Ok(points)
    }
}

fn in_series(series: &SeriesSpec, what: &str) -> ExperimentError {
    ExperimentError::Evaluation(format!("the series `{}`: {what}", series.id))
}

/// The values of a formula's names at one point with one seed.
pub(super) struct Scope<'a> {
    plan: &'a SeriesPlan,
    results: &'a BTreeMap<RunKey, Values>,
    index: usize,
    seed: u64,
    x: Number,
}

/// The prefix of a name that stands for the value at the first point.
const FIRST: &str = "first.";

impl Names for Scope<'_> {
    fn find(&self, name: &str) -> Option<&Number> {
        if name == X {
            return Some(&self.x);
        }
        if let Some(constant) = self.plan.constants.get(name) {
            return Some(constant);
        }
        let (index, name) = match name.strip_prefix(FIRST) {
            Some(name) => (0, name),
            None => (self.index, name),
        };
        let (variant, value) = self.plan.split(name)?;
        let key = RunKey {
            variant: variant.to_owned(),
            index,
            seed: self.seed,
        };
        self.results.get(&key)?.get(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The measurements of a plan over the variant `c.a`. Its value `v` is the seed at the first
    /// point, and ten times the seed at the second.
    fn measured(series: &str) -> Measurements {
        #[derive(Deserialize)]
        struct All {
            x: Axis,
            series: Vec<SeriesSpec>,
        }
        let axis = r#"x = { title = "x", values = [1, 2], shown = "100 * x" }"#;
        let all: All = toml::from_str(&format!("{axis}\nseries = [{series}]")).unwrap();
        let plan = SeriesPlan {
            x: all.x,
            seeds: vec![1, 2],
            series: all.series,
            variants: BTreeSet::from(["c".to_owned(), "c.a".to_owned()]),
            constants: Values::from([("k".to_owned(), formula::number(3.0))]),
        };
        plan.check(|name| {
            if name == "v" {
                Ok(())
            } else {
                Err(name.to_owned())
            }
        })
        .unwrap();
        assert_eq!(plan.used(), BTreeSet::from(["c.a"]));
        let runs = plan.runs_of("c.a").map(|(key, x)| {
            let factor = if key.index == 0 { 1.0 } else { 10.0 };
            assert_eq!(x, if key.index == 0 { 1.0 } else { 2.0 });
            let value = f64::from(u32::try_from(key.seed).unwrap()) * factor;
            (
                key,
                Values::from([("v".to_owned(), formula::number(value))]),
            )
        });
        plan.measure(&runs.collect()).unwrap()
    }

    #[test]
    fn a_curve_is_of_means_or_of_the_worst_and_hidden_series_have_none() {
        let all = measured(
            r#"{ id = "mean", y = "1", value = "c.a.v" },
            { id = "worst", y = "1", value = "c.a.v", worst = true },
            { id = "scaled", y = "1", value = "c.a.v", scale = 100 },
            { id = "hidden", value = "k * c.a.v - first.c.a.v" }"#,
        );
        let points: Vec<&[(f64, f64)]> = all.series.iter().map(|of| &of.points[..]).collect();
        let expected: [&[(f64, f64)]; 3] = [
            &[(100.0, 1.5), (200.0, 15.0)],
            &[(100.0, 2.0), (200.0, 20.0)],
            &[(100.0, 150.0), (200.0, 1500.0)],
        ];
        assert_eq!(points, expected);
        assert_eq!(all.values["hidden.max"], 58.0);
        assert_eq!(all.values["mean.sum"], 33.0);
    }

    #[test]
    fn a_series_about_one_variant_is_a_value_of_it() {
        #[derive(Deserialize)]
        struct All {
            series: Vec<SeriesSpec>,
        }
        let text = r#"
            series = [
                { id = "a.off", value = "a.v - first.a.v" },
                { id = "a.gain", value = "a.v / b.v" },
                { id = "a.twice", value = "2 * a.v" },
                { id = "b.off", value = "b.v", where = "x > 1" },
                { id = "both", value = "a.v + b.v" },
            ]
        "#;
        let all: All = toml::from_str(text).unwrap();
        let plan = SeriesPlan {
            series: all.series,
            variants: BTreeSet::from(["a".to_owned(), "b".to_owned()]),
            ..SeriesPlan::default()
        };
        let key = |index| RunKey {
            variant: "a".to_owned(),
            index,
            seed: 7,
        };
        let of = |v| Values::from([("v".to_owned(), formula::number(v))]);
        let mut runs = BTreeMap::from([(key(0), of(2.0)), (key(1), of(5.0))]);
        plan.add_series(&mut runs, (1, 7), 0.0).unwrap();
        // A series is no value of `a` if it is about another variant, too, or about a variant that
        // has not run.
        let names: Vec<&str> = runs[&key(1)].keys().map(String::as_str).collect();
        assert_eq!(names, ["off", "twice", "v"]);
        assert_eq!(runs[&key(1)]["off"], formula::number(3.0));
        assert_eq!(runs[&key(0)].len(), 1);
        let has = |variant, name| plan.has_series(variant, name, 2.0).unwrap();
        assert!(has("a", "off") && has("a", "twice") && has("b", "off"));
        assert!(!has("b", "twice") && !has("a", "gain") && !has("a", "both"));
        assert!(plan.has_series("b", "off", 0.0).is_err());
    }

    #[test]
    fn a_series_of_each_variant_is_one_per_variant() {
        #[derive(Deserialize)]
        struct All {
            series: Vec<SeriesSpec>,
        }
        let text = r#"
            series = [
                { id = "VARIANT.more", y = "1", value = "VARIANT.cpu.ran / first.VARIANT.cpu.ran", where = "linux.cpu.ran > x" },
                { id = "gain", y = "1", value = "weir.cpu.ran / linux.cpu.ran" },
            ]
        "#;
        let all: All = toml::from_str(text).unwrap();
        let all = of_variants(&all.series, &["linux", "weir"].map(Name::plain));
        let ids: Vec<&str> = all.iter().map(|series| series.id.as_str()).collect();
        assert_eq!(ids, ["linux.more", "weir.more", "gain"]);
        let names: Vec<&str> = all[1].value.names().collect();
        assert_eq!(names, ["weir.cpu.ran", "first.weir.cpu.ran"]);
        let condition = all[1].only_where.as_ref().unwrap();
        assert_eq!(
            condition.names().collect::<Vec<_>>(),
            ["linux.cpu.ran", "x"]
        );
    }
}
