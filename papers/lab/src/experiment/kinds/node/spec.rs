// SPDX-License-Identifier: GPL-3.0-or-later
//! The tables of an experiment on the node, in its file.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_report::{Colour, Stroke};

use super::{CLOCK_HZ, FIRST_WINDOW, cycles};
use crate::experiment::search::{self, SearchSpec};
use crate::experiment::series::formula::{Formula, Template};
use crate::experiment::series::{Axis, SeriesSpec, of_variants};
use crate::experiment::setup::Name;

/// The table `[node]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Node {
    /// The options of all variants, as boards/mps2-an385/node takes them.
    #[serde(default)]
    pub options: String,
    /// The number of windows of one second that are counted, from one second on.
    pub windows: u32,
    /// The seeds of the packets; every point is run with each.
    pub seeds: Vec<u64>,
    /// The part that `--quick` runs in place of all points, seeds and windows.
    pub quick: Option<QuickSpec>,
    /// The options of that part, once it is chosen.
    #[serde(skip)]
    pub quick_options: String,
    /// The axis of the points.
    pub x: Axis,
    /// Those who ask the node something in every run.
    #[serde(default, rename = "client")]
    pub clients: Vec<NodeClient>,
    /// The spans of the node's code that variants with `profile` measure.
    #[serde(default, rename = "span")]
    pub spans: Vec<NodeSpan>,
    /// The tone that the node's critical task plays on LED 0.
    pub tone: Option<ToneSpec>,
    /// Sounds of it.
    #[serde(default, rename = "sound")]
    pub sounds: Vec<SoundSpec>,
    /// The template of the node's system file ([`super::system`]), from the repository's root.
    #[serde(default = "template")]
    pub template: String,
    /// Names for it, each with a formula over x and the node's costs; a variant without any has no
    /// system file.
    #[serde(default)]
    pub system: BTreeMap<String, Formula>,
    /// The ways to run the node.
    pub variant: Vec<NodeVariant>,
    /// The worst patterns that are searched for, in place of a variant's own, with the first seed.
    /// The formulas are over the names that [`super::values`] lists and over series about one
    /// variant; `first.` stands for the run at the first point.
    #[serde(default)]
    pub search: Vec<SearchSpec>,
    /// The series, over the names that [`super::values`] lists; see [`Self::series`].
    #[serde(rename = "series")]
    written_series: Vec<SeriesSpec>,
}

/// A tone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToneSpec {
    /// The frequency that it is to have, in Hz.
    pub hz: f64,
    /// The title of the spectrograms of its sounds.
    #[serde(default)]
    pub title: String,
}

/// A sound: what a variant plays in the first second of each point.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SoundSpec {
    /// The end of its file's name.
    pub id: String,
    /// The variant's id.
    pub variant: String,
    /// The title of its spectrogram.
    pub title: String,
}

/// A part of the runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickSpec {
    /// None: all points.
    pub values: Option<Vec<f64>>,
    pub seeds: Vec<u64>,
    pub windows: u32,
    /// Options of the node in this part only, after all others.
    #[serde(default)]
    pub options: String,
}

/// A way to run the node.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeVariant {
    /// The prefix of the names of the values of the variant's runs.
    pub id: String,
    /// The variant's options, after those of all variants; they may depend on x.
    #[serde(default)]
    pub options: Template,
    /// What arrives.
    pub packets: Packets,
    /// When it arrives; if the pattern depends on x, nothing does at x = 0.
    pub pattern: Template,
    /// The time from which the pattern counts.
    #[serde(default = "from")]
    pub from: String,
    /// The time from which no frame arrives any more; never, if it is not set.
    pub until: Option<String>,
    /// The logarithm of the nanoseconds of an instruction.
    #[serde(default = "shift")]
    pub shift: u8,
    /// Options of the compiler, such as `-DPBUF_POOL_SIZE=128`: an ELF of its own.
    #[serde(default)]
    pub build: String,
    /// Who asks beside the clients of all variants.
    pub crowd: Option<Crowd>,
    /// Whether instructions are counted: those of interrupts and of spans. It takes the host as
    /// long again.
    #[serde(default)]
    pub profile: bool,
    /// Names for the system file, in place of those of all variants or beside them.
    #[serde(default)]
    pub system: BTreeMap<String, Formula>,
    /// The label of the variant's curves.
    pub label: String,
    /// The colour of the variant's curves.
    pub colour: Colour,
    /// The stroke of the variant's curves.
    #[serde(default)]
    pub stroke: Stroke,
}

fn template() -> String {
    "papers/experiments/behnke2021/node/system.template".to_owned()
}

/// Packets begin shortly before the first window, so that it has as many as the others.
fn from() -> String {
    "900ms".to_owned()
}

fn yes() -> bool {
    true
}

/// 8 ns: 125 MIPS.
fn shift() -> u8 {
    3
}

/// A span of the node's code: what a task executes from one function to another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeSpan {
    /// Its name in the names of values.
    pub id: String,
    /// The function with whose begin it begins.
    pub begin: String,
    /// The function with whose begin it ends, which may be the same: a turn of a loop. Without it,
    /// the span is a call of `begin`.
    pub end: Option<String>,
    /// The functions that are not called in it: a span that does so does not count.
    #[serde(default)]
    pub unless: Vec<String>,
}

/// One who asks the node something again and again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeClient {
    /// Its name in the names of values.
    pub id: String,
    /// What is asked.
    pub ask: Ask,
    /// When it is asked.
    pub pattern: String,
    /// The time from which the pattern counts: the first window, if it is not set.
    #[serde(default = "first_window")]
    pub from: String,
    /// The node's port; each question has its usual one.
    pub port: Option<u16>,
    /// How long an answer is waited for, in milliseconds.
    #[serde(default = "patience")]
    pub patience_ms: u32,
}

fn first_window() -> String {
    FIRST_WINDOW.to_owned()
}

fn patience() -> u32 {
    1000
}

/// Some who ask the node, do not read what it answers, and of whom nothing is told: it keeps their
/// answers, and sends them again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Crowd {
    number: u8,
    ask: Ask,
    /// The node's port; each question has its usual one.
    port: Option<u16>,
    /// When each of them asks; x is its number, from 1 on.
    pattern: Template,
    /// How long each waits before it hangs up, in milliseconds.
    patience_ms: u32,
    /// Does each acknowledge what it does not read? If not, it is as one that has lost its power.
    #[serde(default = "yes")]
    acknowledges: bool,
}

/// What is asked: an echo request of ICMP, or a question of the peer's clients, as it writes them.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Ask {
    Ping,
    Udp(u16),
    Http(String),
    Modbus { first: u16, count: u16 },
}

/// What arrives at the node.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Packets {
    /// Edges of the pin that takes the card's place.
    Simulated,
    /// Datagrams to a port, in frames of this length.
    Udp {
        port: u16,
        #[serde(default = "length")]
        length: u16,
    },
    /// Requests for a connection to a port, and segments with data for it, from hosts that do not
    /// exist.
    Syn(u16),
    Segment(u16),
    /// Echo requests, questions for the node's hardware address, last fragments of datagrams.
    Echo,
    Arp,
    Fragment,
}

impl Crowd {
    /// What the peer's plan says of them, if they begin so long after the first window.
    pub fn clients(&self, delay_us: u64) -> Result<Vec<Value>, String> {
        let delay = delay_us.saturating_mul(1000);
        let begin = format!("{}ns", cycles(FIRST_WINDOW)?.saturating_add(delay));
        let of = |number| {
            Ok(json!({
                "pattern": self.pattern.at(f64::from(number))?,
                "begin": begin,
                "count": u32::MAX,
                "ask": self.ask,
                "port": self.port,
                "patience": format!("{}ms", self.patience_ms),
                // One that acknowledges nothing has a window for all of it.
                "reads": !self.acknowledges,
                "acknowledges": self.acknowledges,
            }))
        };
        (1..=self.number).map(of).collect()
    }
}

impl Packets {
    /// What a flood of the peer's plan says of them; nothing for simulated packets.
    pub fn flood(&self) -> Option<Value> {
        Some(match self {
            Self::Simulated => return None,
            Self::Udp { port, length } => json!({ "frames": { "udp": port }, "length": length }),
            Self::Syn(port) => json!({ "frames": { "syn": port } }),
            Self::Segment(port) => json!({ "frames": { "segment": port } }),
            Self::Echo => json!({ "frames": "echo" }),
            Self::Arp => json!({ "frames": "arp" }),
            Self::Fragment => json!({ "frames": "fragment" }),
        })
    }
}

fn length() -> u16 {
    60
}

impl NodeVariant {
    /// What arrives at a point, as a pattern; nothing at x = 0, if the pattern depends on x.
    pub fn pattern_at(&self, x: f64) -> Result<Option<String>, String> {
        let some = self.pattern.pattern(x, CLOCK_HZ)?;
        some.map(|_| self.pattern.at(x)).transpose()
    }

    /// Whether the node has Weir's stages.
    pub fn has_stages(&self) -> bool {
        self.build
            .split_whitespace()
            .any(|word| word == "-DNODE_WEIR")
    }
}

impl Node {
    /// The names for the system file of a variant.
    pub fn system_of(&self, variant: &NodeVariant) -> BTreeMap<String, Formula> {
        let mut names = self.system.clone();
        names.extend(variant.system.clone());
        names
    }

    /// The series; those with VARIANT in their id once per variant.
    pub fn series(&self) -> Vec<SeriesSpec> {
        of_variants(&self.written_series, &self.names())
    }

    /// The searches; those with VARIANT in their id once per variant.
    pub fn searches(&self) -> Vec<SearchSpec> {
        search::of_variants(&self.search, &self.names())
    }

    fn names(&self) -> Vec<Name<'_>> {
        let names = self.variant.iter().map(|of| Name::plain(&of.id));
        names.collect()
    }
}
