// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--observed`: compares observations of handlers with the system file (docs/check.md, "What was
//! observed").
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use miette::miette;
use serde::{Deserialize, Serialize};
use weir_analysis::Analysis;
use weir_analysis::check::longest_runs;
use weir_model::System;
use weir_report::Emphasis;
use weir_report::terminal::wrapped;

use crate::input;
use crate::tables::Format;
use crate::words::{list, plural};

/// The observations: the keys of `weir run --json` that are compared, and `work`.
#[derive(Debug, Deserialize)]
struct RunRecord {
    /// The interrupts that were taken, by vector.
    #[serde(default)]
    vectors: Vec<Vector>,
    /// The most units of work that one interrupt did, by the name of its source.
    #[serde(default)]
    work: BTreeMap<String, u64>,
}

#[derive(Debug, Deserialize)]
struct Vector {
    name: String,
    taken: u64,
    longest_cycles: u64,
}

/// A file of observations.
#[derive(Debug)]
pub(super) struct ObservationFile {
    path: PathBuf,
    run: RunRecord,
}

/// Reads a file of observations.
///
/// # Errors
/// Fails if the file cannot be read or contains no observations.
pub(super) fn read(path: &Path) -> miette::Result<ObservationFile> {
    const HELP: &str = "`weir run --json` prints one; by hand it is for example {\"work\": {\"uart\": 4}}, the most units of work that one interrupt of a source did";
    let text = input::read(path)
        .map_err(|error| miette!(help = HELP, "cannot read {}: {error}", path.display()))?;
    let run: RunRecord = serde_json::from_slice(&text).map_err(|error| {
        miette!(
            help = HELP,
            "{} is not the JSON result of a run: {error}",
            path.display()
        )
    })?;
    if run.vectors.is_empty() && run.work.is_empty() {
        return Err(miette!(
            help = HELP,
            "{} says nothing of any interrupt: it has neither `vectors` nor `work`",
            path.display()
        ));
    }
    Ok(ObservationFile {
        path: path.to_owned(),
        run,
    })
}

/// The result of the comparison, which is the key `observed` of `weir check --json`.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    /// Path of the file of observations.
    file: String,
    /// The number of interrupts and sources in both the observations and the system file.
    compared: usize,
    /// The observations that exceed the values in the system file.
    pub exceeded: Vec<Excess>,
    /// The interrupts and sources in the observations that are not in the system file.
    unknown: Vec<String>,
}

/// An observation that exceeds the value in the system file.
#[derive(Debug, Serialize)]
pub(super) struct Excess {
    /// Name of the source or shared timer.
    name: String,
    /// The vector of the interrupt. `None` for units of work.
    vector: Option<String>,
    /// Unit: `cycles` of one interrupt, or `units` of work.
    what: &'static str,
    /// The observed value.
    seen: u64,
    /// The greatest value that the system file allows.
    stated: u64,
}

/// Compares the observations with `system`.
pub(super) fn judge(system: &System, analysis: &Analysis, seen: ObservationFile) -> Comparison {
    let mut observed = Comparison {
        file: seen.path.display().to_string(),
        compared: 0,
        exceeded: Vec::new(),
        unknown: Vec::new(),
    };
    let longest = longest_runs(system, analysis);
    for vector in seen.run.vectors.into_iter().filter(|of| of.taken > 0) {
        match longest.iter().find(|run| run.vector == vector.name) {
            Some(run) => observed.compare(Excess {
                name: run.name.clone(),
                vector: Some(vector.name),
                what: "cycles",
                seen: vector.longest_cycles,
                stated: run.cycles,
            }),
            None => observed.unknown.push(vector.name),
        }
    }
    for (name, units) in seen.run.work {
        match system.sources.iter().find(|source| source.name == name) {
            // If the file states no max_work, no observation exceeds it, and nothing is proven.
            Some(source) => observed.compare(Excess {
                name,
                vector: None,
                what: "units",
                seen: units,
                stated: source.max_work.unwrap_or(u64::MAX),
            }),
            None => observed.unknown.push(name),
        }
    }
    observed
}

impl Comparison {
    fn compare(&mut self, one: Excess) {
        self.compared += 1;
        if one.seen > one.stated {
            self.exceeded.push(one);
        }
    }

    /// Returns a line for each observation above its limit, or a single line if there is none.
    pub fn text(&self, format: Format) -> String {
        let word = if self.exceeded.is_empty() {
            "kept"
        } else {
            "exceeded"
        };
        let mut lines = if self.exceeded.is_empty() {
            let of = plural(self.compared, "interrupt or source");
            vec![format!(
                "kept: {of} of {} did no more than the file states",
                self.file
            )]
        } else {
            self.exceeded.iter().map(Excess::text).collect()
        };
        if !self.unknown.is_empty() {
            lines.push(format!(
                "the file knows nothing of {}, which {} saw",
                list(&self.unknown),
                self.file
            ));
        }
        let text: Vec<String> = lines.iter().map(|line| wrapped(line, "", "  ")).collect();
        let emphasis = if self.exceeded.is_empty() {
            Emphasis::Good
        } else {
            Emphasis::Bad
        };
        let painted = emphasis.paint(word, format.coloured);
        text.join("\n").replacen(word, &painted, 1)
    }
}

impl Excess {
    fn text(&self) -> String {
        let Self {
            name, seen, stated, ..
        } = self;
        match &self.vector {
            Some(vector) => format!(
                "exceeded: {name} took {seen} cycles in one interrupt ({vector}), and by its handler, work and max_work at most {stated}"
            ),
            None => format!(
                "exceeded: {name} did {seen} units of work in one interrupt, and its max_work is {stated}"
            ),
        }
    }
}
