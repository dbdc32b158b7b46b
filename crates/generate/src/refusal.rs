// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons why no code can be generated for a system. All are reported at once, each with its
//! place in the system file and what would be right.
use std::sync::Arc;

use miette::{NamedSource, SourceSpan};
use weir_model::Section;

/// A system for which no code can be generated.
#[derive(Debug, Clone, thiserror::Error, miette::Diagnostic)]
#[error("no code can be generated from the system `{system}` for {chip}")]
pub struct Refusal {
    /// The system's name.
    pub system: String,
    /// The chip's name.
    pub chip: String,
    /// The reasons, at least one.
    #[related]
    pub reasons: Vec<RefusalReason>,
    #[source_code]
    file: Option<Arc<NamedSource<String>>>,
}

impl Refusal {
    pub(crate) fn new(system: &str, chip: &str, reasons: Vec<RefusalReason>) -> Self {
        Self {
            system: system.to_owned(),
            chip: chip.to_owned(),
            reasons,
            file: None,
        }
    }

    /// Adds the places of the reasons in the system file called `name`, whose text is `text`.
    #[must_use]
    pub fn in_file(mut self, name: &str, text: &str) -> Self {
        for reason in &mut self.reasons {
            reason.at = reason.place.place_in(text);
        }
        let file = NamedSource::new(name, text.to_owned()).with_language("toml");
        self.file = Some(Arc::new(file));
        self
    }
}

/// A fact that the chip or its port cannot provide.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("{place}: {what}")]
#[diagnostic(help("{right}"))]
pub struct RefusalReason {
    /// The section of the system file that is refused.
    pub place: Section,
    /// The message that says what is wrong there.
    pub what: String,
    /// The message that says what would be right.
    pub right: String,
    #[label("here")]
    at: Option<SourceSpan>,
}

impl RefusalReason {
    pub(crate) fn new(place: Section, what: impl Into<String>, right: impl Into<String>) -> Self {
        Self {
            place,
            what: what.into(),
            right: right.into(),
            at: None,
        }
    }
}
