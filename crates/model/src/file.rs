// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system file as it is written: sections, keys and their values, each with its place in the
//! text.
pub(crate) mod freertos;
pub(crate) mod leaf;
pub(crate) mod linux;
pub(crate) mod sections;
pub(crate) mod value;
pub(crate) mod words;

use miette::SourceSpan;
use toml_edit::{ImDocument, Item};

use self::sections::Root;
use self::value::{Value, printable};
use crate::diagnostics::Problems;

/// The version of the format that this program reads.
pub(crate) const SCHEMA: i64 = 1;

/// Reads the text. Returns `None`, and reports at least one problem, if it is not TOML or has
/// another schema. Wrong keys are reported and marked as bad.
pub(crate) fn read(text: &str, problems: &mut Problems<'_>) -> Option<Root> {
    let document = match ImDocument::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let at = error.span().unwrap_or(0..0);
            let message = printable_lines(error.message());
            let help = if message.starts_with("duplicate key") {
                "a table has each key once: leave one of the two out"
            } else if message.starts_with("number too ") {
                "whole numbers of TOML go from -9223372036854775808 to 9223372036854775807"
            } else {
                "a line is `key = value`, `[section]` or `[[section]]`; texts and quantities stand in quotes (https://toml.io)"
            };
            return problems.refuse(
                format!("this is not TOML: {message}"),
                at.into(),
                "here",
                help,
            );
        }
    };
    // The schema is checked first, because the keys of another schema are unknown.
    schema(text, document.as_item(), problems)?;
    Root::read(document.as_item(), (0, text.len()).into(), problems)
}

fn printable_lines(message: &str) -> String {
    let lines: Vec<String> = message.lines().map(printable).collect();
    lines.join("; ")
}

fn schema(text: &str, document: &Item, problems: &mut Problems<'_>) -> Option<()> {
    const HELP: &str = "the first line of a system file is `schema = 1`";
    let Some(schema) = document.get("schema") else {
        let message = if text.trim().is_empty() {
            "the file is empty"
        } else {
            "the file does not state its schema"
        };
        return problems.refuse(message, (0, text.len()).into(), "it begins here", HELP);
    };
    if schema.as_integer() == Some(SCHEMA) {
        return Some(());
    }
    let at = schema.span().map_or((0, 0).into(), SourceSpan::from);
    let found = schema.as_integer().map_or_else(
        || "something else".to_owned(),
        |schema| format!("schema {schema}"),
    );
    problems.refuse(
        format!("this Weir reads schema {SCHEMA}, and the file has {found}"),
        at,
        "unknown schema",
        "write `schema = 1`, or take the Weir that the file was written for",
    )
}
