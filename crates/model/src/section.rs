// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of a system file, for errors that are found after the file was read.
use std::fmt;

use miette::SourceSpan;
use toml_edit::ImDocument;

/// A section of a system file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Section {
    /// The text outside all sections, of the system with this name.
    System(String),
    /// `[cpu]`.
    Cpu,
    /// `[freertos]`.
    Freertos,
    /// The `[[source]]` with this name.
    Source(String),
    /// The `[[timer]]` with this name.
    Timer(String),
    /// The `[[receiver]]` with this name.
    Receiver(String),
    /// The `[[flow]]` with this name.
    Flow(String),
}

impl Section {
    /// The section's key in the file, and its name if there can be several.
    fn key(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::System(_) => ("name", None),
            Self::Cpu => ("cpu", None),
            Self::Freertos => ("freertos", None),
            Self::Source(name) => ("source", Some(name)),
            Self::Timer(name) => ("timer", Some(name)),
            Self::Receiver(name) => ("receiver", Some(name)),
            Self::Flow(name) => ("flow", Some(name)),
        }
    }

    /// The place of the section in `text`: its name if it has one, otherwise its first line. `None`
    /// if the text does not contain the section.
    #[must_use]
    pub fn place_in(&self, text: &str) -> Option<SourceSpan> {
        let document = ImDocument::parse(text).ok()?;
        let (key, name) = self.key();
        let item = document.get(key)?;
        let Some(name) = name else {
            return first_line(text, item.span()?);
        };
        // A list of tables has two forms, `[[source]]` and `source = [{ … }, …]`, and both are
        // read.
        let tables = item.as_array_of_tables().into_iter().flatten();
        let names = tables.filter_map(|table| table.get("name")?.as_value());
        let inline = item.as_array().into_iter().flatten();
        let inline = inline.filter_map(|table| table.as_inline_table()?.get("name"));
        let mut names = names.chain(inline);
        let named = names.find(|there| there.as_str() == Some(name))?;
        first_line(text, named.span()?)
    }
}

/// The first line of a section, because a label over several lines is cut to its first.
pub(crate) fn first_line(text: &str, at: std::ops::Range<usize>) -> Option<SourceSpan> {
    let line = text.get(at.clone())?.lines().next()?;
    Some((at.start, line.len()).into())
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(name) => write!(f, "system `{name}`"),
            Self::Cpu => f.write_str("[cpu]"),
            Self::Freertos => f.write_str("[freertos]"),
            Self::Source(name) | Self::Timer(name) | Self::Receiver(name) | Self::Flow(name) => {
                write!(f, "{} `{name}`", self.key().0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(section: &Section, text: &'a str) -> Option<&'a str> {
        let at = section.place_in(text)?;
        text.get(at.offset()..at.offset() + at.len())
    }

    #[test]
    fn a_section_is_found_in_both_forms_of_a_list() {
        let tables =
            "name = 'a'\n[cpu]\nclock = '1MHz'\n[[source]]\nname = 'a'\n[[source]]\nname = 'b'\n";
        let inline = "source = [\n  { name = 'a' },\n  { name = 'b' },\n]\n[cpu]\n";
        for text in [tables, inline] {
            let source = Section::Source("b".to_owned());
            assert_eq!(found(&source, text), Some("'b'"));
            assert_eq!(
                source.place_in(text).unwrap().offset(),
                text.find("'b'").unwrap()
            );
            assert_eq!(found(&Section::Cpu, text), Some("[cpu]"));
            for missing in [
                Section::Source("c".to_owned()),
                Section::Timer("a".to_owned()),
                Section::Freertos,
            ] {
                assert_eq!(found(&missing, text), None, "{missing}");
            }
        }
        assert_eq!(found(&Section::System("a".to_owned()), tables), Some("'a'"));
        for odd in [
            "",
            "source = 1",
            "source = [1]",
            "[[source]]\nname = 1",
            "[[",
        ] {
            assert_eq!(found(&Section::Source("a".to_owned()), odd), None, "{odd}");
        }
    }
}
