// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages that point at a place in an experiment's file.
use std::ops::Range;

use miette::NamedSource;
use serde::de::{DeserializeOwned, DeserializeSeed};
use toml::Spanned;

use super::error::{ExperimentError, FileError};

/// The text of a file, into which messages point.
pub(super) struct Pointer<'a> {
    /// The name of the file.
    pub name: &'a str,
    pub text: &'a str,
}

impl<'a> Pointer<'a> {
    /// Returns an error with the message `what` that points at `at`. The help says what would be
    /// correct.
    pub fn wrong<T>(
        &self,
        at: &Spanned<T>,
        what: String,
        help: impl Into<String>,
    ) -> ExperimentError {
        self.error(what, Some(help.into()), Some(at.span()))
    }

    fn error(
        &self,
        what: String,
        help: Option<String>,
        span: Option<Range<usize>>,
    ) -> ExperimentError {
        ExperimentError::File(Box::new(FileError {
            what,
            help,
            source_code: NamedSource::new(self.name, self.text.to_owned()).with_language("toml"),
            span: span.map(Into::into),
        }))
    }

    /// Deserialises the whole text.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ExperimentError> {
        self.read_with(std::marker::PhantomData)
    }

    /// Deserialises the whole text by `seed`.
    pub fn read_with<T: DeserializeSeed<'a>>(&self, seed: T) -> Result<T::Value, ExperimentError> {
        seed.deserialize(toml::Deserializer::new(self.text))
            .map_err(|error| self.error(error.message().to_owned(), None, error.span()))
    }
}
