// SPDX-License-Identifier: MIT OR Apache-2.0
//! The format of a certificate (docs/certificate.md), and its parser.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::answer::Answer;

/// The version of the format that this program reads.
pub const VERSION: u64 = 2;

/// Why a text is not a certificate. Whether the claims of a certificate are right is stated by
/// [`crate::Report`].
#[derive(Debug, thiserror::Error)]
pub enum BadInput {
    /// The text is not JSON, or does not have the keys and types of a certificate.
    #[error("{place}: {what}")]
    Format {
        /// The key, such as `system.sources[2].limit.burst`, or `certificate` for the whole text.
        place: String,
        /// What is wrong, with the line and the column.
        what: String,
    },
    /// The certificate has an unsupported version.
    #[error(
        "certificate: this is version {found} of the format and this Weir reads version {VERSION}; make it anew with `weir check --json`"
    )]
    Version {
        /// The version of the certificate.
        found: u64,
    },
    /// The certificate describes an impossible system. An example is a flow of a source that does
    /// not exist.
    #[error("{place}: {what}")]
    System {
        /// The key of the wrong value.
        place: String,
        /// What is wrong there and what would be right.
        what: String,
    },
}

/// The content of a certificate: the system as a premise, and the claims about it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Certificate {
    #[serde(rename = "certificate")]
    _version: u64,
    pub(crate) system: System,
    pub(crate) verdict: Verdict,
    pub(crate) latencies: Vec<u64>,
    pub(crate) rows: Vec<Row>,
    pub(crate) flows: Vec<FlowClaim>,
}

/// The conclusion of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every deadline holds.
    Guaranteed,
    /// A deadline may be missed.
    NotGuaranteed,
    /// No deadline is missed, but a source does not state the most work of an interrupt, or there
    /// is no deadline.
    NotProven,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guaranteed => "guaranteed",
            Self::NotGuaranteed => "not guaranteed",
            Self::NotProven => "not proven",
        })
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct System {
    pub(crate) name: String,
    pub(crate) sha256: String,
    pub(crate) cpu: Cpu,
    pub(crate) sources: Vec<Source>,
    pub(crate) timers: Vec<Timer>,
    pub(crate) receivers: Vec<Receiver>,
    pub(crate) flows: Vec<Flow>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cpu {
    /// The clock, with which readers can convert to seconds. All times here are in cycles.
    pub(crate) clock_hz: u64,
    pub(crate) nesting: Nesting,
    pub(crate) tasks: Tasks,
    pub(crate) time_slice: Option<u64>,
    pub(crate) longest_instruction: u64,
    pub(crate) critical_section: u64,
    pub(crate) context_switch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Nesting {
    Flat,
    Grouped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tasks {
    Preemptive,
    Cooperative,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Level {
    pub(crate) group: u32,
    pub(crate) order: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) level: Level,
    pub(crate) handler: u64,
    pub(crate) work: u64,
    pub(crate) max_work: Option<u64>,
    /// The units of work per packet. Null means 1.
    pub(crate) packet_units: Option<u64>,
    pub(crate) queue: Option<u64>,
    pub(crate) interarrival: Option<u64>,
    pub(crate) moderation: Option<Moderation>,
    pub(crate) limit: Limit,
    pub(crate) deadline: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Moderation {
    pub(crate) absolute: u64,
    pub(crate) packet: Option<u64>,
    pub(crate) count: Option<u64>,
    /// The period of the tick that ends a device's waits. Null means that a timer of the device
    /// ends them.
    pub(crate) tick: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limit {
    pub(crate) policy: Policy,
    pub(crate) timing: Timing,
    pub(crate) place: Place,
    pub(crate) interval: u64,
    pub(crate) tick: u64,
    pub(crate) burst: u64,
    pub(crate) lag: u64,
    /// The delay K of docs/analysis.md, in cycles.
    pub(crate) delay: u64,
    pub(crate) expiry: Option<Expiry>,
    pub(crate) costs: Costs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Policy {
    Off,
    Strict,
    Paced,
    Bursty,
    Bucket,
    Poll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Timing {
    Eager,
    Lazy,
    OneShot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    Software,
    Hardware,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Expiry {
    /// A separate interrupt for this source.
    Own(Level),
    /// The interrupt of the shared timer with this index.
    Shared(usize),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Costs {
    pub(crate) request_served: u64,
    pub(crate) request_refused: u64,
    pub(crate) expiry_served: u64,
    pub(crate) expiry_empty: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timer {
    pub(crate) name: String,
    pub(crate) level: Level,
    pub(crate) period: u64,
    pub(crate) base: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Receiver {
    pub(crate) name: String,
    pub(crate) urgency: u8,
    pub(crate) period: Option<u64>,
    pub(crate) jitter: u64,
    pub(crate) wcet: u64,
    pub(crate) blocking: u64,
    pub(crate) critical_section: u64,
    pub(crate) deadline: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flow {
    pub(crate) name: String,
    pub(crate) source: usize,
    pub(crate) receiver: usize,
    pub(crate) interarrival: Option<u64>,
    pub(crate) top_half: u64,
    pub(crate) demux: u64,
    pub(crate) bottom_half: u64,
    pub(crate) queue: Option<u64>,
    /// The buffers that hold the flow's packets. Null means that no other flow uses them.
    pub(crate) buffers: Option<Buffers>,
    pub(crate) budget: Option<Budget>,
    pub(crate) deadline: Option<u64>,
}

/// The kind of buffers that a flow's packets use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Buffers {
    /// The receiver's buffers, which all flows of the receiver share.
    OfReceiver,
    /// Any buffers of the receiver's urgency.
    OfUrgency,
}

/// The packet budget of a receiver for all its flows with a budget together.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Budget {
    pub(crate) frames: u64,
    pub(crate) tick: u64,
}

/// A unit of the system: its kind, and its index in the list of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub(crate) struct Unit(pub(crate) Kind, pub(crate) usize);

impl Unit {
    pub(crate) fn is_interrupt(self) -> bool {
        matches!(self.0, Kind::Request | Kind::Expiry | Kind::Timer)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The interrupt of a source's line.
    Request,
    /// The interrupt of a source's own timer.
    Expiry,
    /// The interrupt of a shared timer.
    Timer,
    /// The receiver's own work, released periodically.
    Task,
    /// A flow's bottom half.
    BottomHalf,
    /// The receiver's own work, released by a flow's packets.
    Delivered,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) unit: Unit,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// A bounded response time, with the windows that prove it.
    Bound(Bound),
    /// The response time has no bound, because this unit has none. It is more urgent than the unit
    /// of the row, or it is the same unit.
    Starved(Unit),
    /// The response time has no bound, because the long-run demand is the whole processor.
    Overload,
    /// The analysis found no bound, and the certificate claims nothing.
    TooLong,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bound {
    pub(crate) cost: u64,
    pub(crate) curve: Vec<Steps>,
    pub(crate) blocking: u64,
    pub(crate) busy_window: u64,
    pub(crate) jobs: Vec<Job>,
    pub(crate) start_delay: u64,
    pub(crate) response: u64,
}

/// A staircase with base, step, period and jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Steps(
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) u64,
);

/// A, s and f of a job, as in docs/analysis.md.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Job(pub(crate) u64, pub(crate) u64, pub(crate) u64);

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FlowClaim {
    pub(crate) latency: Option<u64>,
    pub(crate) queue_needed: Option<u64>,
}

/// The only key that certificates and `weir check --json` have in common. The other keys are parsed
/// later.
#[derive(Deserialize)]
#[serde(expecting = "an object with the key `certificate`, as `weir check --json` prints it")]
struct Envelope<'a> {
    #[serde(borrow)]
    certificate: &'a RawValue,
}

/// Parses the certificate in `text`, which is a bare certificate or the output of `weir check
/// --json`.
pub(crate) fn read(text: &[u8]) -> Result<Certificate, BadInput> {
    read_as(text)
}

/// The description of the system in a certificate, as JSON. The other keys are ignored.
#[derive(Deserialize)]
struct Described {
    system: serde_json::Value,
}

/// Returns the description of the system in the certificate in `text`, unchanged, so that it can be
/// compared with that of a file.
///
/// # Errors
/// Fails as [`crate::verify`] does.
pub fn description(text: &[u8]) -> Result<serde_json::Value, BadInput> {
    read_as(text).map(|of: Described| of.system)
}

/// Returns the keys that `weir check --json` printed beside the certificate. `None` for a bare
/// certificate.
pub(crate) fn answer(text: &[u8]) -> Result<Option<Answer>, BadInput> {
    let outer: Envelope = parse(text)?;
    if outer.certificate.get().starts_with('{') {
        parse(text).map(Some)
    } else {
        Ok(None)
    }
}

fn read_as<T: for<'a> Deserialize<'a>>(text: &[u8]) -> Result<T, BadInput> {
    let outer: Envelope = parse(text)?;
    let inside = outer.certificate.get().as_bytes();
    // serde returns a raw value without leading spaces.
    if !inside.starts_with(b"{") {
        return certificate(text, &outer);
    }
    let inner: Envelope = parse(inside)?;
    certificate(inside, &inner)
}

fn certificate<T: for<'a> Deserialize<'a>>(
    text: &[u8],
    envelope: &Envelope,
) -> Result<T, BadInput> {
    let found: u64 = serde_json::from_str(envelope.certificate.get()).map_err(|_| {
        let shown: String = envelope.certificate.get().chars().take(40).collect();
        BadInput::Format {
            place: "certificate".to_owned(),
            what: format!(
                "`{shown}` is not a version of the format: that is a number, such as {VERSION}"
            ),
        }
    })?;
    if found == VERSION {
        parse(text)
    } else {
        Err(BadInput::Version { found })
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, BadInput> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let format = |place: String, what: String| BadInput::Format {
        place: if [".", "?"].contains(&place.as_str()) {
            "certificate".to_owned()
        } else {
            place
        },
        what,
    };
    let value = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| format(error.path().to_string(), error.inner().to_string()))?;
    json.end()
        .map_err(|error| format(".".to_owned(), error.to_string()))?;
    Ok(value)
}
