// SPDX-License-Identifier: MIT OR Apache-2.0
//! The errors of a system file. Each points at its place in the text and says what would be right.
use std::fmt;
use std::io;
use std::path::PathBuf;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode, SourceSpan};

use crate::section::first_line;

/// The most errors that are shown; further errors are only counted. A file with more errors is
/// probably not a system file.
const MOST_SHOWN: usize = 50;

/// The label at a key that its section does not have.
pub(crate) const UNKNOWN_KEY: &str = "unknown key";

/// One error of a system file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    message: String,
    help: Option<String>,
    labels: Vec<(SourceSpan, String)>,
}

impl Problem {
    /// Makes an error at the place `at`, which is marked with `label`.
    pub(crate) fn new(
        message: impl Into<String>,
        at: SourceSpan,
        label: impl Into<String>,
    ) -> Self {
        Self {
            message: message.into(),
            help: None,
            labels: vec![(at, label.into())],
        }
    }

    /// Adds a help text that says what would be right.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a second place that is involved in the error.
    #[must_use]
    pub(crate) fn and_at(mut self, at: SourceSpan, label: impl Into<String>) -> Self {
        self.labels.push((at, label.into()));
        self
    }

    /// Whether the error is a key that its section does not have.
    #[must_use]
    pub fn is_unknown_key(&self) -> bool {
        self.labels.iter().any(|(_, label)| label == UNKNOWN_KEY)
    }

    /// The message that says what is wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The help text that says what would be right; `None` if there is none.
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The places of the error, in bytes of the text. The main place comes first, then other places
    /// that are involved.
    pub fn spans(&self) -> impl Iterator<Item = SourceSpan> + '_ {
        self.labels.iter().map(|label| label.0)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().enumerate().map(
            |(index, (at, label))| {
                if index == 0 {
                    LabeledSpan::new_primary_with_span(Some(label.clone()), *at)
                } else {
                    LabeledSpan::new_with_span(Some(label.clone()), *at)
                }
            },
        )))
    }
}

/// The errors of a system file, in the order of their places. This is a [`Diagnostic`] with the
/// file's text. A single error is shown directly, and several are shown as related errors.
#[derive(Debug)]
pub struct Diagnostics {
    source: NamedSource<String>,
    problems: Vec<Problem>,
    hidden: usize,
}

impl Diagnostics {
    /// All errors, at least one, in the order of their places.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn single(&self) -> Option<&Problem> {
        match self.problems.as_slice() {
            [only] if self.hidden == 0 => Some(only),
            _ => None,
        }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(only) = self.single() {
            return only.fmt(f);
        }
        let all = self.problems.len().saturating_add(self.hidden);
        write!(f, "{} has {all} errors", self.source.name())?;
        if self.hidden > 0 {
            write!(f, "; these are the first {}", self.problems.len())?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

impl Diagnostic for Diagnostics {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Diagnostic::help(self.single()?)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.single()?.labels()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.single().is_some() {
            return None;
        }
        Some(Box::new(
            self.problems
                .iter()
                .map(|problem| problem as &dyn Diagnostic),
        ))
    }
}

/// Collects errors while a file is read.
#[derive(Debug)]
pub(crate) struct Problems<'a> {
    text: &'a str,
    found: Vec<Problem>,
}

impl<'a> Problems<'a> {
    /// Makes an empty collection for this text.
    pub fn of(text: &'a str) -> Self {
        Self {
            text,
            found: Vec::new(),
        }
    }

    /// Adds an error. A label over several lines is cut to the first line, where its section
    /// begins.
    pub fn add(&mut self, mut problem: Problem) {
        for (at, _) in &mut problem.labels {
            let begin = at.offset().min(self.text.len());
            let end = begin.saturating_add(at.len()).min(self.text.len());
            *at = first_line(self.text, begin..end).unwrap_or_else(|| (begin, 0).into());
        }
        self.found.push(problem);
    }

    /// Adds an error with one place.
    pub fn report(
        &mut self,
        message: impl Into<String>,
        at: SourceSpan,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add(Problem::new(message, at, label).help(help));
    }

    /// Does the same as [`Self::report`], and returns `None` for the value that cannot be read.
    pub fn refuse<T>(
        &mut self,
        message: impl Into<String>,
        at: SourceSpan,
        label: impl Into<String>,
        help: impl Into<String>,
    ) -> Option<T> {
        self.refuse_with(Problem::new(message, at, label).help(help))
    }

    /// Does the same as [`Self::add`], and returns `None` for the value that cannot be read.
    pub fn refuse_with<T>(&mut self, problem: Problem) -> Option<T> {
        self.add(problem);
        None
    }

    /// Whether no error has been found.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the errors in the order of the text. `name` is the name of the file.
    pub fn into_diagnostics(mut self, name: &str) -> Diagnostics {
        self.found
            .sort_by_key(|problem| problem.spans().next().map_or(0, |at| at.offset()));
        let hidden = self.found.len().saturating_sub(MOST_SHOWN);
        self.found.truncate(MOST_SHOWN);
        Diagnostics {
            source: NamedSource::new(name, self.text.to_owned()).with_language("toml"),
            problems: self.found,
            hidden,
        }
    }
}

/// The reason why a system file was not loaded.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The reason from the operating system. It is part of the message, so it is not also
        /// returned as the error's source, which would show it twice.
        cause: io::Error,
    },
    /// The file is too large for a system file, so it was not read.
    #[error("{} is larger than {most} bytes, which no system file needs", path.display())]
    #[diagnostic(help(
        "is it the file you meant? A system file is TOML and begins with `schema = 1`"
    ))]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
        /// The largest number of bytes that is read.
        most: u64,
    },
    /// The file is not UTF-8 text.
    #[error("{} is not text: byte {offset} (line {line}) is not UTF-8", path.display())]
    #[diagnostic(help("a system file is TOML, which is UTF-8 text, and begins with `schema = 1`"))]
    NotText {
        /// The path of the file.
        path: PathBuf,
        /// The offset in bytes of the first byte that is wrong, counted from 0.
        offset: usize,
        /// The line of that byte, counted from 1.
        line: usize,
    },
    /// The text does not describe a valid system.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Invalid(#[from] Diagnostics),
}

/// The name of `known` that `written` probably means; `None` if no name is similar.
pub(crate) fn nearest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A name counts as similar with at most one wrong letter in three, or two swapped letters.
    let most = written.chars().count() / 3;
    known
        .into_iter()
        .map(|name| {
            let distance = strsim::damerau_levenshtein(
                &written.to_ascii_lowercase(),
                &name.to_ascii_lowercase(),
            );
            (distance, name)
        })
        .filter(|&(distance, _)| distance <= most)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// The help "did you mean `x`? The … are `x`, `y`" for a name that does not exist. `known` are the
/// names that exist.
#[must_use]
pub fn did_you_mean(written: &str, what: &str, known: &[&str]) -> String {
    // A longer list would not help the reader.
    const MOST_LISTED: usize = 40;
    let list = match known {
        [] => format!("there are no {what}"),
        [only] => format!("the only one is `{only}`"),
        _ => {
            let shown: Vec<String> = known
                .iter()
                .take(MOST_LISTED)
                .map(|name| format!("`{name}`"))
                .collect();
            let more = known.len().saturating_sub(MOST_LISTED);
            let rest = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            format!("the {what} are {}{rest}", shown.join(", "))
        }
    };
    match nearest(written, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`? {}", capitalised(&list)),
        None => list,
    }
}

/// The text with its first letter in upper case.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
