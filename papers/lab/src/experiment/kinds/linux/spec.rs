// SPDX-License-Identifier: GPL-3.0-or-later
//! The tables of an experiment in the guest, in its file.
use std::collections::BTreeMap;

use serde::Deserialize;
use weir_model::Duration;
use weir_report::{Colour, Stroke};

use super::variants;
use crate::experiment::search::{self, SearchSpec};
use crate::experiment::series::formula::Template;
use crate::experiment::series::{Axis, QuickPoints, SeriesSpec, of_variants};
use crate::experiment::setup::{Name, Quantity};

/// The table `[linux]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Linux {
    /// The kernel of variants that name none, in the form that `boards/linux/build.sh` takes.
    pub kernel: String,
    /// The seeds of the floods, which commands can use, too; every point is run with each seed.
    pub seeds: Vec<u64>,
    /// The part that `--quick` runs in place of all points and seeds.
    pub quick: Option<QuickPoints>,
    /// Commands that the guest's shell runs first.
    #[serde(default)]
    pub prepare: String,
    /// The path of the system file that describes the guest to `weir-linux`, from the repository's
    /// root; each variant adds its table `[linux]`.
    pub system: Option<String>,
    /// The type of two additional cards, `eth1` and `eth2`, which a wire joins; for variants that
    /// set none. None: no such cards.
    pub wire: Option<Wire>,
    /// The packets that arrive from outside; empty if all packets come from the guest itself.
    pub feed: Vec<FeedSpec>,
    /// The time for which these packets arrive, from the start of the awaited processes.
    pub feed_for: Quantity<Duration>,
    /// The processes that run in the guest.
    pub process: Vec<ProcessSpec>,
    /// The axis of the points.
    pub x: Axis,
    /// The ways to run the guest; see [`variants`].
    #[serde(deserialize_with = "variants::read")]
    pub variant: Vec<VariantSpec>,
    /// The series, over the names that [`super::values`] lists; see [`Self::series`].
    #[serde(rename = "series")]
    written_series: Vec<SeriesSpec>,
    /// The searches for worst floods: the pattern takes the place of that of the one feed that
    /// depends on x, with the first seed and at the first point. See [`Self::searches`].
    #[serde(default)]
    pub search: Vec<SearchSpec>,
}

/// A flow of packets; if the pattern depends on x, there are none at x = 0.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeedSpec {
    /// The number of the flow, whose port is 5000 + flow.
    pub flow: u16,
    /// The length of the UDP payload.
    pub bytes: u16,
    /// The pattern, as `weir-load send --pattern` takes it.
    pub pattern: Template,
    /// The beginning of the pattern, from the start of the awaited processes; at once if it is not
    /// set.
    pub from: Option<Quantity<Duration>>,
}

/// A program that prints JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessSpec {
    /// The prefix of the names of the process's values.
    pub id: String,
    /// A command for the guest's shell, where `$speed` is the value that `weir-load spin` reports
    /// under this name, `$x` the point, `$seed` the seed and `$ip` the variant's version of IP. The
    /// flood begins before the awaited processes and ends after them; the others are servers, which
    /// print `ready` on their standard error, and are ended by SIGTERM.
    pub command: String,
    /// Whether the job waits for the process's end: at least one process is awaited.
    #[serde(default)]
    pub awaited: bool,
}

/// A way to run the guest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantSpec {
    /// The prefix of the names of the values of the variant's runs.
    pub id: String,
    /// The kernel, in place of the experiment's, which KERNEL stands for.
    pub kernel: Option<String>,
    /// Commands that the guest's shell runs after the experiment's own ones.
    #[serde(default)]
    pub prepare: String,
    /// The system file, in place of the experiment's.
    pub system: Option<String>,
    /// The number of packets for which the guest's card has room; 256 if it is not set.
    pub ring: Option<Ring>,
    /// The type of the cards that the wire joins, in place of the experiment's.
    pub wire: Option<Wire>,
    /// The version of IP of the arriving packets; 4 if it is not set.
    #[serde(default)]
    pub ip: Ip,
    /// The table `[linux]` with which `weir-linux run` carries the system out; without it
    /// weir-linux does not run.
    pub linux: Option<LinuxTable>,
    /// Additional options for `weir-linux run`.
    #[serde(default)]
    pub options: String,
    /// Whether the card gathers packets as the system's `moderation` says; by default only if
    /// weir-linux runs.
    moderated: Option<bool>,
    /// The label of the variant's curves, where KERNEL stands for the experiment's kernel.
    pub label: String,
    /// The colour of the variant's curves.
    pub colour: Colour,
    /// The stroke of the variant's curves.
    #[serde(default)]
    pub stroke: Stroke,
}

impl VariantSpec {
    /// Whether the card gathers packets as the system's `moderation` says.
    pub fn is_moderated(&self) -> bool {
        self.moderated.unwrap_or(self.linux.is_some())
    }
}

/// The word that stands for the experiment's kernel in texts of variants.
const KERNEL: &str = "KERNEL";

/// The type of the two cards that a wire joins.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Wire {
    /// A card that announces each packet at once; it has one NAPI instance for received packets and
    /// one for sent ones.
    VirtioNet,
    /// Intel's 82540EM, which moderates its interrupts as its driver sets it; it has one NAPI
    /// instance.
    E1000,
}

impl Wire {
    /// The name of the card, as `boards/linux/run.sh` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::VirtioNet => "virtio-net",
            Self::E1000 => "e1000",
        }
    }
}

/// A version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u8")]
pub(super) struct Ip(u8);

impl Ip {
    /// The number of the version: 4 or 6.
    pub fn version(self) -> u8 {
        self.0
    }
}

impl Default for Ip {
    fn default() -> Self {
        Self(4)
    }
}

impl TryFrom<u8> for Ip {
    type Error = &'static str;

    fn try_from(version: u8) -> Result<Self, Self::Error> {
        if matches!(version, 4 | 6) {
            Ok(Self(version))
        } else {
            Err("IP has the versions 4 and 6")
        }
    }
}

/// The number of packets for which the guest's card has room: the sizes that QEMU's card can have.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "u16")]
pub(super) struct Ring(u16);

impl Ring {
    /// The size of the ring in packets.
    pub fn packets(self) -> u16 {
        self.0
    }
}

impl TryFrom<u16> for Ring {
    type Error = &'static str;

    fn try_from(packets: u16) -> Result<Self, Self::Error> {
        if matches!(packets, 256 | 512 | 1024) {
            Ok(Self(packets))
        } else {
            Err("the guest's card has room for 256, 512 or 1024 packets")
        }
    }
}

/// The table `[linux]` of a system file, whose texts are templates.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum LinuxTable {
    /// A table.
    Table(BTreeMap<String, LinuxTable>),
    /// A text.
    Text(Template),
    /// A number or a boolean.
    Plain(toml::Value),
}

impl LinuxTable {
    /// The value at a point.
    pub fn at(&self, x: f64) -> Result<toml::Value, String> {
        Ok(match self {
            Self::Table(members) => {
                let members = members.iter();
                let at = |(name, value): (&String, &Self)| Ok((name.clone(), value.at(x)?));
                toml::Value::Table(members.map(at).collect::<Result<_, String>>()?)
            }
            Self::Text(template) => toml::Value::String(template.at(x)?),
            Self::Plain(value) => value.clone(),
        })
    }
}

impl Linux {
    /// The series; those with VARIANT in their id once per variant.
    pub fn series(&self) -> Vec<SeriesSpec> {
        let names = self.variant.iter().map(|of| Name::plain(&of.id));
        of_variants(&self.written_series, &names.collect::<Vec<_>>())
    }

    /// The searches; those with VARIANT in their id once per variant.
    pub fn searches(&self) -> Vec<SearchSpec> {
        let names: Vec<_> = self.variant.iter().map(|of| Name::plain(&of.id)).collect();
        search::of_variants(&self.search, &names)
    }

    /// The type of the cards that a variant's wire joins.
    pub fn wire_of(&self, variant: &VariantSpec) -> Option<Wire> {
        variant.wire.or(self.wire)
    }

    /// The kernel of a variant.
    pub fn kernel_of(&self, variant: &VariantSpec) -> String {
        self.named(variant.kernel.as_deref().unwrap_or(KERNEL))
    }

    /// A text of a variant with the experiment's kernel in it.
    pub fn named(&self, text: &str) -> String {
        text.replace(KERNEL, &self.kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_one_that_the_card_can_have() {
        let of = |packets| Ring::try_from(packets).map(Ring::packets);
        assert_eq!([256, 512, 1024].map(of), [Ok(256), Ok(512), Ok(1024)]);
        assert!([0, 255, 300, 2048].map(of).iter().all(Result::is_err));
    }

    #[test]
    fn ip_is_4_or_6() {
        let of = |version| Ip::try_from(version).map(Ip::version);
        assert_eq!([4, 6].map(of), [Ok(4), Ok(6)]);
        assert!([0, 5, 7].map(of).iter().all(Result::is_err));
    }
}
