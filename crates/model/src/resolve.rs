// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns the text's values into a system: names become indices, quantities become cycles, limits
//! become ticks, and every event gets its cost.
//!
//! All parts of the file are examined, so that its errors are reported together. A function that
//! returns `None` has reported why.
mod allocate;
mod band;
mod costs;
mod cpu;
mod freertos;
mod groups;
mod hardware;
mod levels;
mod limit_keys;
mod limits;
mod linux;
mod processor;
mod receivers;
mod silicon;
mod sources;
mod timers;
mod units;
mod wish;

use std::collections::HashMap;

pub use hardware::{Hardware, HardwareChannel, LimiterShape, TickRange, with_hardware};
pub(crate) use receivers::check_rates;

use crate::System;
use crate::diagnostics::{Problem, Problems, did_you_mean};
use crate::file::leaf::Name;
use crate::file::sections::Root;
use crate::file::value::KeyValue;
use crate::freertos::FRAME_UNITS;

/// The system that `root` describes. Returns `None`, and reports at least one problem, if it
/// describes none.
pub(crate) fn system(
    root: &Root,
    stem: &str,
    sha256: String,
    problems: &mut Problems<'_>,
) -> Option<System> {
    let (sources, receivers) = names(root, problems);
    let links = receivers::links(root, &sources, &receivers, problems);
    let name = root.name.optional();
    let processor = cpu::resolve(root.cpu.get()?, root, problems)?;
    let receivers = receivers::receivers(root, &links, &processor, problems);
    let flows = receivers::flows(root, links, &processor, problems);
    let silicon = silicon::resolve(root, problems);
    let linux = linux::resolve(root, &processor, problems);
    let deadlines = freertos::deadlines(receivers.as_deref(), flows.as_deref());
    let freertos = freertos::resolve(root, &processor, &deadlines, problems);
    let (sources, timers) = sources::resolve(root, &processor, silicon.as_ref(), problems)?;
    let mut system = System {
        name: name?.map_or_else(|| stem.to_owned(), |text| text.0),
        sha256,
        cpu: processor.cpu,
        silicon: silicon?.of,
        sources,
        timers,
        receivers: receivers?,
        flows: flows?,
        linux: linux?,
        freertos: freertos?,
    };
    if let Some(card) = system.card().filter(|_| system.freertos.is_some()) {
        system.sources[card].packet_units = FRAME_UNITS;
    }
    Some(system)
}

/// The indices of sources or receivers by name.
type Names<'a> = HashMap<&'a str, usize>;

/// Collects the names of sources and receivers. Reports names that are used twice, including those
/// of timers and flows.
fn names<'a>(root: &'a Root, problems: &mut Problems<'_>) -> (Names<'a>, Names<'a>) {
    let sources = unique(
        "sources",
        root.source.elements().iter().map(|s| &s.name),
        problems,
    );
    let receivers = unique(
        "receivers",
        root.receiver.elements().iter().map(|r| &r.name),
        problems,
    );
    unique(
        "timers",
        root.timer.elements().iter().map(|t| &t.name),
        problems,
    );
    unique(
        "flows",
        root.flow.elements().iter().map(|f| &f.name),
        problems,
    );
    (sources, receivers)
}

fn unique<'a>(
    what: &str,
    names: impl Iterator<Item = &'a KeyValue<Name>>,
    problems: &mut Problems<'_>,
) -> Names<'a> {
    let mut first: HashMap<&str, (usize, miette::SourceSpan)> = HashMap::new();
    for (index, key) in names.enumerate() {
        let Some(Name(name)) = key.get() else {
            continue;
        };
        if let Some(&(_, before)) = first.get(name.as_str()) {
            problems.add(
                Problem::new(
                    format!("two {what} are called `{name}`"),
                    key.at,
                    "again here",
                )
                .and_at(before, "first here")
                .help("give one of them another name"),
            );
        } else {
            first.insert(name, (index, key.at));
        }
    }
    first
        .into_iter()
        .map(|(name, (index, _))| (name, index))
        .collect()
}

/// The index that `key` refers to; `None` if the name does not exist, which is reported.
fn refer(
    key: &KeyValue<Name>,
    what: &str,
    plural: &str,
    names: &Names<'_>,
    problems: &mut Problems<'_>,
) -> Option<usize> {
    let Name(name) = key.get()?;
    let found = names.get(name.as_str()).copied();
    if found.is_none() {
        let mut known: Vec<&str> = names.keys().copied().collect();
        known.sort_unstable();
        problems.report(
            format!("there is no {what} `{name}`"),
            key.at,
            "unknown name",
            did_you_mean(name, plural, &known),
        );
    }
    found
}
