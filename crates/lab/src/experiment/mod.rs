// SPDX-License-Identifier: GPL-3.0-or-later
//! Experiments: a figure or table of a paper, measured on an emulated machine, or simulated, and held against its claims.
//!
//! Each is one file, `experiments/PAPER/NAME.toml`, which states what is done and what should come out. There are a few
//! kinds of experiment; a kind knows which claims it can measure.
mod area;
mod batch;
mod bench;
mod bounds;
mod constants;
mod costs;
mod error;
mod file;
mod linux;
mod model;
mod place;
mod rates;
mod series;
mod simulation;
mod sweep;
mod two_sources;
mod worst;

use std::collections::{BTreeMap, BTreeSet};

use weir_report::{Claim, Plot, PlotError, Report, Series, Strips};

pub use error::{ExperimentError, FileError};
pub use place::Place;

use bench::Bench;
use file::{File, Kind};

/// An experiment that was read and makes sense.
#[derive(Debug)]
pub struct Experiment {
    name: String,
    file: File,
}

/// What an experiment found, and what should be written.
#[derive(Debug)]
pub struct Findings {
    /// The claims and the series.
    pub report: Report,
    /// The picture; a table of single values has none.
    pub picture: Option<Picture>,
    /// For an experiment that measures the board's costs: the new content of the board's `costs.toml`.
    pub costs: Option<String>,
    /// What stands behind the claims, case by case.
    pub detail: Option<Detail>,
}

/// A picture of what was measured.
#[derive(Debug, Clone, PartialEq)]
pub enum Picture {
    /// Curves.
    Plot(Plot),
    /// Every single measurement.
    Strips(Strips),
}

impl Picture {
    /// As a complete SVG.
    ///
    /// # Errors
    /// A panel without values, or with one that is not finite.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        match self {
            Self::Plot(plot) => plot.to_svg(),
            Self::Strips(strips) => strips.to_svg(),
        }
    }
}

/// A table of what was measured, for the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// The first is a name, the last a remark, the others are numbers.
    pub columns: Vec<String>,
    /// As wide as the columns.
    pub rows: Vec<Vec<String>>,
}

/// What a kind of experiment measured, before it is compared with the claims.
#[derive(Debug, Default)]
struct Measured {
    values: BTreeMap<String, f64>,
    series: Vec<Series>,
    costs: Option<String>,
    detail: Option<Detail>,
    /// Of kinds that draw themselves; else the file's panels are drawn.
    picture: Option<Picture>,
}

impl Experiment {
    /// Reads `experiments/NAME.toml`.
    ///
    /// # Errors
    /// An unknown name, a file that is not as it should be (the message points at the place), a claim that nothing
    /// measures.
    pub fn load(place: &Place, name: &str) -> Result<Self, ExperimentError> {
        let path = place.experiment(name)?;
        let text = std::fs::read_to_string(&path).map_err(|cause| ExperimentError::Read {
            path: path.clone(),
            cause,
        })?;
        let file = File::parse(&path.display().to_string(), &text)?;
        Ok(Self {
            name: name.to_owned(),
            file,
        })
    }

    /// What it shows.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// Keeps only a part of what the experiment does, for which it claims the same.
    ///
    /// # Errors
    /// Its file does not say which part.
    pub fn shorten(&mut self) -> Result<(), ExperimentError> {
        let shortened = match &mut self.file.kind {
            Kind::OverheadSweep(spec) => spec.shorten(),
            Kind::Linux(spec) => spec.shorten(),
            _ => false,
        };
        if shortened {
            Ok(())
        } else {
            Err(ExperimentError::NotQuick(self.name.clone()))
        }
    }

    /// Makes the measurements anew that the experiment judges and that are kept in the repository.
    ///
    /// # Errors
    /// It keeps none; what makes them fails.
    pub fn measure_anew(&self, place: &Place) -> Result<(), ExperimentError> {
        match &self.file.kind {
            Kind::Area(spec) => area::measure_anew(place, spec),
            _ => Err(ExperimentError::NothingKept(self.name.clone())),
        }
    }

    /// Compiles the firmware and runs it, or simulates, and compares what comes out with the claims.
    ///
    /// # Errors
    /// A missing compiler, a firmware that does not compile or goes astray, costs that were never measured.
    pub fn run(&self, place: &Place) -> Result<Findings, ExperimentError> {
        let bench = || Bench::new(place, &self.file);
        let measured = match &self.file.kind {
            Kind::OverheadSweep(spec) => sweep::measure(&bench()?, spec)?,
            Kind::Constants(spec) => constants::measure(&bench()?, spec)?,
            Kind::Rates(spec) => rates::measure(&bench()?, spec)?,
            Kind::TwoSources(spec) => two_sources::measure(&bench()?, spec)?,
            Kind::Bounds(spec) => bounds::measure(&bench()?, spec)?,
            Kind::Simulation(spec) => simulation::measure(place, spec)?,
            Kind::Area(spec) => area::measure(place, spec)?,
            Kind::Linux(spec) => linux::measure(place, spec)?,
        };
        let claims = self
            .file
            .claim
            .iter()
            .map(|claim| {
                let measured = measured
                    .values
                    .get(&claim.id)
                    .copied()
                    .ok_or_else(|| ExperimentError::Unmeasured(claim.id.clone()))?;
                Ok(Claim {
                    id: claim.id.clone(),
                    what: claim.what.clone(),
                    unit: claim.unit.clone(),
                    paper: claim.paper,
                    goal: claim.goal,
                    measured,
                })
            })
            .collect::<Result<_, ExperimentError>>()?;
        Ok(Findings {
            picture: match measured.picture {
                Some(picture) => Some(picture),
                None => self.file.plot(&measured.series)?.map(Picture::Plot),
            },
            report: Report {
                name: self.name.clone(),
                simulated: matches!(self.file.kind, Kind::Simulation(_)),
                claims,
                series: measured.series,
            },
            costs: measured.costs,
            detail: measured.detail,
        })
    }
}

/// The claims that a file's kind can measure, given its variants.
fn known_claims(file: &File) -> BTreeSet<String> {
    match &file.kind {
        Kind::OverheadSweep(_) => sweep::known_claims(file),
        Kind::Constants(spec) => constants::known_claims(spec),
        Kind::Rates(_) => rates::known_claims(file),
        Kind::TwoSources(_) => two_sources::known_claims(file),
        Kind::Bounds(spec) => bounds::known_claims(spec),
        Kind::Simulation(spec) => series::known_claims(&spec.series),
        Kind::Area(spec) => area::known_claims(spec),
        Kind::Linux(spec) => linux::known_claims(spec),
    }
}

/// The series that a file's kind gives, given its variants.
fn known_series(file: &File) -> BTreeSet<String> {
    match &file.kind {
        Kind::OverheadSweep(spec) => sweep::known_series(file, spec),
        Kind::Constants(_) | Kind::Area(_) => BTreeSet::new(),
        Kind::Rates(_) => rates::known_series(file),
        Kind::TwoSources(_) => two_sources::known_series(file),
        Kind::Bounds(_) => bounds::known_series(file),
        Kind::Simulation(spec) => series::known_series(&spec.series),
        Kind::Linux(spec) => series::known_series(&spec.series()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_of_the_repository_is_well_formed() {
        let place = Place::of_this_repository();
        let names = place.names();
        assert!(names.len() >= 5, "{names:?}");
        for name in names {
            if let Err(error) = Experiment::load(&place, &name) {
                panic!("{name}: {:?}", miette::Report::new(error));
            }
        }
    }
}
