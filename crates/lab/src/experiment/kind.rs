// SPDX-License-Identifier: GPL-3.0-or-later
//! What a kind of experiment is: a table of an experiment's file, what it can measure, and how.
use std::collections::BTreeSet;
use std::fmt::{self, Debug};
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use weir_board::board::EmulatedBoard;

use super::error::ExperimentError;
use super::findings::Measurements;
use super::place::Checkout;
use super::pointer::Pointer;
use super::setup::{CurveSpec, Setup};

/// What is done in an experiment, as the table states it that is called as the kind.
pub(super) trait Kind: Debug {
    /// What claims and curves can be about.
    fn known(&self, setup: &Setup) -> Ids;

    /// Carries the experiment out.
    ///
    /// # Errors
    /// A missing compiler, a firmware that does not compile or goes astray, costs that were never
    /// measured.
    fn measure(&self, place: &Checkout, setup: &Setup) -> Result<Measurements, ExperimentError>;

    /// A remark on the title, where no board's own firmware was measured.
    fn remark(&self) -> Option<&'static str> {
        None
    }

    /// Whether the results are simulated.
    fn is_simulated(&self) -> bool {
        false
    }

    /// The curves, of all variants, of the series that each of them has; none if variants have no
    /// curves of their own.
    fn curves(&self, _series: &Spanned<String>) -> Vec<CurveSpec> {
        Vec::new()
    }

    /// Keeps only the part for `--quick`. False means that the file does not state one.
    fn shorten(&mut self) -> bool {
        false
    }

    /// Makes the measurements anew that the repository keeps. Nothing means that it keeps none.
    fn measure_anew(&self, _place: &Checkout) -> Option<Result<(), ExperimentError>> {
        None
    }
}

/// The ids that a file can name.
#[derive(Debug, Default)]
pub(super) struct Ids {
    pub claims: BTreeSet<String>,
    pub series: BTreeSet<String>,
}

/// Reads the table of this name.
type Read = fn(&Pointer, &'static str) -> Result<Box<dyn Kind>, ExperimentError>;

/// A kind in the list of all kinds.
#[derive(Clone, Copy)]
pub(super) struct KindEntry {
    /// The value of `kind` in a file, and the name of the kind's table.
    pub name: &'static str,
    /// The boards that its firmware can run on; none if it has no firmware.
    pub boards: &'static [EmulatedBoard],
    read: Read,
}

impl KindEntry {
    /// A kind without firmware.
    pub const fn of<K: Kind + DeserializeOwned + 'static>(name: &'static str) -> Self {
        Self {
            name,
            boards: &[],
            read: |pointer, name| {
                let table = pointer.read_with(NamedTable::<K>(name, PhantomData))?;
                Ok(Box::new(table))
            },
        }
    }

    /// The same with firmware that runs on these boards.
    pub const fn on(self, boards: &'static [EmulatedBoard]) -> Self {
        Self { boards, ..self }
    }

    /// Reads the kind's table of a file that has one.
    pub fn read(&self, pointer: &Pointer) -> Result<Box<dyn Kind>, ExperimentError> {
        (self.read)(pointer, self.name)
    }
}

/// The table of this name in a file of which nothing else is looked at.
struct NamedTable<K>(&'static str, PhantomData<K>);

impl<'de, K: Deserialize<'de>> DeserializeSeed<'de> for NamedTable<K> {
    type Value = K;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, K: Deserialize<'de>> Visitor<'de> for NamedTable<K> {
    type Value = K;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "a file with a table [{}]", self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<K, A::Error> {
        let mut table = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == self.0 {
                table = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        table.ok_or_else(|| A::Error::missing_field(self.0))
    }
}
