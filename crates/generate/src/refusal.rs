// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a system cannot be generated: every reason at once, each with what would be right.

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
}

/// One thing that the chip or its port does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("{place}: {what}")]
#[diagnostic(help("{right}"))]
pub struct RefusalReason {
    /// Where in the system: ``source `encoder` ``.
    pub place: String,
    /// What is wrong there.
    pub what: String,
    /// What would be right.
    pub right: String,
}
