// SPDX-License-Identifier: GPL-3.0-or-later
//! The results of an experiment.
use crate::experiment::report::{Report, Series};
use crate::experiment::strips::Strips;
use std::collections::BTreeMap;

use weir_report::{Plot, PlotError};

/// The results of an experiment, and the contents of the files to write.
#[derive(Debug)]
pub struct Findings {
    /// The claims and the series.
    pub report: Report,
    /// The picture. `None` if the experiment measures only single values.
    pub picture: Option<Picture>,
    /// The new content of the board's `costs.toml`, if the experiment measures these costs.
    pub costs: Option<String>,
    /// The details behind the claims, case by case.
    pub detail: Option<Detail>,
    /// The contents of the further files, in the order of [`super::Experiment::extras`].
    pub extras: Vec<Vec<u8>>,
}

/// The name of a file that an experiment writes in addition to the results and the picture. It is
/// known before the measurement.
#[derive(Clone)]
pub struct ExtraName {
    /// The end of the file's name, which follows the experiment's name and a dash.
    pub ending: String,
    /// The bytes by which Weir recognises a file that it has written and may overwrite.
    pub mark: &'static str,
}

/// A picture of the measurements.
#[derive(Debug, Clone, PartialEq)]
pub enum Picture {
    /// Curves in panels.
    Plot(Plot),
    /// A strip of dots, one for each measurement.
    Strips(Strips),
}

impl Picture {
    /// The picture as a complete SVG.
    ///
    /// # Errors
    /// Returns an error if a panel has no values, or a value that is not finite.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        match self {
            Self::Plot(plot) => plot.to_svg(),
            Self::Strips(strips) => strips.to_svg(),
        }
    }
}

/// A table of measurements, for the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// The titles of the columns: the first is a name, the last a remark, the others are numbers.
    pub columns: Vec<String>,
    /// The rows, each as wide as the columns.
    pub rows: Vec<Vec<String>>,
}

impl Detail {
    /// Makes a table with these column titles and rows.
    pub(super) fn new(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Self {
        Self {
            columns: columns.iter().map(ToString::to_string).collect(),
            rows: rows.collect(),
        }
    }
}

/// The measurements of an experiment, before the comparison with its claims.
#[derive(Debug, Default)]
pub(super) struct Measurements {
    pub values: BTreeMap<String, f64>,
    pub series: Vec<Series>,
    pub costs: Option<String>,
    pub detail: Option<Detail>,
    /// The picture, if the kind draws its own. `None` means that the file's panels are drawn.
    pub picture: Option<Picture>,
    /// The contents of the further files that the kind has named.
    pub extras: Vec<Vec<u8>>,
}
