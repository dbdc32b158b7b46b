// SPDX-License-Identifier: GPL-3.0-or-later
//! Experiments: a figure or table of a paper, measured on an emulated or simulated machine, and
//! compared with its claims.
//!
//! Each experiment is one file, `papers/experiments/PAPER/NAME.toml`, which states the procedure
//! and the expected results. There are a few kinds of experiment (`kinds`); a kind knows which
//! claims it can measure.
mod base;
mod batch;
mod bench;
mod climb;
mod costs;
mod draw;
mod error;
mod file;
mod findings;
mod head;
mod kind;
mod kinds;
mod place;
mod pointer;
mod report;
mod search;
mod series;
mod setup;
mod spectrogram;
mod strips;

use weir_report::Claim;

pub use batch::place_threads;
pub use error::{ExperimentError, FileError};
pub use findings::{Detail, ExtraName, Findings, Picture};
pub use head::Head;
pub use place::Checkout;

use file::ExperimentFile;
use kind::KindEntry;
use kinds::KINDS;
use report::Report;

/// An experiment whose file has been read and checked.
#[derive(Debug)]
pub struct Experiment {
    name: String,
    file: ExperimentFile,
}

impl Experiment {
    /// Reads `papers/experiments/PAPER/NAME.toml`.
    ///
    /// # Errors
    /// Returns an error if the name is unknown, if the file is invalid (the message points at the
    /// place), or if the file states a claim that the experiment cannot measure.
    pub fn load(place: &Checkout, name: &str) -> Result<Self, ExperimentError> {
        let (path, text) = base::text(place, name)?;
        Self::parse(KINDS, name, &path, &text)
    }

    fn parse(
        kinds: &[KindEntry],
        name: &str,
        path: &str,
        text: &str,
    ) -> Result<Self, ExperimentError> {
        Ok(Self {
            name: name.to_owned(),
            file: ExperimentFile::parse(kinds, path, text)?,
        })
    }

    /// The title of the experiment.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// The names of the files that the experiment writes in addition to the results and the
    /// picture.
    #[must_use]
    pub fn extras(&self) -> Vec<ExtraName> {
        self.file.kind.extras()
    }

    /// Reduces the experiment to the quick part that its file states. Returns the ids of the claims
    /// that the quick part cannot judge, because they are about all points and seeds.
    ///
    /// # Errors
    /// Returns an error if the file states no quick part.
    pub fn shorten(&mut self) -> Result<Vec<String>, ExperimentError> {
        let left_out = self.file.shorten();
        left_out.ok_or_else(|| ExperimentError::NotQuick(self.name.clone()))
    }

    /// Repeats the measurements that are committed in the repository and that the experiment
    /// judges.
    ///
    /// # Errors
    /// Returns an error if the experiment has no committed measurements, or if their program fails.
    pub fn measure_anew(&self, place: &Checkout) -> Result<(), ExperimentError> {
        self.file
            .kind
            .measure_anew(place)
            .unwrap_or_else(|| Err(ExperimentError::NothingKept(self.name.clone())))
    }

    /// Compiles and runs the firmware, or simulates the system, and compares the results with the
    /// claims.
    ///
    /// # Errors
    /// Returns an error if a compiler is missing, if the firmware does not compile or crashes, or
    /// if a needed cost was never measured.
    pub fn run(&self, place: &Checkout) -> Result<Findings, ExperimentError> {
        let ExperimentFile { kind, setup, .. } = &self.file;
        let measured = kind.measure(place, setup)?;
        let claims = setup
            .claim
            .iter()
            .map(|claim| match measured.values.get(&claim.id) {
                Some(&measured) => Ok(Claim {
                    measured,
                    ..claim.clone()
                }),
                None => Err(ExperimentError::Unmeasured(claim.id.clone())),
            })
            .collect::<Result<_, ExperimentError>>()?;
        Ok(Findings {
            picture: match measured.picture {
                Some(picture) => Some(picture),
                None => self.file.plot(&measured.series)?.map(Picture::Plot),
            },
            report: Report {
                name: self.name.clone(),
                simulated: kind.is_simulated(),
                claims,
                series: measured.series,
            },
            costs: measured.costs,
            detail: measured.detail,
            extras: measured.extras,
        })
    }
}

#[cfg(test)]
mod tests;
