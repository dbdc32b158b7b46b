// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run tells whoever looks at its terminal, or at the journal of its service.
use std::collections::HashSet;
use std::io::Write as _;

use serde_json::{Value, json};

/// Tells it, in words or as one JSON object a line.
#[derive(Debug)]
pub struct Said {
    json: bool,
    lines: HashSet<String>,
}

impl Said {
    /// As JSON on the standard output; else in words, of which results are on the standard output and all others on that for errors.
    #[must_use]
    pub fn new(json: bool) -> Self {
        Self {
            json,
            lines: HashSet::new(),
        }
    }

    /// Something that somebody should know.
    pub fn line(&self, text: &str) {
        self.event("note", text, json!({}));
    }

    /// The same, of which programs are told more: `event` is its name, and the object `more` has its further members.
    pub fn event(&self, event: &str, text: &str, mut more: Value) {
        // That nobody reads any longer is no reason to end.
        let _ = if self.json {
            more["event"] = event.into();
            more["text"] = text.into();
            writeln!(std::io::stdout(), "{more}")
        } else {
            writeln!(std::io::stderr(), "weir linux: {text}")
        };
    }

    /// The same, but only once.
    pub fn once(&mut self, text: &str) {
        if !self.lines.contains(text) {
            self.line(text);
            self.lines.insert(text.to_owned());
        }
    }

    /// A step of the run: `text` in words, or an object that has `event` as its name and the members of `more`.
    pub fn step(&self, event: &str, text: &str, mut more: Value) {
        let _ = if self.json {
            more["event"] = event.into();
            writeln!(std::io::stdout(), "{more}")
        } else {
            writeln!(std::io::stdout(), "{text}")
        };
    }
}
