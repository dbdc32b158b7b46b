// SPDX-License-Identifier: GPL-3.0-or-later
//! Experiments that differ from another experiment in some keys. The key `base` names the other
//! one, which is in the same folder.
use serde::Deserialize;
use toml::{Table, Value};

use super::error::ExperimentError;
use super::place::Checkout;
use super::pointer::Pointer;

/// The key `base`, which is read before all other keys of a file.
#[derive(Deserialize)]
struct Head {
    base: Option<String>,
}

/// The largest number of bases below an experiment.
const MOST_BASES: usize = 2;

/// Reads an experiment's file and merges it over that of its base. Returns the merged text and the
/// file's name for messages.
pub(super) fn text(place: &Checkout, name: &str) -> Result<(String, String), ExperimentError> {
    over_bases(place, name, MOST_BASES)
}

/// Merges at most `most` bases. A key `base` beyond them stays in the text, and the text's reader
/// rejects it. So a cycle of bases ends with an error.
fn over_bases(
    place: &Checkout,
    name: &str,
    most: usize,
) -> Result<(String, String), ExperimentError> {
    let (path, text) = read(place, name)?;
    let pointer = Pointer {
        name: &path,
        text: &text,
    };
    let base = pointer.read::<Head>()?.base.filter(|_| most > 0);
    let Some(base) = base else {
        return Ok((path, text));
    };
    let paper = name.split('/').next().unwrap_or_default();
    let (base_path, base_text) = over_bases(place, &format!("{paper}/{base}"), most - 1)?;
    let below = Pointer {
        name: &base_path,
        text: &base_text,
    };
    let mut all: Table = below.read()?;
    let mut own: Table = pointer.read()?;
    own.remove("base");
    lay_over(&mut all, own);
    Ok((format!("{path} over {base_path}"), all.to_string()))
}

/// Reads an experiment's file. Returns the file's name and its text.
pub(super) fn read(place: &Checkout, name: &str) -> Result<(String, String), ExperimentError> {
    let path = place.experiment(name)?;
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok((path.display().to_string(), text)),
        Err(cause) => Err(ExperimentError::Read { path, cause }),
    }
}

/// Lays the table `own` over the table `below`. Tables are merged key by key; any other value of
/// `own` replaces that of `below`.
pub(super) fn lay_over(below: &mut Table, own: Table) {
    for (key, value) in own {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(own)) => lay_over(below, own),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Merges the text `small` over an experiment called `large` with the text `large`. Returns
    /// what [`text`] returns.
    fn over(small: &str, large: &str) -> Result<(String, String), ExperimentError> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("papers/experiments/paper");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir_all(root.path().join("core")).unwrap();
        std::fs::write(folder.join("small.toml"), small).unwrap();
        std::fs::write(folder.join("large.toml"), large).unwrap();
        text(&Checkout::find(root.path()).unwrap(), "paper/small")
    }

    #[test]
    fn keys_take_the_place_of_those_of_the_base_and_tables_are_merged() {
        let large = "title = \"large\"\nlist = [1, 2]\n[run]\nclock = 4\nlength = 0.26\n";
        let small = "base = \"large\"\ntitle = \"small\"\nlist = [3]\n[run]\nclock = 5\n";
        let (path, text) = over(small, large).unwrap();
        let (paths, all) = (
            path.matches(".toml").count(),
            text.parse::<Table>().unwrap(),
        );
        assert_eq!(paths, 2, "{path}");
        assert!(!all.contains_key("base"));
        assert_eq!(all["title"].as_str(), Some("small"));
        assert_eq!(all["list"].as_array().map(Vec::len), Some(1));
        assert_eq!(all["run"]["clock"].as_integer(), Some(5));
        assert_eq!(all["run"]["length"].as_float(), Some(0.26));
    }

    #[test]
    fn a_base_is_an_experiment_of_the_same_folder() {
        let unknown = over("base = \"larger\"", "").unwrap_err();
        assert!(
            matches!(unknown, ExperimentError::Unknown { .. }),
            "{unknown}"
        );
    }

    #[test]
    fn a_circle_of_bases_ends() {
        // The key `base` stays in the merged text, whose reader rejects it.
        let (_, text) = over("base = \"large\"", "base = \"small\"").unwrap();
        assert!(text.contains("base"), "{text}");
    }
}
