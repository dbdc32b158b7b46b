// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates the reference of the system file from the definitions that read it:
//! docs/generated/system-file.md for people, docs/generated/system-file.schema.json for editors.
use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use crate::diagnostics::capitalised;
use crate::exact::{ExactRate, ExactTime};
use crate::file::leaf::{
    Amount, MeasuredCost, Name, OwnVector, StatedCost, Text, Vector, Worst, YesNo,
};
use crate::file::linux::{Cgroup, InterfaceName};
use crate::file::sections::Root;
use crate::file::value::{Form, KeySpec, Shape, Value, Word, text_of};
use crate::system::Network;
use crate::worst_rates;

/// The JSON schema of system files, which editors also use for TOML. It is of draft 2020-12,
/// indented, and ends with a line break.
#[must_use]
pub fn json_schema() -> String {
    let mut schema = Map::new();
    schema.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    schema.insert("title".to_owned(), json!("System file of Weir, schema 1"));
    if let Json::Object(root) = schema_of(&Root::SHAPE) {
        schema.extend(root);
    }
    // Serialising a tree of strings and numbers never fails.
    let mut text = serde_json::to_string_pretty(&Json::Object(schema)).unwrap_or_default();
    text.push('\n');
    text
}

fn schema_of(shape: &Shape) -> Json {
    match shape.form {
        Form::Text => json!({ "type": "string", "description": capitalised(shape.wanted) }),
        Form::YesNo => json!({ "type": "boolean" }),
        Form::Whole(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Form::Choice(words) => json!({
            "oneOf": words
                .iter()
                .map(|word| json!({ "const": word.word, "description": text_of(word.docs) }))
                .collect::<Vec<_>>()
        }),
        Form::List(of) => json!({ "type": "array", "items": schema_of(of) }),
        Form::Either(one, other) => json!({ "anyOf": [schema_of(one), schema_of(other)] }),
        Form::Section(_, entries) => {
            let mut properties = Map::new();
            for entry in entries {
                let mut value = schema_of(entry.shape);
                if let Json::Object(fields) = &mut value {
                    fields.insert("description".to_owned(), json!(description(entry)));
                }
                properties.insert(entry.key.to_owned(), value);
            }
            let required: Vec<&str> = entries
                .iter()
                .filter(|entry| entry.required)
                .map(|entry| entry.key)
                .collect();
            json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            })
        }
    }
}

fn description(entry: &KeySpec) -> String {
    let text = text_of(entry.docs);
    if entry.required {
        text
    } else {
        format!("{text} Default: {}.", entry.default)
    }
}

const INTRODUCTION: &str = "\
<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->
<!-- Written by crates/model/src/reference.rs from the definitions that read the file. -->
# The system file

One TOML file describes a system: its processor, what can interrupt, which limits hold, and the tasks that must meet their deadlines. `weir check` says whether they
do. [examples/](../../examples) has whole files; [motor-controller](../../examples/motor-controller/system.toml) is a good start. An editor that knows JSON schemas completes
and checks the file with [system-file.schema.json](system-file.schema.json).

A key that this page does not know is an error, and so are keys that contradict each other. A demand beyond the processor, a WCET above its period or a deadline
that cannot be met is not: those are what `weir check` is for.

**Roundings go to the safe side.** Cycles are whole numbers and exact. Other times are rounded *up* where they are costs, jitter or blocking, and *down* where they are
periods, interarrival times, deadlines or moderation. The interval of a limit or of a shared timer is rounded up to the timer's ticks, or to what a rate in silicon makes, so a limit is never above the rate
that was asked for; what comes out must lie between the source's `expected` and `tolerated`.
";

/// The text of docs/generated/system-file.md.
#[must_use]
pub fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut titles = Vec::new();
    section(&mut page, &mut titles, "The file", &Root::SHAPE);
    values(&mut page);
    page
}

/// Writes a section and the sections inside it, each only once.
fn section(page: &mut String, titles: &mut Vec<&'static str>, title: &str, shape: &Shape) {
    let Form::Section(about, entries) = shape.form else {
        return;
    };
    if titles.contains(&shape.name) {
        return;
    }
    titles.push(shape.name);
    line(page, &format!("\n## {title}\n\n{}\n", text_of(about)));
    line(page, "| key | value | without it | meaning | example |");
    line(page, "|---|---|---|---|---|");
    for entry in entries {
        let example = if entry.example.is_empty() {
            String::new()
        } else {
            code(&format!("{} = {}", entry.key, entry.example))
        };
        let without = if entry.required {
            "required".to_owned()
        } else {
            quoted(entry.default)
        };
        line(
            page,
            &format!(
                "| `{}` | {} | {} | {} | {} |",
                entry.key,
                kind(entry.shape),
                cell(&without),
                cell(&text_of(entry.docs)),
                example
            ),
        );
    }
    for entry in entries {
        if let Form::Choice(words) = entry.shape.form {
            choice(page, titles, entry, words);
        }
    }
    for entry in entries {
        for inner in sections_in(entry.shape) {
            section(page, titles, &code(inner.name), inner);
        }
    }
}

/// Writes the words of a choice, only once.
fn choice(page: &mut String, titles: &mut Vec<&'static str>, entry: &KeySpec, words: &[Word]) {
    if titles.contains(&entry.shape.name) {
        return;
    }
    titles.push(entry.shape.name);
    line(page, &format!("\n`{}` is one of\n", entry.key));
    for word in words {
        line(
            page,
            &format!("- `\"{}\"`: {}", word.word, text_of(word.docs)),
        );
    }
}

/// The sections inside a value, except those of costs and vectors, which are explained with the
/// values.
fn sections_in(shape: &Shape) -> Vec<&Shape> {
    match &shape.form {
        Form::Section(..) => vec![shape],
        Form::List(of) => sections_in(of),
        _ => Vec::new(),
    }
}

fn kind(shape: &Shape) -> String {
    match shape.form {
        Form::Whole(least, most) if most > 1 << 40 => format!("whole number, {least} or more"),
        Form::Whole(least, most) if least == most => format!("`{least}`"),
        Form::Whole(least, most) => format!("whole number, {least} to {most}"),
        Form::List(of) => match of.form {
            Form::Section(..) => format!("{} tables", code(of.name)),
            _ => format!("array of {}", kind(of)),
        },
        Form::Section(..) => format!("table {}", code(shape.name)),
        Form::Choice(words) => {
            let words: Vec<String> = words
                .iter()
                .map(|word| format!("`\"{}\"`", word.word))
                .collect();
            words.join(", ")
        }
        Form::Text | Form::YesNo | Form::Either(..) => shape.name.to_owned(),
    }
}

fn values(page: &mut String) {
    line(page, "\n## Values\n");
    line(page, "| value | is |");
    line(page, "|---|---|");
    let shapes = [
        Name::SHAPE,
        Text::SHAPE,
        ExactRate::SHAPE,
        Worst::SHAPE,
        ExactTime::SHAPE,
        Amount::SHAPE,
        StatedCost::SHAPE,
        Vector::SHAPE,
        Network::SHAPE,
        InterfaceName::SHAPE,
        Cgroup::SHAPE,
        YesNo::SHAPE,
    ];
    for shape in &shapes {
        line(
            page,
            &format!("| {} | {} |", shape.name, cell(&quoted(shape.wanted))),
        );
    }
    line(
        page,
        "\nQuantities carry their unit and stand in quotes: `Hz`, `kHz`, `MHz`; `cycles`, `ns`, `us`, `ms`, `s`. They have at most 18 digits and are positive; only \
         an amount of time, which is what costs and jitter are, may be `\"0 cycles\"`. A cost that is a table and a vector that is a table have these keys:",
    );
    let mut titles = Vec::new();
    for (title, shape) in [
        ("A cost", MeasuredCost::SHAPE),
        ("A vector without a board", OwnVector::SHAPE),
    ] {
        section(page, &mut titles, title, &shape);
    }
    line(page, "\n## Sources that can be named as worst rate\n");
    line(
        page,
        "`worst = \"NAME\"` takes the rate of a common source from regehr2005, Table 1 ([data](../../crates/model/data/worst-rates.toml)).\n",
    );
    line(page, "| name | at most | why |");
    line(page, "|---|---|---|");
    for rate in worst_rates::all() {
        line(
            page,
            &format!("| `{}` | {:.0} Hz | {} |", rate.id, rate.hertz(), rate.why),
        );
    }
}

fn line(page: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "{text}");
}

fn code(text: &str) -> String {
    format!("`{}`", cell(text))
}

/// Marks each quoted text as code.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split('"').enumerate() {
        if index > 0 {
            out.push_str(if index % 2 == 1 { "`\"" } else { "\"`" });
        }
        out.push_str(part);
    }
    out
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use toml_edit::{DocumentMut, Item};

    use super::*;

    /// Checks that the examples of the reference are valid.
    fn check(of: &str, item: &Item, shape: &Shape) {
        match shape.form {
            Form::Text => assert!(item.is_str(), "{of}"),
            Form::YesNo => assert!(item.is_bool(), "{of}"),
            Form::Whole(least, most) => {
                let number = item
                    .as_integer()
                    .and_then(|number| u64::try_from(number).ok());
                assert!(
                    number.is_some_and(|number| (least..=most).contains(&number)),
                    "{of}"
                );
            }
            Form::Choice(words) => {
                assert!(
                    words.iter().any(|word| item.as_str() == Some(word.word)),
                    "{of}"
                );
            }
            Form::List(of_list) => {
                for value in item.as_array().into_iter().flatten() {
                    check(of, &Item::Value(value.clone()), of_list);
                }
            }
            Form::Either(one, other) => {
                check(of, item, if item.is_str() { one } else { other });
            }
            Form::Section(_, entries) => {
                for (key, item) in item.as_table_like().expect(of).iter() {
                    let entry = entries.iter().find(|entry| entry.key == key);
                    check(of, item, entry.expect(of).shape);
                }
            }
        }
    }

    fn walk(shape: &Shape) {
        match shape.form {
            Form::Section(_, entries) => {
                for entry in entries {
                    assert!(!text_of(entry.docs).is_empty(), "{}", entry.key);
                    assert_eq!(entry.required, entry.default.is_empty(), "{}", entry.key);
                    if !entry.example.is_empty() {
                        let text = format!("{} = {}", entry.key, entry.example);
                        let document: DocumentMut = text.parse().expect(&text);
                        check(&text, &document[entry.key], entry.shape);
                    }
                    walk(entry.shape);
                }
            }
            Form::List(of) => walk(of),
            Form::Either(one, other) => {
                walk(one);
                walk(other);
            }
            Form::Text | Form::YesNo | Form::Whole(..) | Form::Choice(_) => {}
        }
    }

    #[test]
    fn every_key_is_explained_and_its_example_is_of_its_kind() {
        walk(&Root::SHAPE);
    }
}
