// SPDX-License-Identifier: MIT OR Apache-2.0
//! The usual arrivals of a system, and floods in the form `TARGET` or `TARGET=PATTERN`
//! (docs/simulate.md).

use std::path::Path;

use weir_arrivals::{Pattern, PatternError};
use weir_model::{Flow, Rate, System, did_you_mean};

use crate::options::{Feed, Target};

/// The arrivals in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Feeds {
    /// The feeds, ordered by source: the feed of a source comes before those of its flows.
    pub feeds: Vec<Feed>,
    /// Whether each feed is a flood, by the index of the feed.
    pub floods: Vec<bool>,
    /// The flows, and the sources without flows, that receive nothing because the system states no
    /// rate for them.
    pub silent: Vec<Target>,
}

impl Feeds {
    /// Iterates over the paths of the recordings among the feeds.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.feeds.iter().filter_map(|feed| match &feed.pattern {
            Pattern::File(recording) => Some(recording.path()),
            _ => None,
        })
    }
}

/// Why a flood cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum FloodError {
    /// No source or flow has the name.
    #[error("nothing that could be flooded is called `{name}`")]
    Unknown {
        /// The flood's name, as it was written.
        name: String,
        /// The names that exist.
        help: String,
    },
    /// A source and a flow share the name.
    #[error("`{name}` is a source and a flow")]
    Ambiguous {
        /// The flood's name, as it was written.
        name: String,
        /// The other ways to write it.
        help: String,
    },
    /// The flooded source has several flows, and the flood does not say which one its packets
    /// belong to.
    #[error(
        "the source `{name}` has {flows} flows: a flood of it has to say which flow its packets belong to"
    )]
    WhichFlow {
        /// The source.
        name: String,
        /// The number of its flows.
        flows: usize,
        /// The names of those flows.
        help: String,
    },
    /// The flood has no pattern, and the system states no worst rate.
    #[error("the system does not say how fast `{name}` can be at worst")]
    NoWorstRate {
        /// The flood, as it was written.
        name: String,
    },
    /// The flood sets a level on a source whose arrivals are packets.
    #[error(
        "`{name}` is a source of packets and cannot be flooded with a level: give a rate or another pattern"
    )]
    Level {
        /// The flood, as it was written.
        name: String,
    },
    /// The pattern is wrong, or its trace cannot be read.
    #[error("in the flood of `{name}`: {error}")]
    Pattern {
        /// The flood, as it was written.
        name: String,
        /// What is wrong.
        error: PatternError,
    },
}

impl FloodError {
    /// Returns the advice on how to correct the flood. `None` if the message says it.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unknown { help, .. }
            | Self::Ambiguous { help, .. }
            | Self::WhichFlow { help, .. } => Some(help.clone()),
            Self::NoWorstRate { name } => Some(format!(
                "state its rate, for example {name}=20kHz, or state it in the file: rate = {{ worst = \"20kHz\" }}"
            )),
            Self::Level { name } => Some(format!(
                "flood it with packets, for example {name}=poisson:20kHz"
            )),
            Self::Pattern { .. } => None,
        }
    }
}

/// What the name of a flood refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FloodName {
    Source(usize),
    Flow(usize),
    /// The source with this index, with packets of none of its flows.
    Nobody(usize),
}

/// A valid flood.
struct FloodFeed {
    to: Target,
    pattern: Pattern,
    /// Whether the flood replaces all other arrivals at its target.
    replaces: bool,
}

impl FloodFeed {
    /// # Errors
    /// Fails if the text is not a valid flood of this system.
    fn read(system: &System, text: &str) -> Result<Self, FloodError> {
        let (name, pattern) = match text.split_once('=') {
            Some((name, pattern)) => (name.trim(), Some(pattern)),
            None => (text.trim(), None),
        };
        let named = FloodName::read(system, name)?;
        let name = name.to_owned();
        let pattern = match pattern {
            Some(pattern) => match Pattern::parse(pattern, system.cpu.clock_hz) {
                Ok(pattern) => pattern,
                Err(error) => return Err(FloodError::Pattern { name, error }),
            },
            None => match named.worst_rate(system) {
                Some(rate) => periodic(rate),
                None => return Err(FloodError::NoWorstRate { name }),
            },
        };
        if matches!(pattern, Pattern::Level { .. }) && named.brings_packets(system) {
            return Err(FloodError::Level { name });
        }
        let to = match named {
            FloodName::Flow(flow) => Target::Flow(flow),
            FloodName::Nobody(source) => Target::Source(source),
            // The recording itself tells which flow each packet belongs to.
            FloodName::Source(source) if is_recording(&pattern) => Target::Source(source),
            FloodName::Source(source) => {
                let flows: Vec<(usize, &Flow)> = system.flows_of(source).collect();
                match flows[..] {
                    [] => Target::Source(source),
                    [(only, _)] => Target::Flow(only),
                    _ => return Err(which_flow(&system.sources[source].name, &flows)),
                }
            }
        };
        Ok(Self {
            to,
            pattern,
            replaces: !matches!(named, FloodName::Nobody(_)),
        })
    }

    /// Returns whether the flood replaces the arrivals at `usual`. A recording of a source contains
    /// the packets of all flows of that source.
    fn replaces(&self, system: &System, usual: Target) -> bool {
        self.replaces
            && match (self.to, usual) {
                (Target::Source(source), Target::Flow(flow)) => system.flows[flow].source == source,
                (to, usual) => to == usual,
            }
    }
}

impl FloodName {
    fn read(system: &System, name: &str) -> Result<Self, FloodError> {
        let source = |name: &str| system.sources.iter().position(|of| of.name == name);
        let flow = |name: &str| system.flows.iter().position(|of| of.name == name);
        let found = match name.split_once('.') {
            Some(("source", name)) => source(name).map(Self::Source),
            Some(("flow", name)) => flow(name).map(Self::Flow),
            Some(("nobody", name)) => source(name)
                .map(Self::Nobody)
                .filter(|named| named.brings_packets(system)),
            Some(_) => None,
            None => match (source(name), flow(name)) {
                (Some(_), Some(_)) => {
                    return Err(FloodError::Ambiguous {
                        name: name.to_owned(),
                        help: format!("write source.{name} or flow.{name}"),
                    });
                }
                (Some(source), None) => Some(Self::Source(source)),
                (None, flow) => flow.map(Self::Flow),
            },
        };
        found.ok_or_else(|| {
            let sources = system.sources.iter().map(|of| of.name.as_str());
            let flows = system.flows.iter().map(|of| of.name.as_str());
            let names: Vec<&str> = sources.chain(flows).collect();
            FloodError::Unknown {
                name: name.to_owned(),
                help: did_you_mean(name, "sources and flows", &names),
            }
        })
    }

    fn brings_packets(self, system: &System) -> bool {
        match self {
            Self::Source(source) | Self::Nobody(source) => system.brings_packets(source),
            Self::Flow(_) => true,
        }
    }

    fn worst_rate(self, system: &System) -> Option<Rate> {
        match self {
            Self::Source(source) | Self::Nobody(source) => system.sources[source].rates.worst,
            Self::Flow(flow) => {
                let flow = &system.flows[flow];
                flow.rate.or(system.sources[flow.source].rates.worst)
            }
        }
    }
}

fn is_recording(pattern: &Pattern) -> bool {
    matches!(pattern, Pattern::File(_))
}

fn which_flow(name: &str, flows: &[(usize, &Flow)]) -> FloodError {
    let names: Vec<&str> = flows.iter().map(|(_, flow)| flow.name.as_str()).collect();
    FloodError::WhichFlow {
        name: name.to_owned(),
        flows: flows.len(),
        help: format!(
            "flood one of {}; or nobody.{name}, with packets that none of them takes; or {name} with a recording, which has ports",
            names.join(", ")
        ),
    }
}

fn periodic(rate: Rate) -> Pattern {
    Pattern::Periodic {
        rate_hz: rate.hertz(),
        phase_cycles: 0,
    }
}

/// Returns the arrivals in a run of `system` with these floods.
///
/// The target of a flood is a flow, or a source without flows. If a source has a single flow, a
/// flood of the source goes to that flow. If it has several, the flood has to name one of them, or
/// be a recording, whose packets are told apart by their ports. `nobody.SOURCE` floods the source
/// with packets of no flow. If a source and a flow have the same name, write `source.NAME` or
/// `flow.NAME`. A flood without a pattern is periodic, at the worst rate that the system states.
///
/// Targets without a flood get their usual arrivals. A source without flows raises requests at its
/// expected rate. A flow gets packets at its own rate, or, if it states none and is the only flow
/// of its source, at the expected rate of the source.
///
/// # Errors
/// Returns the error of the first flood that is not valid.
pub fn feeds<T: AsRef<str>>(system: &System, floods: &[T]) -> Result<Feeds, FloodError> {
    let floods: Vec<FloodFeed> = floods
        .iter()
        .map(|text| FloodFeed::read(system, text.as_ref()))
        .collect::<Result<_, _>>()?;
    let mut feeds = Feeds {
        feeds: Vec::new(),
        floods: Vec::new(),
        silent: Vec::new(),
    };
    for (source, of) in system.sources.iter().enumerate() {
        let flows: Vec<(usize, &Flow)> = system.flows_of(source).collect();
        if flows.is_empty() {
            feeds.add_usual(system, &floods, Target::Source(source), of.rates.expected);
        }
        feeds.add_floods(&floods, Target::Source(source));
        for &(index, flow) in &flows {
            let alone = of.rates.expected.filter(|_| flows.len() == 1);
            feeds.add_usual(system, &floods, Target::Flow(index), flow.rate.or(alone));
            feeds.add_floods(&floods, Target::Flow(index));
        }
    }
    Ok(feeds)
}

impl Feeds {
    fn add_usual(&mut self, system: &System, floods: &[FloodFeed], to: Target, rate: Option<Rate>) {
        if floods.iter().any(|flood| flood.replaces(system, to)) {
            return;
        }
        match rate {
            Some(rate) => self.add(to, periodic(rate), false),
            None => self.silent.push(to),
        }
    }

    fn add_floods(&mut self, floods: &[FloodFeed], to: Target) {
        for flood in floods.iter().filter(|flood| flood.to == to) {
            self.add(to, flood.pattern.clone(), true);
        }
    }

    fn add(&mut self, to: Target, pattern: Pattern, is_flood: bool) {
        self.feeds.push(Feed { to, pattern });
        self.floods.push(is_flood);
    }

    /// Returns whether a flow is flooded, by a flood of its own or by a recording of its source.
    #[must_use]
    pub fn is_flooded(&self, system: &System, flow: usize) -> bool {
        let floods = self.feeds.iter().zip(&self.floods);
        floods
            .filter(|(_, is_flood)| **is_flood)
            .any(|(feed, _)| match feed.to {
                Target::Flow(other) => other == flow,
                Target::Source(source) => {
                    system.flows[flow].source == source && is_recording(&feed.pattern)
                }
            })
    }
}
