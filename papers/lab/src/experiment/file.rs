// SPDX-License-Identifier: GPL-3.0-or-later
//! An experiment's file: the procedure, the firmware, and the expected results.
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;
use weir_emulate::board::EmulatedBoard;
use weir_report::{Claim, Curve, CurveKind, Goal, Panel, Plot};

use super::error::{ExperimentError, list};
use super::kind::{Kind, KindEntry};
use super::pointer::Pointer;
use super::setup::{
    CurveSpec, FlavourSources, Name, PanelSpec, Role, RunTimes, Setup, Variant, each,
};
use crate::experiment::report::Series;

/// A checked experiment file.
#[derive(Debug)]
pub(super) struct ExperimentFile {
    pub title: String,
    pub kind: Box<dyn Kind>,
    pub setup: Setup,
    /// The ids of the claims that the form `--quick` cannot judge.
    whole: BTreeSet<String>,
    panel: Vec<PanelSpec>,
}

/// The file's keys and tables.
#[derive(Deserialize)]
struct Document {
    title: String,
    /// The paper, the section in it and a description, for the reader.
    #[serde(rename = "paper")]
    _paper: String,
    #[serde(rename = "section")]
    _section: String,
    #[serde(rename = "about")]
    _about: String,
    kind: Spanned<String>,
    /// The board of the firmware; the atmega128 if the key is missing.
    board: Option<Spanned<String>>,
    claim: Vec<ClaimSpec>,
    run: Option<RunTimes>,
    #[serde(default)]
    flavour: BTreeMap<String, FlavourSources>,
    #[serde(default)]
    variant: Vec<Variant>,
    #[serde(default)]
    panel: Vec<PanelSpec>,
    /// The table of the kind.
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

/// The keys of [`Document`] and of [`super::base`], as messages list them.
const KEYS: &str = "`base`, `title`, `paper`, `section`, `about`, `kind`, `board`, `claim`, `run`, \
                    `flavour`, `variant`, `panel`";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimSpec {
    /// The id of the claim. If it contains VARIANT or FLAVOUR, the entry makes one claim about each
    /// variant in `of`.
    id: Spanned<String>,
    /// The variants, each as an id, as ROLE or as FLAVOUR.ROLE; an empty list means all variants.
    #[serde(default)]
    of: Vec<String>,
    what: String,
    unit: String,
    paper: Option<f64>,
    at_most: Option<f64>,
    at_least: Option<f64>,
    equal: Option<f64>,
    within: Option<[f64; 2]>,
    /// Whether the claim has no goal: its value is only shown beside the others.
    #[serde(default)]
    shown: bool,
    /// The limit for a goal that is known to be missed at present: the measured value must not be
    /// worse than this value.
    today: Option<f64>,
    /// Whether the claim is about all points and seeds, so that the form `--quick` cannot judge it.
    #[serde(default)]
    whole: bool,
}

impl ClaimSpec {
    fn goal(&self) -> Option<Goal> {
        let goals = [
            self.at_most.map(Goal::AtMost),
            self.at_least.map(Goal::AtLeast),
            self.equal.map(Goal::Equal),
            self.within.map(|[least, most]| Goal::Within(least, most)),
            self.shown.then_some(Goal::Shown),
        ];
        let mut stated = goals.into_iter().flatten();
        stated.next().filter(|_| stated.next().is_none())
    }

    /// The claim, or one claim about each variant in `of`. Each comes with the place of its id in
    /// the file.
    fn claims(
        &self,
        pointer: &Pointer,
        variants: &[Name],
    ) -> Result<Vec<(Spanned<String>, Claim)>, ExperimentError> {
        let goal = self.goal().ok_or_else(|| {
            pointer.wrong(
                &self.id,
                format!("the claim `{}` does not state one goal", self.id.get_ref()),
                "a goal is one of `at_most = 1`, `at_least = 1`, `equal = 0` and `within = [1, 2]`; `shown = true` is for a value without one",
            )
        })?;
        let today = match (self.today, goal) {
            (None, _) => None,
            (Some(most), Goal::AtMost(goal)) if most > goal => Some(Goal::AtMost(most)),
            (Some(least), Goal::AtLeast(goal)) if least < goal => Some(Goal::AtLeast(least)),
            (Some(_), _) => {
                return Err(pointer.wrong(
                    &self.id,
                    format!("`today` of the claim `{}` is no value that misses its goal", self.id.get_ref()),
                    "a goal that is known to be missed is `at_most = 1, today = 2` or `at_least = 2, today = 1`",
                ));
            }
        };
        Ok(each(variants, (self.id.get_ref(), &self.of), |rename| {
            let id = rename(self.id.get_ref());
            let claim = Claim {
                id: id.clone(),
                what: self.what.clone(),
                unit: self.unit.clone(),
                paper: self.paper,
                goal,
                today,
                measured: f64::NAN,
            };
            (Spanned::new(self.id.span(), id), claim)
        }))
    }
}

impl ExperimentFile {
    /// Parses the text of the file called `name`, whose kind is one of `kinds`.
    pub fn parse(kinds: &[KindEntry], name: &str, text: &str) -> Result<Self, ExperimentError> {
        let pointer = Pointer { name, text };
        let written: Document = pointer.read()?;
        let entry = entry(&pointer, kinds, &written)?;
        let kind = entry.read(&pointer)?;
        let board = board(&pointer, kinds, written.board.as_ref(), entry)?;
        if written.run.is_none() && !entry.boards.is_empty() {
            return Err(pointer.wrong(
                &written.kind,
                "nothing says how long the firmware runs".to_owned(),
                "a table [run] has `clock`, `warmup` and `length`",
            ));
        }
        for variant in &written.variant {
            check_variant(&pointer, board, &written.flavour, variant)?;
        }
        unique(
            &pointer,
            "variant",
            written.variant.iter().map(|variant| &variant.id),
        )?;
        let names: Vec<Name> = written.variant.iter().map(Name::of).collect();
        let mut claims = Vec::new();
        let mut whole = BTreeSet::new();
        for claim in &written.claim {
            let all = claim.claims(&pointer, &names)?;
            whole.extend(
                all.iter()
                    .filter(|_| claim.whole)
                    .map(|(_, of)| of.id.clone()),
            );
            claims.extend(all);
        }
        let (claim_ids, claim): (Vec<_>, Vec<_>) = claims.into_iter().unzip();
        unique(&pointer, "claim", claim_ids.iter())?;
        let mut panel = written.panel;
        for panel in &mut panel {
            let of_variants = variant_curves(&pointer, kind.as_ref(), panel)?;
            panel.curves.extend(of_variants);
            if panel.curves.is_empty() {
                return Err(pointer.wrong(
                    &panel.title,
                    format!("the panel `{}` has no curve", panel.title.get_ref()),
                    "give it `curves`, or with the kinds `linux` and `node` `each`, a series of its variants",
                ));
            }
        }
        let setup = Setup {
            board,
            claim,
            run: written.run,
            flavour: written.flavour,
            variant: written.variant,
        };
        let known = kind.known(&setup);
        all_known(&pointer, claim_ids.iter(), &known.claims, |id| {
            format!("nothing measures the claim `{id}`")
        })?;
        let curves = panel.iter().flat_map(|panel| &panel.curves);
        all_known(
            &pointer,
            curves.map(|curve| &curve.of),
            &known.series,
            |id| format!("there is no series `{id}`"),
        )?;
        Ok(Self {
            title: match kind.remark() {
                Some(remark) => format!("{} ({remark})", written.title),
                None => written.title,
            },
            kind,
            setup,
            whole,
            panel,
        })
    }

    /// Reduces the experiment to its quick part. Returns the ids of the claims that this part
    /// cannot judge, or `None` if the file states no quick part.
    pub fn shorten(&mut self) -> Option<Vec<String>> {
        if !self.kind.shorten() {
            return None;
        }
        let is_left_out = |claim: &Claim| self.whole.contains(&claim.id);
        let all = std::mem::take(&mut self.setup.claim);
        let (left_out, judged): (Vec<_>, Vec<_>) = all.into_iter().partition(is_left_out);
        self.setup.claim = judged;
        Some(left_out.into_iter().map(|claim| claim.id).collect())
    }

    /// Draws the measured points in the file's panels. Returns `None` if the file has no panels.
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
                            kind: CurveKind::Measured,
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

/// The curves of a panel with the key `each`: a curve for each variant in `of`, or for all
/// variants.
fn variant_curves(
    pointer: &Pointer,
    kind: &dyn Kind,
    panel: &PanelSpec,
) -> Result<Vec<CurveSpec>, ExperimentError> {
    let Some(each) = &panel.each else {
        return panel.of.first().map_or(Ok(Vec::new()), |variant| {
            Err(pointer.wrong(
                variant,
                "`of` names variants, and the panel has no `each`".to_owned(),
                "`each` is the series of which these variants have a curve",
            ))
        });
    };
    let mut all = kind.curves(each);
    if panel.of.is_empty() {
        return Ok(all);
    }
    let suffix = format!(".{}", each.get_ref());
    let id_of = |curve: &CurveSpec| curve.of.get_ref().strip_suffix(&suffix).map(str::to_owned);
    let help = format!(
        "the variants are {}, each once",
        list(&all.iter().filter_map(id_of).collect())
    );
    let mut curves = Vec::new();
    for variant in &panel.of {
        let id = format!("{}{suffix}", variant.get_ref());
        let Some(place) = all.iter().position(|curve| *curve.of.get_ref() == id) else {
            return Err(pointer.wrong(
                variant,
                format!(
                    "`{}` is no variant, or stands here twice",
                    variant.get_ref()
                ),
                help,
            ));
        };
        curves.push(all.remove(place));
    }
    Ok(curves)
}

/// Finds the kind that the file names, and checks that the file has the kind's table.
fn entry<'a>(
    pointer: &Pointer,
    kinds: &'a [KindEntry],
    written: &Document,
) -> Result<&'a KindEntry, ExperimentError> {
    let names: Vec<String> = kinds
        .iter()
        .map(|kind| format!("`{}`", kind.name))
        .collect();
    let help = format!("the kinds are {}", names.join(", "));
    let keys: BTreeMap<Spanned<String>, IgnoredAny> = pointer.read()?;
    let is_kind = |key: &str| kinds.iter().any(|kind| kind.name == key);
    let unknown = |key: &&Spanned<String>| {
        written.others.contains_key(key.get_ref()) && !is_kind(key.get_ref())
    };
    if let Some(key) = keys.keys().find(unknown) {
        return Err(pointer.wrong(
            key,
            format!("unknown field `{}`", key.get_ref()),
            format!("a file has {KEYS} and the table of its kind; {help}"),
        ));
    }
    let name = written.kind.get_ref();
    let Some(entry) = kinds.iter().find(|kind| kind.name == name) else {
        let what = format!("there is no kind of experiment `{name}`");
        return Err(pointer.wrong(&written.kind, what, help));
    };
    if written.others.len() == 1 && written.others.contains_key(name) {
        return Ok(entry);
    }
    let what = format!("a file of the kind `{name}` has a table [{name}] and none of another kind");
    Err(pointer.wrong(&written.kind, what, help))
}

/// Reads the board of the firmware, and checks that this kind of experiment supports the board.
fn board(
    pointer: &Pointer,
    kinds: &[KindEntry],
    board: Option<&Spanned<String>>,
    entry: &KindEntry,
) -> Result<EmulatedBoard, ExperimentError> {
    let Some(written) = board else {
        return Ok(EmulatedBoard::ATMEGA128);
    };
    let board = EmulatedBoard::named(written.get_ref())
        .map_err(|message| pointer.wrong(written, message, "`board` says where firmware runs"))?;
    if entry.boards.contains(&board) {
        return Ok(board);
    }
    let able = kinds.iter().filter(|kind| kind.boards.contains(&board));
    let able: Vec<String> = able.map(|kind| format!("`{}`", kind.name)).collect();
    Err(pointer.wrong(
        written,
        format!(
            "an experiment of this kind does not run on the board {}",
            board.name()
        ),
        format!(
            "on {} run the kinds {}; kinds without firmware have no board",
            board.name(),
            able.join(" and ")
        ),
    ))
}

fn check_variant(
    pointer: &Pointer,
    board: EmulatedBoard,
    flavours: &BTreeMap<String, FlavourSources>,
    variant: &Variant,
) -> Result<(), ExperimentError> {
    let (id, flavour) = (variant.id(), variant.flavour());
    if !flavours.contains_key(flavour) {
        let known: Vec<&str> = flavours.keys().map(String::as_str).collect();
        return Err(pointer.wrong(
            &variant.id,
            format!("the variant `{id}` has no flavour `{flavour}`"),
            format!(
                "an id is FLAVOUR.POLICY; the flavours are {}",
                known.join(", ")
            ),
        ));
    }
    let is_right = board.abilities().silicon && id == format!("{flavour}.hardware");
    if variant.role == Role::Hardware && !is_right {
        return Err(pointer.wrong(
            &variant.id,
            format!("the variant `{id}` cannot have the role `hardware`"),
            "there is one in a flavour, called FLAVOUR.hardware, and only with board = \"soc\"",
        ));
    }
    if (variant.role == Role::Ideal) != variant.limit.is_some() {
        return Err(pointer.wrong(
            &variant.id,
            format!("the variant `{id}` has a `limit` or the role `ideal`, and not both"),
            "a variant with the role `ideal` has a limit, such as `limit = \"4kHz\"`; others keep it in firmware",
        ));
    }
    Ok(())
}

/// Checks that the experiment can measure every name in the file.
fn all_known<'a>(
    pointer: &Pointer,
    mut ids: impl Iterator<Item = &'a Spanned<String>>,
    known: &BTreeSet<String>,
    what: impl Fn(&str) -> String,
) -> Result<(), ExperimentError> {
    match ids.find(|id| !known.contains(id.get_ref())) {
        None => Ok(()),
        Some(id) => Err(pointer.wrong(
            id,
            what(id.get_ref()),
            format!("with these variants there are: {}", list(known)),
        )),
    }
}

fn unique<'a>(
    pointer: &Pointer,
    what: &str,
    ids: impl Iterator<Item = &'a Spanned<String>>,
) -> Result<(), ExperimentError> {
    let mut seen = BTreeSet::new();
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
