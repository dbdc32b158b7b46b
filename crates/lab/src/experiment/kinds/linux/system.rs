// SPDX-License-Identifier: GPL-3.0-or-later
//! The system file for `weir-linux` in the guest: the experiment's or the variant's, with the
//! variant's table `[linux]`.
use std::path::Path;

use super::spec::{Linux, VariantSpec};
use crate::experiment::error::ExperimentError;
use crate::experiment::place::Checkout;

/// The text of a variant's system file at a point, if it has one. The text is checked against the
/// model here, before any guest starts.
pub(super) fn of(
    place: &Checkout,
    spec: &Linux,
    variant: &VariantSpec,
    x: f64,
) -> Result<Option<String>, ExperimentError> {
    let wrong = |what: String| {
        ExperimentError::Evaluation(format!("the variant `{}` at x = {x}: {what}", variant.id))
    };
    let Some(linux) = &variant.linux else {
        return Ok(None);
    };
    let Some(path) = variant.system.as_ref().or(spec.system.as_ref()) else {
        return Err(wrong(
            "`linux` sets how weir-linux runs, but no `system` describes the machine".to_owned(),
        ));
    };
    let linux = linux.at(x).map_err(wrong)?;
    let path = place.path(path);
    let text = std::fs::read_to_string(&path).map_err(|cause| ExperimentError::Read {
        path: path.clone(),
        cause,
    })?;
    let text = with(&text, linux).map_err(wrong)?;
    match weir_model::parse(&name(&path, &variant.id), &text) {
        Ok(_) => Ok(Some(text)),
        Err(problems) => Err(Box::new(weir_model::LoadError::from(problems)).into()),
    }
}

/// The name of the text, for messages.
fn name(path: &Path, variant: &str) -> String {
    format!("{} with [linux] of `{variant}`", path.display())
}

/// The text with another `[linux]`.
fn with(text: &str, linux: toml::Value) -> Result<String, String> {
    let mut system: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    system.insert("linux".to_owned(), linux);
    toml::to_string(&system).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_has_the_variants_table_and_no_other() {
        let linux: toml::Value = toml::from_str("mode = \"predicted\"").unwrap();
        let text = with(
            "schema = 1\n[linux]\nmode = \"native\"\ntop_half = 3\n",
            linux,
        )
        .unwrap();
        let read: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(read["schema"].as_integer(), Some(1));
        let linux = read["linux"].as_table().unwrap();
        assert_eq!(linux["mode"].as_str(), Some("predicted"));
        assert_eq!(linux.len(), 1);
    }
}
