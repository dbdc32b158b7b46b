// SPDX-License-Identifier: GPL-3.0-or-later
//! Writes the ledger as a page in Markdown.
use std::fmt::Write;

use super::Ledger;

/// The text of the page. `is_stale` tells whether the inputs of an entry have changed since its
/// run.
#[must_use]
pub fn page(ledger: &Ledger, is_stale: impl Fn(&super::Entry) -> bool) -> String {
    let mut text = "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n\
         # What was last seen of each experiment\n\n\
         Written by `make bench`; who runs it commits this page with ledger.json. *Stale* means that,\n\
         when the page was written, something had changed since that can change the result: firmware,\n\
         programs, costs, the experiment's file. `weir-lab bench --stale --list` says what is stale now.\n\n\
         | experiment | form | seen | with | met | missed | |\n|---|---|---|---|---|---|---|\n"
        .to_owned();
    for entry in &ledger.entries {
        let missed: Vec<&str> = entry.missed.iter().map(String::as_str).collect();
        let stale = if is_stale(entry) { "stale" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {stale} |",
            entry.name,
            entry.form,
            entry.date,
            entry.tools.join(", "),
            entry.met,
            missed.join(", "),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Entry, Form};

    #[test]
    fn what_is_stale_says_so() {
        let entry = |name: &str, inputs: &str| Entry {
            name: name.to_owned(),
            form: Form::Short,
            inputs: inputs.to_owned(),
            date: "2026-11-29".to_owned(),
            tools: vec!["avr-gcc 5.4.0".to_owned()],
            seconds: 3,
            met: 2,
            missed: ["x.y".to_owned()].into(),
        };
        let ledger = Ledger {
            entries: vec![entry("a/b", "old"), entry("a/c", "new")],
        };
        let text = page(&ledger, |entry| entry.inputs == "old");
        assert!(
            text.ends_with(
                "| a/b | short | 2026-11-29 | avr-gcc 5.4.0 | 2 | x.y | stale |\n\
                 | a/c | short | 2026-11-29 | avr-gcc 5.4.0 | 2 | x.y |  |\n"
            ),
            "{text}"
        );
    }
}
