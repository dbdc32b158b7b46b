// SPDX-License-Identifier: GPL-3.0-or-later
//! An experiment's file: what is done, to which firmware, and what should come out.
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use miette::NamedSource;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use weir_report::{Colour, Curve, Goal, Panel, Plot, Scale, Series, Stroke};

use super::area::AreaSpec;
use super::bounds::BoundsSpec;
use super::constants::ConstantsSpec;
use super::linux::LinuxSpec;
use super::rates::RatesSpec;
use super::simulation::SimulationSpec;
use super::sweep::{self, SweepSpec};
use super::two_sources::TwoSourcesSpec;
use super::{ExperimentError, FileError, known_claims, known_series};
use weir_board::machine::Machine;

mod kinds;

pub(super) use kinds::Kind;
use kinds::Kinds;

/// A checked experiment file.
#[derive(Debug)]
pub(super) struct File {
    pub title: String,
    pub kind: Kind,
    /// Where firmware runs.
    pub machine: Machine,
    pub claim: Vec<ClaimSpec>,
    /// Of every kind that runs firmware.
    pub run: Option<RunTimes>,
    pub flavour: BTreeMap<String, Flavour>,
    pub variant: Vec<Variant>,
    pub panel: Vec<PanelSpec>,
}

/// A claim, before it is measured.
#[derive(Debug, Clone)]
pub(super) struct ClaimSpec {
    pub id: String,
    pub what: String,
    pub unit: String,
    pub paper: Option<f64>,
    pub goal: Goal,
}

/// How long a run is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunTimes {
    /// The board's clock.
    pub clock: Quantity<weir_model::Rate>,
    /// Run before anything is counted.
    pub warmup: Quantity<weir_model::Duration>,
    /// Counted.
    pub length: Quantity<weir_model::Duration>,
}

/// What the firmware of one flavour has in common. Paths are relative to the repository's root.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Flavour {
    #[serde(default)]
    pub sources: Vec<String>,
    #[serde(default)]
    pub includes: Vec<String>,
    #[serde(default)]
    pub defines: Vec<String>,
    #[serde(default)]
    pub flags: Vec<String>,
    /// For compilers that do not know the board's memory.
    #[serde(rename = "linker-script")]
    pub linker_script: Option<String>,
}

/// One firmware. Its id is `FLAVOUR.POLICY`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Variant {
    pub id: Spanned<String>,
    pub role: Role,
    /// Besides the flavour's.
    #[serde(default)]
    pub sources: Vec<String>,
    #[serde(default)]
    pub defines: Vec<String>,
    #[serde(default)]
    pub flags: Vec<String>,
    /// Requests that its limiter lets pass together.
    #[serde(default = "one")]
    pub burst: u32,
    /// What its limiter is really set to, where its timer cannot represent the experiment's limit; not above that.
    pub effective_limit: Option<Quantity<weir_model::Rate>>,
    /// Lines in use, INT0 upwards.
    #[serde(default = "one")]
    pub lines: u32,
    /// The equations of regehr2005 §5.2 that describe it.
    pub model: Option<super::model::Policy>,
}

fn one() -> u32 {
    1
}

/// What a firmware is in an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Role {
    /// An ordinary handler; one per flavour. The others of its flavour are compared with it.
    Unprotected,
    /// Behind a software limiter.
    Limited,
    /// Looks at the line once per interval.
    Polling,
    /// An ordinary handler, and the limiter in silicon before it, which the firmware sets up; one per flavour, called `FLAVOUR.hardware`. The limiters of its flavour are
    /// compared with it, and not with the ideal filter. Only the board soc has one.
    Hardware,
    /// Runs on a second microcontroller, in front of the unprotected firmware of the flavour `paper`.
    Front,
}

impl Variant {
    pub fn id(&self) -> &str {
        self.id.get_ref()
    }

    /// The part of the id before the point.
    pub fn flavour(&self) -> &str {
        self.id().split('.').next().unwrap_or_default()
    }
}

/// A panel of the plot.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PanelSpec {
    pub title: Spanned<String>,
    #[serde(default)]
    pub x_scale: Scale,
    #[serde(default)]
    pub curves: Vec<CurveSpec>,
    /// In place of `curves`, where variants say how they are drawn: this series of each of them.
    pub each: Option<Spanned<String>>,
}

/// A curve of a panel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CurveSpec {
    /// A series.
    pub of: Spanned<String>,
    pub label: String,
    pub colour: Colour,
    #[serde(default)]
    pub stroke: Stroke,
}

/// A quantity with its unit, in a string.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantity<T>(pub T);

impl<'de, T> Deserialize<'de> for Quantity<T>
where
    T: FromStr,
    T::Err: Display,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map(Self)
            .map_err(D::Error::custom)
    }
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    title: String,
    /// For the reader: which paper, where in it, and what is done.
    #[serde(rename = "paper")]
    _paper: String,
    #[serde(rename = "section")]
    _section: String,
    #[serde(rename = "about")]
    _about: String,
    kind: Spanned<String>,
    /// Of firmware; the atmega128 if it is missing.
    board: Option<Spanned<String>>,
    claim: Vec<WrittenClaim>,
    run: Option<RunTimes>,
    #[serde(default)]
    flavour: BTreeMap<String, Flavour>,
    #[serde(default)]
    variant: Vec<Variant>,
    #[serde(default)]
    panel: Vec<PanelSpec>,
    overhead_sweep: Option<SweepSpec>,
    constants: Option<ConstantsSpec>,
    rates: Option<RatesSpec>,
    two_sources: Option<TwoSourcesSpec>,
    bounds: Option<BoundsSpec>,
    simulation: Option<SimulationSpec>,
    area: Option<AreaSpec>,
    linux: Option<LinuxSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenClaim {
    id: Spanned<String>,
    what: String,
    unit: String,
    paper: Option<f64>,
    at_most: Option<f64>,
    at_least: Option<f64>,
    equal: Option<f64>,
    within: Option<[f64; 2]>,
}

impl WrittenClaim {
    fn goal(&self) -> Option<Goal> {
        match (self.at_most, self.at_least, self.equal, self.within) {
            (Some(most), None, None, None) => Some(Goal::AtMost(most)),
            (None, Some(least), None, None) => Some(Goal::AtLeast(least)),
            (None, None, Some(value), None) => Some(Goal::Equal(value)),
            (None, None, None, Some([least, most])) => Some(Goal::Within(least, most)),
            _ => None,
        }
    }
}

/// Points at places of a file.
struct Pointer<'a> {
    name: &'a str,
    text: &'a str,
}

impl Pointer<'_> {
    fn wrong<T>(&self, at: &Spanned<T>, what: String, help: impl Into<String>) -> ExperimentError {
        self.error(what, Some(help.into()), Some(at.span()))
    }

    fn error(
        &self,
        what: String,
        help: Option<String>,
        span: Option<std::ops::Range<usize>>,
    ) -> ExperimentError {
        ExperimentError::File(Box::new(FileError {
            what,
            help,
            source_code: NamedSource::new(self.name, self.text.to_owned()).with_language("toml"),
            span: span.map(Into::into),
        }))
    }
}

impl File {
    /// Reads the text of the file called `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, ExperimentError> {
        let pointer = Pointer { name, text };
        let written: Written = parse_toml(&pointer)?;
        let kinds = Kinds {
            sweep: written.overhead_sweep,
            constants: written.constants,
            rates: written.rates,
            two_sources: written.two_sources,
            bounds: written.bounds,
            simulation: written.simulation,
            area: written.area,
            linux: written.linux,
        };
        let kind = kinds.named(&pointer, &written.kind)?;
        let machine = machine(&pointer, written.board.as_ref(), &kind)?;
        if written.run.is_none() && kind.runs_firmware() {
            return Err(pointer.wrong(
                &written.kind,
                "nothing says how long the firmware runs".to_owned(),
                "a table [run] has `clock`, `warmup` and `length`",
            ));
        }
        for variant in &written.variant {
            if !written.flavour.contains_key(variant.flavour()) {
                let known: Vec<&str> = written.flavour.keys().map(String::as_str).collect();
                return Err(pointer.wrong(
                    &variant.id,
                    format!(
                        "the variant `{}` has no flavour `{}`",
                        variant.id(),
                        variant.flavour()
                    ),
                    format!(
                        "an id is FLAVOUR.POLICY; the flavours are {}",
                        known.join(", ")
                    ),
                ));
            }
        }
        for variant in &written.variant {
            let is_right =
                machine == Machine::Soc && variant.id() == sweep::hardware(variant.flavour());
            if variant.role == Role::Hardware && !is_right {
                return Err(pointer.wrong(
                    &variant.id,
                    format!("the variant `{}` cannot have the role `hardware`", variant.id()),
                    "there is one in a flavour, called FLAVOUR.hardware, and only with board = \"soc\"",
                ));
            }
        }
        unique(
            &pointer,
            "variant",
            written.variant.iter().map(|variant| &variant.id),
        )?;
        unique(
            &pointer,
            "claim",
            written.claim.iter().map(|claim| &claim.id),
        )?;
        let goals = written
            .claim
            .iter()
            .map(|claim| {
                claim.goal().ok_or_else(|| {
                    pointer.wrong(
                        &claim.id,
                        format!("the claim `{}` does not state one goal", claim.id.get_ref()),
                        "a goal is one of `at_most = 1`, `at_least = 1`, `equal = 0` and `within = [1, 2]`",
                    )
                })
            })
            .collect::<Result<Vec<Goal>, _>>()?;
        let mut panel = written.panel;
        for panel in &mut panel {
            if let Some(each) = &panel.each {
                panel.curves.extend(kind.curves(each));
            }
            if panel.curves.is_empty() {
                return Err(pointer.wrong(
                    &panel.title,
                    format!("the panel `{}` has no curve", panel.title.get_ref()),
                    "give it `curves`, or with the kind `linux` `each`, the series that every variant has",
                ));
            }
        }
        let claim_ids: Vec<Spanned<String>> =
            written.claim.iter().map(|claim| claim.id.clone()).collect();
        let file = Self {
            title: kind.marked(written.title),
            kind,
            machine,
            claim: written
                .claim
                .into_iter()
                .zip(goals)
                .map(|(claim, goal)| ClaimSpec {
                    id: claim.id.into_inner(),
                    what: claim.what,
                    unit: claim.unit,
                    paper: claim.paper,
                    goal,
                })
                .collect(),
            run: written.run,
            flavour: written.flavour,
            variant: written.variant,
            panel,
        };
        let known = known_claims(&file);
        for id in &claim_ids {
            if !known.contains(id.get_ref()) {
                return Err(pointer.wrong(
                    id,
                    format!("nothing measures the claim `{}`", id.get_ref()),
                    format!("with these variants there are: {}", list(&known)),
                ));
            }
        }
        let known = known_series(&file);
        for curve in file.panel.iter().flat_map(|panel| &panel.curves) {
            if !known.contains(curve.of.get_ref()) {
                return Err(pointer.wrong(
                    &curve.of,
                    format!("there is no series `{}`", curve.of.get_ref()),
                    format!("with these variants there are: {}", list(&known)),
                ));
            }
        }
        Ok(file)
    }

    /// The variants that are behind a software limiter.
    pub fn limited(&self) -> impl Iterator<Item = &Variant> {
        self.variant
            .iter()
            .filter(|variant| variant.role == Role::Limited)
    }

    /// Whether the file states this claim, so that it must be measured.
    pub fn claims(&self, id: &str) -> bool {
        self.claim.iter().any(|claim| claim.id == id)
    }

    /// The file's panels with the measured points, if it has any.
    pub fn plot(&self, series: &[Series]) -> Result<Option<Plot>, ExperimentError> {
        if self.panel.is_empty() {
            return Ok(None);
        }
        let find = |id: &str| {
            series
                .iter()
                .find(|series| series.id == id)
                .ok_or_else(|| ExperimentError::Unmeasured(id.to_owned()))
        };
        let panels = self
            .panel
            .iter()
            .map(|panel| {
                let mut axes = (String::new(), String::new());
                let curves = panel
                    .curves
                    .iter()
                    .map(|curve| {
                        let series = find(curve.of.get_ref())?;
                        axes = (series.x.clone(), series.y.clone());
                        Ok(Curve {
                            label: curve.label.clone(),
                            colour: curve.colour,
                            stroke: curve.stroke,
                            points: series.points.clone(),
                        })
                    })
                    .collect::<Result<_, ExperimentError>>()?;
                Ok(Panel {
                    title: panel.title.get_ref().clone(),
                    x: axes.0,
                    y: axes.1,
                    x_scale: panel.x_scale,
                    curves,
                })
            })
            .collect::<Result<_, ExperimentError>>()?;
        Ok(Some(Plot {
            title: self.title.clone(),
            panels,
        }))
    }
}

/// The board of the firmware, on which this kind of experiment must be able to run.
fn machine(
    pointer: &Pointer,
    board: Option<&Spanned<String>>,
    kind: &Kind,
) -> Result<Machine, ExperimentError> {
    let Some(board) = board else {
        return Ok(Machine::default());
    };
    let machine = Machine::named(board.get_ref())
        .map_err(|message| pointer.wrong(board, message, "`board` says where firmware runs"))?;
    if kind.runs_on(machine) {
        return Ok(machine);
    }
    Err(pointer.wrong(
        board,
        format!(
            "an experiment of this kind does not run on the board {}",
            machine.name()
        ),
        "on soc run the kinds `overhead-sweep` and `rates`; kinds without firmware have no board",
    ))
}

fn list(names: &std::collections::BTreeSet<String>) -> String {
    names
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

fn parse_toml<T: DeserializeOwned>(pointer: &Pointer) -> Result<T, ExperimentError> {
    toml::from_str(pointer.text).map_err(|error: toml::de::Error| {
        pointer.error(error.message().to_owned(), None, error.span())
    })
}

fn unique<'a>(
    pointer: &Pointer,
    what: &str,
    ids: impl Iterator<Item = &'a Spanned<String>>,
) -> Result<(), ExperimentError> {
    let mut seen = std::collections::BTreeSet::new();
    for id in ids {
        if !seen.insert(id.get_ref()) {
            return Err(pointer.wrong(
                id,
                format!("there are two {what}s `{}`", id.get_ref()),
                "give each its own id",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
