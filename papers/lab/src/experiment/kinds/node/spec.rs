// SPDX-License-Identifier: GPL-3.0-or-later
//! The tables of an experiment's file for experiments on the node.
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
    /// The options of all variants, in the syntax of boards/mps2-an385/node.
    #[serde(default)]
    pub options: String,
    /// The number of windows of one second in which the node counts. The first begins 1 s after the
    /// start.
    pub windows: u32,
    /// The seeds of the packets. Every point is run with each seed.
    pub seeds: Vec<u64>,
    /// The part that `--quick` runs in place of all points, seeds and windows.
    pub quick: Option<QuickSpec>,
    /// The options of the quick part. They are empty unless that part was chosen.
    #[serde(skip)]
    pub quick_options: String,
    /// The axis of the points.
    pub x: Axis,
    /// The clients that send requests to the node in every run.
    #[serde(default, rename = "client")]
    pub clients: Vec<NodeClient>,
    /// The spans of the node's code that are measured in variants with `profile`.
    #[serde(default, rename = "span")]
    pub spans: Vec<NodeSpan>,
    /// The tone that the node's critical task plays on LED 0. `None` if it plays no tone.
    pub tone: Option<ToneSpec>,
    /// The sounds of the tone that are written to files.
    #[serde(default, rename = "sound")]
    pub sounds: Vec<SoundSpec>,
    /// The template of the node's system file ([`super::system`]), relative to the repository's
    /// root.
    #[serde(default = "template")]
    pub template: String,
    /// The names in the template, each with a formula over x and the node's costs. A variant
    /// without names has no system file.
    #[serde(default)]
    pub system: BTreeMap<String, Formula>,
    /// The ways to run the node.
    pub variant: Vec<NodeVariant>,
    /// The searches for the worst patterns, which replace a variant's own pattern. A search uses
    /// the first seed. Its formulas are over the names that [`super::values`] lists and over series
    /// about one variant; the prefix `first.` stands for the run at the first point.
    #[serde(default)]
    pub search: Vec<SearchSpec>,
    /// The series as the file states them, over the names that [`super::values`] lists.
    /// [`Self::series`] expands them.
    #[serde(rename = "series")]
    written_series: Vec<SeriesSpec>,
}

/// The tone that the node should play.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToneSpec {
    /// The intended frequency in Hz.
    pub hz: f64,
    /// The title of the spectrograms of its sounds.
    #[serde(default)]
    pub title: String,
}

/// A sound to write to a file: the first second of what a variant plays at each point.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SoundSpec {
    /// The id, with which the file's name ends.
    pub id: String,
    /// The id of the variant.
    pub variant: String,
    /// The title of the sound's spectrogram.
    pub title: String,
}

/// The part of the runs for `--quick`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickSpec {
    /// The points of this part. `None` means all points.
    pub values: Option<Vec<f64>>,
    pub seeds: Vec<u64>,
    pub windows: u32,
    /// Additional options of the node in this part. They follow all others.
    #[serde(default)]
    pub options: String,
}

/// A way to run the node.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeVariant {
    /// The prefix of the names of the values of the variant's runs.
    pub id: String,
    /// The options of this variant. They follow those of all variants, and may depend on x.
    #[serde(default)]
    pub options: Template,
    /// The kind of the arriving packets.
    pub packets: Packets,
    /// The pattern of arrivals. If it depends on x, no packets arrive at x = 0.
    pub pattern: Template,
    /// The time at which the pattern begins.
    #[serde(default = "from")]
    pub from: String,
    /// The time after which no packets arrive. `None` means that packets arrive until the end.
    pub until: Option<String>,
    /// The base-2 logarithm of the nanoseconds per instruction.
    #[serde(default = "shift")]
    pub shift: u8,
    /// Options for the compiler, such as `-DPBUF_POOL_SIZE=128`. Different options give a separate
    /// ELF file.
    #[serde(default)]
    pub build: String,
    /// Further clients, in addition to those of all variants. Their answers are not measured.
    pub crowd: Option<Crowd>,
    /// Whether to count the instructions of interrupts and of spans. A run then takes twice as long
    /// on the host.
    #[serde(default)]
    pub profile: bool,
    /// Names for the system file, which replace or extend those of all variants.
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

/// The default is shortly before the first window, so that this window gets as many packets as the
/// others.
fn from() -> String {
    "900ms".to_owned()
}

fn yes() -> bool {
    true
}

/// The default is 8 ns per instruction, which is 125 MIPS.
fn shift() -> u8 {
    3
}

/// A span of the node's code that a task executes, from one function to another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeSpan {
    /// The id of the span, for the names of its values.
    pub id: String,
    /// The span begins when this function is called.
    pub begin: String,
    /// The span ends when this function is called, which may be `begin` again: then the span is a
    /// turn of a loop. `None` means that the span is a call of `begin`.
    pub end: Option<String>,
    /// Functions that exclude a span: a span in which one of them is called does not count.
    #[serde(default)]
    pub unless: Vec<String>,
}

/// A client that sends requests to the node at given times.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeClient {
    /// The id of the client, for the names of its values.
    pub id: String,
    /// The request that the client sends.
    pub ask: Ask,
    /// The pattern of the times of requests.
    pub pattern: String,
    /// The time at which the pattern begins, by default that of the first window.
    #[serde(default = "first_window")]
    pub from: String,
    /// The node's port. `None` means the usual port of the request's protocol.
    pub port: Option<u16>,
    /// The time in milliseconds for which the client waits for an answer.
    #[serde(default = "patience")]
    pub patience_ms: u32,
}

fn first_window() -> String {
    FIRST_WINDOW.to_owned()
}

fn patience() -> u32 {
    1000
}

/// Clients that send requests but do not read the answers, so that the node must keep and
/// retransmit the answers. Nothing is measured of these clients.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Crowd {
    number: u8,
    ask: Ask,
    /// The node's port. `None` means the usual port of the request's protocol.
    port: Option<u16>,
    /// The pattern of the times of a client's requests. x is the number of the client, from 1 on.
    pattern: Template,
    /// The time in milliseconds after which a client closes its connection.
    patience_ms: u32,
    /// Whether the clients acknowledge the answers that they do not read. If not, they behave as if
    /// they had lost power.
    #[serde(default = "yes")]
    acknowledges: bool,
}

/// A request: an ICMP echo request, or a request of the peer's clients in the syntax of the peer's
/// plan.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Ask {
    Ping,
    Udp(u16),
    Http(String),
    Modbus { first: u16, count: u16 },
}

/// The kind of the arriving packets.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Packets {
    /// No packets: edges of a pin take the place of the card's interrupts.
    Simulated,
    /// UDP datagrams to a port, in frames of the given length in bytes.
    Udp {
        port: u16,
        #[serde(default = "length")]
        length: u16,
    },
    /// TCP SYN segments to a port, and TCP data segments to a port, from hosts that do not exist.
    Syn(u16),
    Segment(u16),
    /// ICMP echo requests, ARP requests for the node's address, and last fragments of IP datagrams.
    Echo,
    Arp,
    Fragment,
}

impl Crowd {
    /// The entries of these clients in the peer's plan. Their requests begin `delay_us`
    /// microseconds after the first window.
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
                // Let a client that acknowledges nothing read the data, so that its receive window
                // stays open.
                "reads": !self.acknowledges,
                "acknowledges": self.acknowledges,
            }))
        };
        (1..=self.number).map(of).collect()
    }
}

impl Packets {
    /// The entry `flood` of the peer's plan. `None` if the packets are simulated.
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
    /// The pattern of arrivals at a point. `None` at x = 0 if the pattern depends on x.
    pub fn pattern_at(&self, x: f64) -> Result<Option<String>, String> {
        let some = self.pattern.pattern(x, CLOCK_HZ)?;
        some.map(|_| self.pattern.at(x)).transpose()
    }

    /// Whether the node is compiled with Weir's stages (NODE_WEIR).
    pub fn has_stages(&self) -> bool {
        self.build
            .split_whitespace()
            .any(|word| word == "-DNODE_WEIR")
    }
}

impl Node {
    /// The names for a variant's system file, with their formulas.
    pub fn system_of(&self, variant: &NodeVariant) -> BTreeMap<String, Formula> {
        let mut names = self.system.clone();
        names.extend(variant.system.clone());
        names
    }

    /// The series. A series whose id contains VARIANT is repeated for each variant.
    pub fn series(&self) -> Vec<SeriesSpec> {
        of_variants(&self.written_series, &self.names())
    }

    /// The searches. A search whose id contains VARIANT is repeated for each variant.
    pub fn searches(&self) -> Vec<SearchSpec> {
        search::of_variants(&self.search, &self.names())
    }

    fn names(&self) -> Vec<Name<'_>> {
        let names = self.variant.iter().map(|of| Name::plain(&of.id));
        names.collect()
    }
}
