// SPDX-License-Identifier: GPL-3.0-or-later
//! The settings that experiments of all kinds share: claims, firmware and curves.
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use weir_emulate::board::EmulatedBoard;
use weir_report::{Claim, Colour, Scale, Stroke};

/// The settings that experiments of all kinds share.
#[derive(Debug)]
pub(super) struct Setup {
    /// The board of the firmware.
    pub board: EmulatedBoard,
    /// The claims, which have no measured values yet.
    pub claim: Vec<Claim>,
    /// The times of the runs. `None` only in kinds without firmware.
    pub run: Option<RunTimes>,
    pub flavour: BTreeMap<String, FlavourSources>,
    pub variant: Vec<Variant>,
}

impl Setup {
    /// The names of all variants, for series and claims.
    pub fn names(&self) -> Vec<Name<'_>> {
        self.variant.iter().map(Name::of).collect()
    }

    /// Whether the file states a claim with this id, so that its value must be measured.
    pub fn claims(&self, id: &str) -> bool {
        self.claim.iter().any(|claim| claim.id == id)
    }
}

/// The times of a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunTimes {
    /// The board's clock.
    pub clock: Quantity<weir_model::Rate>,
    /// The time before the counted part of a run.
    pub warmup: Quantity<weir_model::Duration>,
    /// The length of the counted part.
    pub length: Quantity<weir_model::Duration>,
}

/// The firmware settings that all variants of a flavour share. Paths are relative to the
/// repository's root.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlavourSources {
    #[serde(default)]
    pub sources: Vec<String>,
    #[serde(default)]
    pub includes: Vec<String>,
    #[serde(default)]
    pub defines: Vec<String>,
    #[serde(default)]
    pub flags: Vec<String>,
    /// The linker script, for compilers that do not know the board's memory.
    #[serde(rename = "linker-script")]
    pub linker_script: Option<String>,
}

/// A variant of the firmware. Its id is `FLAVOUR.POLICY`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Variant {
    pub id: Spanned<String>,
    pub role: Role,
    /// Source files in addition to those of the flavour.
    #[serde(default)]
    pub sources: Vec<String>,
    #[serde(default)]
    pub defines: Vec<String>,
    #[serde(default)]
    pub flags: Vec<String>,
    /// The rate of the ideal hardware limiter. It is stated with the role `ideal` only.
    pub limit: Option<Quantity<weir_model::Rate>>,
    /// The number of lines that the firmware uses, from INT0 on.
    #[serde(default = "one")]
    pub lines: u32,
}

fn one() -> u32 {
    1
}

/// The role of a firmware variant in an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Role {
    /// Firmware with an ordinary handler. Each flavour has one such variant, and its other variants
    /// are compared with it.
    Unprotected,
    /// Firmware with a software limiter.
    Limited,
    /// Firmware that polls the line once per interval.
    Polling,
    /// Firmware with an ordinary handler that sets up the limiter in silicon in front of it. A
    /// flavour has at most one such variant, called `FLAVOUR.hardware`. Only the board soc has this
    /// limiter.
    Hardware,
    /// Firmware with an ordinary handler behind an ideal hardware limiter, which enforces the rate
    /// `limit`.
    Ideal,
    /// Firmware for a second microcontroller in front of the unprotected firmware of the flavour
    /// `paper`.
    Front,
}

impl Role {
    /// The name of the role in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unprotected => "unprotected",
            Self::Limited => "limited",
            Self::Polling => "polling",
            Self::Hardware => "hardware",
            Self::Ideal => "ideal",
            Self::Front => "front",
        }
    }
}

impl Variant {
    pub fn id(&self) -> &str {
        self.id.get_ref()
    }

    /// The flavour: the part of the id before the dot.
    pub fn flavour(&self) -> &str {
        self.id().split('.').next().unwrap_or_default()
    }
}

/// The names by which series and claims refer to a variant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<'a> {
    pub id: &'a str,
    /// The flavour. In kinds without flavours both the flavour and the role are empty.
    pub flavour: &'a str,
    pub role: &'a str,
}

impl<'a> Name<'a> {
    /// The names of a variant of firmware.
    pub fn of(variant: &'a Variant) -> Self {
        Self {
            id: variant.id(),
            flavour: variant.flavour(),
            role: variant.role.name(),
        }
    }

    /// The names of a variant in a kind without flavours.
    pub fn plain(id: &'a str) -> Self {
        Self {
            id,
            flavour: "",
            role: "",
        }
    }
}

const VARIANT: &str = "VARIANT";
const FLAVOUR: &str = "FLAVOUR";

/// Calls `make` for each variant that `of` selects, or once if `id` contains neither VARIANT nor
/// FLAVOUR. Returns the results.
pub(super) fn each<T>(
    variants: &[Name],
    (id, of): (&str, &[String]),
    make: impl Fn(&dyn Fn(&str) -> String) -> T,
) -> Vec<T> {
    if !id.contains(VARIANT) && !id.contains(FLAVOUR) {
        return vec![make(&str::to_owned)];
    }
    let is_meant = |name: &&Name| {
        let by_flavour = format!("{}.{}", name.flavour, name.role);
        let all = [name.id, name.role, &by_flavour];
        of.is_empty() || of.iter().any(|of| all.contains(&of.as_str()))
    };
    let make = |name: &Name| {
        make(&|text| {
            text.replace(VARIANT, name.id)
                .replace(FLAVOUR, name.flavour)
        })
    };
    variants.iter().filter(is_meant).map(make).collect()
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
    /// An alternative to `curves`: a series that each variant has, and which is drawn for each
    /// variant. The variants state how their curves are drawn.
    pub each: Option<Spanned<String>>,
    /// The variants whose curves are drawn with `each`. An empty list means all variants.
    #[serde(default)]
    pub of: Vec<Spanned<String>>,
}

/// A curve of a panel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CurveSpec {
    /// The id of a series.
    pub of: Spanned<String>,
    pub label: String,
    pub colour: Colour,
    #[serde(default)]
    pub stroke: Stroke,
}

impl CurveSpec {
    /// The curve of a variant's series. The id of this series is the variant's `id`, a dot, and
    /// `series`.
    pub fn of_variant(
        series: &Spanned<String>,
        id: &str,
        label: String,
        (colour, stroke): (Colour, Stroke),
    ) -> Self {
        Self {
            of: Spanned::new(series.span(), format!("{id}.{}", series.get_ref())),
            label,
            colour,
            stroke,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_variants_only_those_are_meant_that_are_named() {
        let name = |id, flavour, role| Name { id, flavour, role };
        let all = [
            name("c.none", "c", "unprotected"),
            name("c.strict", "c", "limited"),
            name("fast.strict", "fast", "limited"),
        ];
        let ids = |id: &str, of: &[&str]| {
            let of: Vec<String> = of.iter().map(ToString::to_string).collect();
            each(&all, (id, &of), |rename| rename(id))
        };
        assert_eq!(ids("all", &["limited"]), ["all"]);
        assert_eq!(ids("VARIANT", &[]), ["c.none", "c.strict", "fast.strict"]);
        assert_eq!(
            ids("FLAVOUR.error", &["limited"]),
            ["c.error", "fast.error"]
        );
        let some = ids("VARIANT.max", &["fast.limited", "c.none"]);
        assert_eq!(some, ["c.none.max", "fast.strict.max"]);
    }
}
