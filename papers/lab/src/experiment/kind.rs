// SPDX-License-Identifier: GPL-3.0-or-later
//! The interface of a kind of experiment: its table in the file, the claims that it can measure,
//! and the measurement.
use std::collections::BTreeSet;
use std::fmt::{self, Debug};
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use weir_emulate::board::EmulatedBoard;

use super::error::ExperimentError;
use super::findings::{ExtraName, Measurements};
use super::place::Checkout;
use super::pointer::Pointer;
use super::setup::{CurveSpec, Setup};

/// The procedure of an experiment. It is read from the table with the kind's name.
pub(super) trait Kind: Debug {
    /// The ids that claims and curves can name.
    fn known(&self, setup: &Setup) -> Ids;

    /// Carries out the experiment.
    ///
    /// # Errors
    /// Returns an error if a compiler is missing, if the firmware does not compile or crashes, or
    /// if a needed cost was never measured.
    fn measure(&self, place: &Checkout, setup: &Setup) -> Result<Measurements, ExperimentError>;

    /// A remark for the title if the firmware of no real board was measured.
    fn remark(&self) -> Option<&'static str> {
        None
    }

    /// Whether the results are simulated.
    fn is_simulated(&self) -> bool {
        false
    }

    /// The curves of a series that each variant has, one curve per variant. The list is empty if
    /// variants of this kind have no curves of their own.
    fn curves(&self, _series: &Spanned<String>) -> Vec<CurveSpec> {
        Vec::new()
    }

    /// Reduces the experiment to the part for `--quick`. Returns false if the file states no such
    /// part.
    fn shorten(&mut self) -> bool {
        false
    }

    /// The names of the files that the experiment writes in addition to the results and the
    /// picture.
    fn extras(&self) -> Vec<ExtraName> {
        Vec::new()
    }

    /// Repeats the committed measurements. Returns `None` if experiments of this kind have none.
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

/// A function that reads the table of a kind. Its second argument is the table's name.
type Read = fn(&Pointer, &'static str) -> Result<Box<dyn Kind>, ExperimentError>;

/// A kind in the list of all kinds.
#[derive(Clone, Copy)]
pub(super) struct KindEntry {
    /// The value of `kind` in a file, and the name of the kind's table.
    pub name: &'static str,
    /// The boards that the kind's firmware can run on; empty if the kind has no firmware.
    pub boards: &'static [EmulatedBoard],
    read: Read,
}

impl KindEntry {
    /// A kind without firmware, whose table deserialises to `K`.
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

    /// Adds the boards that the kind's firmware can run on.
    pub const fn on(self, boards: &'static [EmulatedBoard]) -> Self {
        Self { boards, ..self }
    }

    /// Reads the table of this kind from an experiment's file.
    pub fn read(&self, pointer: &Pointer) -> Result<Box<dyn Kind>, ExperimentError> {
        (self.read)(pointer, self.name)
    }
}

/// Deserialises the table with this name, and ignores all other keys of the file.
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
