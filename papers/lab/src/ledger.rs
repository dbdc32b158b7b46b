// SPDX-License-Identifier: GPL-3.0-or-later
//! The ledger records the last run of each experiment: its date, its tools, a checksum of its
//! inputs, and the claims that it missed.
//!
//! `weir-lab bench` writes the ledger to papers/ledger.json and, as a page, to papers/LEDGER.md.
//! Both files are committed.
use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::experiment::{Checkout, ExperimentError};

mod inputs;
mod page;
mod runs;
mod work;

pub use inputs::{checksum_at, tools};
pub use page::page;
pub use runs::{Outcome, RunError, run};
pub use work::{Form, Work, all};

/// The path of the ledger, relative to the repository's root.
pub const FILE: &str = "papers/ledger.json";
/// The path of the ledger's page, relative to the repository's root.
pub const PAGE: &str = "papers/LEDGER.md";

/// The last run of each piece of work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The entries, ordered by name and form.
    pub entries: Vec<Entry>,
}

/// The record of the last run of one piece of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The experiment, such as regehr2005/fig1, or the long test, such as long/core.
    pub name: String,
    /// The form that was run.
    pub form: Form,
    /// The checksum of the inputs, from [`checksum_at`].
    pub inputs: String,
    /// The date in UTC, as in 2026-11-29.
    pub date: String,
    /// The compilers and emulators, each with its version.
    pub tools: Vec<String>,
    /// The duration of the run, in seconds.
    pub seconds: u64,
    /// The number of claims that were met.
    pub met: usize,
    /// The ids of the claims that were missed.
    pub missed: BTreeSet<String>,
}

impl Ledger {
    /// Reads the ledger. Returns an empty ledger if there is no file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a ledger.
    pub fn load(place: &Checkout) -> Result<Self, ExperimentError> {
        let path = place.path(FILE);
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(&path)
            .map_err(|cause| ExperimentError::Read { path, cause })?;
        serde_json::from_str(&text).map_err(|error| ExperimentError::Ledger {
            path: PathBuf::from(FILE),
            what: error.to_string(),
        })
    }

    /// The record of the last run of this work. `None` if it has never run.
    #[must_use]
    pub fn entry(&self, work: &Work) -> Option<&Entry> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.name == work.name && entry.form == work.form)
    }

    /// Adds the record of a run, and removes the earlier record of the same work.
    pub fn note(&mut self, entry: Entry) {
        let key = |entry: &Entry| (entry.name.clone(), entry.form);
        self.entries.retain(|other| key(other) != key(&entry));
        self.entries.push(entry);
        self.entries.sort_by_key(key);
    }

    /// The JSON text of the ledger's file.
    #[must_use]
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("names and numbers are JSON") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, form: Form, met: usize) -> Entry {
        Entry {
            name: name.to_owned(),
            form,
            inputs: "0".repeat(16),
            date: "2026-11-29".to_owned(),
            tools: vec!["avr-gcc 5.4.0".to_owned()],
            seconds: 3,
            met,
            missed: BTreeSet::from(["a".to_owned()]),
        }
    }

    #[test]
    fn a_run_takes_the_place_of_the_one_before_and_the_file_is_read_as_it_was_written() {
        let mut ledger = Ledger::default();
        ledger.note(entry("b/x", Form::Whole, 1));
        ledger.note(entry("a/x", Form::Short, 2));
        ledger.note(entry("b/x", Form::Whole, 3));
        let names: Vec<&str> = ledger.entries.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["a/x", "b/x"]);
        assert_eq!(ledger.entries[1].met, 3);
        let read: Ledger = serde_json::from_str(&ledger.to_json()).unwrap();
        assert_eq!(read, ledger);
    }
}
