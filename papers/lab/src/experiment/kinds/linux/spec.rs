// SPDX-License-Identifier: GPL-3.0-or-later
//! The tables of an experiment's file for experiments on Linux.
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
    /// The kernel of variants that name none, in the syntax of `boards/linux/build.sh`.
    pub kernel: String,
    /// The seeds of the floods. Commands can use them, too. Every point is run with each seed.
    pub seeds: Vec<u64>,
    /// The part that `--quick` runs in place of all points and seeds.
    pub quick: Option<QuickPoints>,
    /// Commands that the guest's shell runs before all others.
    #[serde(default)]
    pub prepare: String,
    /// The path of the system file that describes the guest to `weir-linux`, relative to the
    /// repository's root. Each variant adds its own table `[linux]`.
    pub system: Option<String>,
    /// The type of two additional cards, `eth1` and `eth2`, which are joined by a wire. The key is
    /// the default for variants that do not set it. `None` means that the guest has no such cards.
    pub wire: Option<Wire>,
    /// The packets that arrive from outside. The list is empty if only the guest itself sends
    /// packets.
    pub feed: Vec<FeedSpec>,
    /// The time for which these packets arrive, counted from the start of the awaited processes.
    pub feed_for: Quantity<Duration>,
    /// The processes that run in the guest.
    pub process: Vec<ProcessSpec>,
    /// The axis of the points.
    pub x: Axis,
    /// The ways to run the guest, completed by [`variants`].
    #[serde(deserialize_with = "variants::read")]
    pub variant: Vec<VariantSpec>,
    /// The series as the file states them, over the names that [`super::values`] lists.
    /// [`Self::series`] expands them.
    #[serde(rename = "series")]
    written_series: Vec<SeriesSpec>,
    /// The searches for worst floods. The searched pattern replaces that of the only feed that
    /// depends on x. A search uses the first seed and the first point. [`Self::searches`] expands
    /// the searches.
    #[serde(default)]
    pub search: Vec<SearchSpec>,
}

/// A flow of packets. If the pattern depends on x, no packets arrive at x = 0.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeedSpec {
    /// The number of the flow. Its UDP port is 5000 + flow.
    pub flow: u16,
    /// The length of the UDP payload in bytes.
    pub bytes: u16,
    /// The pattern of arrivals, in the syntax of `weir-load send --pattern`.
    pub pattern: Template,
    /// The time at which the pattern begins, counted from the start of the awaited processes.
    /// `None` means 0.
    pub from: Option<Quantity<Duration>>,
}

/// A program in the guest that prints JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessSpec {
    /// The prefix of the names of the process's values.
    pub id: String,
    /// The command for the guest's shell. `$speed` is the value that `weir-load spin` reports under
    /// this name, `$x` is the point, `$seed` the seed, and `$ip` the variant's version of IP. The
    /// flood begins before the awaited processes and ends after them. All other processes are
    /// servers: they print `ready` on standard error when they have started, and are ended by
    /// SIGTERM.
    pub command: String,
    /// Whether the job waits for the process's end. At least one process must be awaited.
    #[serde(default)]
    pub awaited: bool,
}

/// A way to run the guest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantSpec {
    /// The prefix of the names of the values of the variant's runs.
    pub id: String,
    /// The kernel, in place of the experiment's. KERNEL stands for the experiment's kernel.
    pub kernel: Option<String>,
    /// Commands that the guest's shell runs after the experiment's own ones.
    #[serde(default)]
    pub prepare: String,
    /// The system file, in place of the experiment's.
    pub system: Option<String>,
    /// The size of the receive ring of the guest's card, in packets. `None` means 256.
    pub ring: Option<Ring>,
    /// The type of the cards that are joined by a wire, in place of the experiment's.
    pub wire: Option<Wire>,
    /// The version of IP of the arriving packets, 4 by default.
    #[serde(default)]
    pub ip: Ip,
    /// The table `[linux]` with which `weir-linux run` sets up the system. Without the table,
    /// weir-linux does not run.
    pub linux: Option<LinuxTable>,
    /// Additional options for `weir-linux run`.
    #[serde(default)]
    pub options: String,
    /// Whether the card gathers packets as the key `moderation` of the system file says. By default
    /// it does so only if weir-linux runs.
    moderated: Option<bool>,
    /// The label of the variant's curves. KERNEL stands for the experiment's kernel.
    pub label: String,
    /// The colour of the variant's curves.
    pub colour: Colour,
    /// The stroke of the variant's curves.
    #[serde(default)]
    pub stroke: Stroke,
}

impl VariantSpec {
    /// Whether the card gathers packets as the key `moderation` of the system file says.
    pub fn is_moderated(&self) -> bool {
        self.moderated.unwrap_or(self.linux.is_some())
    }
}

/// The word that texts of variants use for the experiment's kernel.
const KERNEL: &str = "KERNEL";

/// The type of the two cards that are joined by a wire.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Wire {
    /// A virtio card. It interrupts for each packet at once, and has separate NAPI instances for
    /// received and for sent packets.
    VirtioNet,
    /// Intel's 82540EM. It moderates its interrupts as its driver configures it, and has one NAPI
    /// instance.
    E1000,
}

impl Wire {
    /// The name of the card in the syntax of `boards/linux/run.sh`.
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
    /// The version number, 4 or 6.
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

/// The size of the receive ring of the guest's card, in packets. Only the sizes of QEMU's card are
/// allowed.
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

/// The table `[linux]` of a system file. Its strings are templates.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum LinuxTable {
    /// A nested table.
    Table(BTreeMap<String, LinuxTable>),
    /// A string, which is a template.
    Text(Template),
    /// A number or a boolean.
    Plain(toml::Value),
}

impl LinuxTable {
    /// The value at the point `x`.
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
    /// The series. A series whose id contains VARIANT is repeated for each variant.
    pub fn series(&self) -> Vec<SeriesSpec> {
        let names = self.variant.iter().map(|of| Name::plain(&of.id));
        of_variants(&self.written_series, &names.collect::<Vec<_>>())
    }

    /// The searches. A search whose id contains VARIANT is repeated for each variant.
    pub fn searches(&self) -> Vec<SearchSpec> {
        let names: Vec<_> = self.variant.iter().map(|of| Name::plain(&of.id)).collect();
        search::of_variants(&self.search, &names)
    }

    /// The type of the cards that a variant's wire joins. `None` if the variant has no such cards.
    pub fn wire_of(&self, variant: &VariantSpec) -> Option<Wire> {
        variant.wire.or(self.wire)
    }

    /// The kernel of a variant.
    pub fn kernel_of(&self, variant: &VariantSpec) -> String {
        self.named(variant.kernel.as_deref().unwrap_or(KERNEL))
    }

    /// Replaces KERNEL in a variant's text by the name of the experiment's kernel.
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
