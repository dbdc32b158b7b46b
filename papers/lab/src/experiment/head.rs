// SPDX-License-Identifier: GPL-3.0-or-later
//! What there is to know of an experiment before it is run.
use serde::Deserialize;

use super::error::ExperimentError;
use super::place::Checkout;
use super::{Experiment, base};

/// The line by which a file says that only `make bench` runs the experiment.
const FOR_BENCH: &str = "# In make bench only.";

/// What there is to know of an experiment before it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its kind.
    pub kind: String,
    /// Does its file state a short form?
    pub has_short_form: bool,
    /// Does its file say that only `make bench` runs it?
    pub is_for_bench: bool,
    /// The experiments of the same paper whose keys it inherits, the nearest first.
    pub bases: Vec<String>,
}

#[derive(Deserialize)]
struct Keys {
    kind: Option<String>,
    base: Option<String>,
}

impl Head {
    /// Reads what the experiment's file says of itself.
    ///
    /// # Errors
    /// An unknown name, an invalid file.
    pub fn load(place: &Checkout, name: &str) -> Result<Self, ExperimentError> {
        let has_short_form = Experiment::load(place, name)?.shorten().is_ok();
        let paper = name.split('/').next().unwrap_or_default();
        let mut bases = Vec::new();
        let mut kind = None;
        let mut next = Some(name.to_owned());
        let mut is_for_bench = false;
        // The experiment was loaded, so that its bases end.
        while let Some(name) = next.take() {
            let (path, text) = base::read(place, &name)?;
            let keys: Keys = toml::from_str(&text).map_err(|error| ExperimentError::Data {
                path: path.into(),
                what: error.to_string(),
            })?;
            is_for_bench |= bases.is_empty() && text.lines().any(|line| line == FOR_BENCH);
            kind = kind.or(keys.kind);
            if let Some(base) = keys.base {
                next = Some(format!("{paper}/{base}"));
                bases.push(base);
            }
        }
        Ok(Self {
            kind: kind.unwrap_or_default(),
            has_short_form,
            is_for_bench,
            bases,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_the_kind_of_its_base() {
        let place = Checkout::of_this_repository();
        let head = Head::load(&place, "regehr2005/fig2").unwrap();
        assert_eq!(head.kind, "firmware");
        assert_eq!(head.bases, ["fig1"]);
        assert!(!head.is_for_bench && head.has_short_form);
        let searched = Head::load(&place, "regehr2005/fig2-worst").unwrap();
        assert_eq!(searched.bases, ["fig1-worst", "fig1"]);
        assert!(searched.is_for_bench);
    }
}
