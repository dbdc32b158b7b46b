// SPDX-License-Identifier: GPL-3.0-or-later
//! Facts about an experiment that are known before it runs.
use serde::Deserialize;

use super::error::ExperimentError;
use super::place::Checkout;
use super::{Experiment, base};

/// The line that marks an experiment which only `make bench` runs.
const FOR_BENCH: &str = "# In make bench only.";

/// Facts about an experiment that are known before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The kind of the experiment, as in the key `kind`.
    pub kind: String,
    /// Whether the file states a short form.
    pub has_short_form: bool,
    /// Whether the file says that only `make bench` runs the experiment.
    pub is_for_bench: bool,
    /// The experiments of the same paper whose keys this one inherits, from the nearest base on.
    pub bases: Vec<String>,
}

#[derive(Deserialize)]
struct Keys {
    kind: Option<String>,
    base: Option<String>,
}

impl Head {
    /// Reads the facts from an experiment's file.
    ///
    /// # Errors
    /// Returns an error if the name is unknown or the file is invalid.
    pub fn load(place: &Checkout, name: &str) -> Result<Self, ExperimentError> {
        let has_short_form = Experiment::load(place, name)?.shorten().is_ok();
        let paper = name.split('/').next().unwrap_or_default();
        let mut bases = Vec::new();
        let mut kind = None;
        let mut next = Some(name.to_owned());
        let mut is_for_bench = false;
        // The loop ends, because loading the experiment has shown that its chain of bases ends.
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
