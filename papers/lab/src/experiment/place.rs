// SPDX-License-Identifier: GPL-3.0-or-later
//! Locates the repository with the experiments, the firmware and the boards.
use std::path::{Path, PathBuf};

use super::error::ExperimentError;

/// The folder of the experiments, relative to the repository's root.
const EXPERIMENTS: &str = "papers/experiments";

/// The file with the costs measured on the board, relative to the repository's root.
pub(super) const COSTS_FILE: &str = "boards/atmega128/costs.toml";

/// A clone of Weir's repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    root: PathBuf,
}

impl Checkout {
    /// Finds the repository: `from`, or the nearest folder above it, that contains
    /// `papers/experiments/` and `core/`.
    ///
    /// # Errors
    /// Returns an error if no such folder exists.
    pub fn find(from: &Path) -> Result<Self, ExperimentError> {
        from.ancestors()
            .find(|folder| folder.join(EXPERIMENTS).is_dir() && folder.join("core").is_dir())
            .map(|root| Self {
                root: root.to_owned(),
            })
            .ok_or_else(|| ExperimentError::NoRepository {
                from: from.to_owned(),
            })
    }

    /// The path of a file or folder, given relative to the repository's root.
    #[must_use]
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The path of the file with the costs measured on the board.
    #[must_use]
    pub fn costs_file(&self) -> PathBuf {
        self.path(COSTS_FILE)
    }

    /// The names of all experiments in alphabetical order, as in `regehr2005/fig1`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let entries = |folder: &Path| {
            std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect::<Vec<_>>()
        };
        let mut names: Vec<String> = entries(&self.path(EXPERIMENTS))
            .iter()
            .flat_map(|paper| entries(paper))
            .filter(|file| {
                file.extension()
                    .is_some_and(|extension| extension == "toml")
            })
            .filter_map(|file| {
                let paper = file.parent()?.file_name()?.to_str()?;
                let name = file.file_stem()?.to_str()?;
                Some(format!("{paper}/{name}"))
            })
            .collect();
        names.sort();
        names
    }

    /// The path of the file of the experiment with this name.
    pub(super) fn experiment(&self, name: &str) -> Result<PathBuf, ExperimentError> {
        let known = self.names();
        if known.iter().any(|known| known == name) {
            Ok(self.path(&format!("{EXPERIMENTS}/{name}.toml")))
        } else {
            Err(ExperimentError::Unknown {
                name: name.to_owned(),
                known,
            })
        }
    }

    #[cfg(test)]
    pub(super) fn of_this_repository() -> Self {
        Self::find(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_found_from_a_folder_inside() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["papers/experiments/paper", "core/src"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("papers/experiments/paper/fig9.toml"), "").unwrap();
        let place = Checkout::find(&folder.path().join("core/src")).unwrap();
        assert_eq!(place.names(), ["paper/fig9"]);
        assert!(place.experiment("paper/fig9").is_ok());
    }

    #[test]
    fn an_unknown_experiment_is_refused_with_those_that_exist() {
        let place = Checkout::of_this_repository();
        for name in ["regehr2005/fig9", "", "../core/Cargo", "regehr2005"] {
            let error = place.experiment(name).unwrap_err();
            let ExperimentError::Unknown { known, .. } = error else {
                panic!("{error}");
            };
            assert!(known.contains(&"regehr2005/fig1".to_owned()));
        }
    }

    #[test]
    fn outside_a_repository_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(
            Checkout::find(folder.path()),
            Err(ExperimentError::NoRepository { .. })
        ));
    }
}
