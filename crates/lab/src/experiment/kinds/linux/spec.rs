// SPDX-License-Identifier: GPL-3.0-or-later
//! What a file of an experiment in the guest says.
use std::collections::BTreeMap;

use serde::Deserialize;
use weir_model::Duration;
use weir_report::{Colour, Stroke};

use crate::experiment::series::formula::Template;
use crate::experiment::series::{Axis, SeriesSpec, of_variants};
use crate::experiment::setup::{Name, Quantity};

/// The parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Linux {
    /// The kernel of variants that name none, as `boards/linux/build` takes it.
    pub kernel: String,
    /// The seeds of the floods, which commands can use, too; every point is run with each.
    pub seeds: Vec<u64>,
    /// What `--quick` runs in place of the axis and the seeds.
    pub quick: Option<QuickSpec>,
    /// What the guest's shell does first.
    #[serde(default)]
    pub prepare: String,
    /// What `weir-linux` takes as the description of the guest, by its path in the repository; its
    /// table `[linux]` is the variant's.
    pub system: Option<String>,
    /// What cards the guest has besides, joined by a wire, `eth1` and `eth2`, with variants that
    /// name none; none if nothing says so.
    pub wire: Option<Wire>,
    /// What arrives from outside; nothing where the packets come from the guest itself.
    pub feed: Vec<FeedSpec>,
    /// The time for which it arrives, from the begin of the processes that are waited for.
    pub feed_for: Quantity<Duration>,
    /// What runs in the guest.
    pub process: Vec<ProcessSpec>,
    /// What differs from point to point.
    pub x: Axis,
    /// The ways to run the guest.
    pub variant: Vec<VariantSpec>,
    /// What is looked at, over the names that [`super::values`] lists; see [`Self::series`].
    #[serde(rename = "series")]
    written_series: Vec<SeriesSpec>,
}

/// A part of the runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickSpec {
    pub values: Vec<f64>,
    pub seeds: Vec<u64>,
}

/// Packets; where a pattern depends on x, there are none at x = 0.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeedSpec {
    /// Its port is 5000 + flow.
    pub flow: u16,
    /// The length of the UDP payload.
    pub bytes: u16,
    /// The pattern, as `weir-load send --pattern` takes it.
    pub pattern: Template,
    /// When the pattern begins, from the begin of the processes that are waited for; at once if
    /// nothing says so.
    pub from: Option<Quantity<Duration>>,
}

/// A program that prints JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessSpec {
    /// The word before the names of its values.
    pub id: String,
    /// For the guest's shell, where `$speed` is what `weir-load spin` calls so, `$x` the point and
    /// `$seed` the seed. The flood begins before those that are waited for, and ends after them;
    /// the others are servers, which say `ready` on their standard error, and are ended by SIGTERM.
    pub command: String,
    /// Whether it is waited for: at least one is.
    #[serde(default)]
    pub awaited: bool,
}

/// A way to run the guest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantSpec {
    /// The word before the names of what is counted in its runs.
    pub id: String,
    /// The kernel, in place of the experiment's.
    pub kernel: Option<String>,
    /// What the guest's shell does after the experiment's own lines.
    #[serde(default)]
    pub prepare: String,
    /// The system file, in place of the experiment's.
    pub system: Option<String>,
    /// The number of packets for which the guest's card has room; 256 if nothing says so.
    pub ring: Option<Ring>,
    /// The wire, in place of the experiment's.
    pub wire: Option<Wire>,
    /// The version of IP of the packets of the feed; 4 if nothing says so.
    #[serde(default)]
    pub ip: Ip,
    /// `weir-linux run` carries the system out, with this table `[linux]`; nothing does if there is
    /// none.
    pub linux: Option<LinuxTable>,
    /// What `weir-linux run` is told in addition.
    #[serde(default)]
    pub options: String,
    /// The label of its curves.
    pub label: String,
    /// The colour of its curves.
    pub colour: Colour,
    /// The stroke of its curves.
    #[serde(default)]
    pub stroke: Stroke,
}

/// What the two cards are that a wire joins.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Wire {
    /// Each packet is told at once; what came and what was sent have a NAPI instance each.
    VirtioNet,
    /// Intel's 82540EM, which gathers its interrupts as its driver has it; one NAPI instance.
    E1000,
}

impl Wire {
    /// The name of the card, as `boards/linux/run` has it.
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
    /// 4 or 6.
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

/// The number of packets for which the guest's card has room, of those that QEMU's can have.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "u16")]
pub(super) struct Ring(u16);

impl Ring {
    /// The room in packets.
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
    /// A number or a truth.
    Plain(toml::Value),
}

impl LinuxTable {
    /// What it is at a point.
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
    /// The series, those of each variant once per variant.
    pub fn series(&self) -> Vec<SeriesSpec> {
        let names = self.variant.iter().map(|of| Name::plain(&of.id));
        of_variants(&self.written_series, &names.collect::<Vec<_>>())
    }

    /// What a variant's wire joins.
    pub fn wire_of(&self, variant: &VariantSpec) -> Option<Wire> {
        variant.wire.or(self.wire)
    }

    /// The kernel of a variant.
    pub fn kernel_of<'a>(&'a self, variant: &'a VariantSpec) -> &'a str {
        variant.kernel.as_ref().unwrap_or(&self.kernel)
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
