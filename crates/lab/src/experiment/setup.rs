// SPDX-License-Identifier: GPL-3.0-or-later
//! What experiments of all kinds have in common: their claims, their firmware, their curves.
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use weir_board::board::EmulatedBoard;
use weir_report::{Claim, Colour, Scale, Stroke};

/// What all kinds of experiments have in common.
#[derive(Debug)]
pub(super) struct Setup {
    /// The board that firmware runs on.
    pub board: EmulatedBoard,
    /// What is claimed, not yet measured.
    pub claim: Vec<Claim>,
    /// Every kind that runs firmware has it.
    pub run: Option<RunTimes>,
    pub flavour: BTreeMap<String, FlavourSources>,
    pub variant: Vec<Variant>,
}

impl Setup {
    /// The variants, as series and claims are about them.
    pub fn names(&self) -> Vec<Name<'_>> {
        self.variant.iter().map(Name::of).collect()
    }

    /// Whether the file states this claim, so that it must be measured.
    pub fn claims(&self, id: &str) -> bool {
        self.claim.iter().any(|claim| claim.id == id)
    }
}

/// The length of a run.
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

/// One firmware. Its id is `FLAVOUR.POLICY`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Variant {
    pub id: Spanned<String>,
    pub role: Role,
    /// More sources than the flavour's.
    #[serde(default)]
    pub sources: Vec<String>,
    #[serde(default)]
    pub defines: Vec<String>,
    #[serde(default)]
    pub flags: Vec<String>,
    /// What the ideal hardware limiter is set to; with the role `ideal`.
    pub limit: Option<Quantity<weir_model::Rate>>,
    /// Lines in use, INT0 upwards.
    #[serde(default = "one")]
    pub lines: u32,
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
    /// An ordinary handler, and the limiter in silicon before it, which the firmware sets up. There
    /// is one per flavour, called `FLAVOUR.hardware`. Only the board soc has one.
    Hardware,
    /// An ordinary handler, and an ideal hardware limiter before it that keeps `limit`.
    Ideal,
    /// Runs on a second microcontroller, in front of the unprotected firmware of the flavour
    /// `paper`.
    Front,
}

impl Role {
    /// The word for it in a file.
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

    /// The part of the id before the point.
    pub fn flavour(&self) -> &str {
        self.id().split('.').next().unwrap_or_default()
    }
}

/// A variant, as series and claims are about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<'a> {
    pub id: &'a str,
    /// Empty in kinds without flavours, and so is the role.
    pub flavour: &'a str,
    pub role: &'a str,
}

impl<'a> Name<'a> {
    /// A variant of firmware.
    pub fn of(variant: &'a Variant) -> Self {
        Self {
            id: variant.id(),
            flavour: variant.flavour(),
            role: variant.role.name(),
        }
    }

    /// A variant without a flavour.
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

/// What `make` makes for each variant that is meant, or once if `id` is about none.
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
    /// A series in place of `curves`, where variants say how they are drawn: each has a curve of
    /// it.
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
