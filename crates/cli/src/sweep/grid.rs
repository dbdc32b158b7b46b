// SPDX-License-Identifier: MIT OR Apache-2.0
//! The grid of a sweep: all combinations of the parameters' values.
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use miette::{IntoDiagnostic, WrapErr, miette};
use toml_edit::DocumentMut;
use weir_model::System;
use weir_sim::Options;
use weir_sim::feeds::Feeds;

use super::edit;
use super::values::Values;
use crate::simulate::how::How;
use crate::simulate::runs;

/// A parameter and its values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Vary {
    pub key: String,
    pub values: Values,
}

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write a parameter and its values, for example flood.eth=1kHz..20kHz:1kHz";
        let (key, of) = text.split_once('=').ok_or(form)?;
        Ok(Self {
            key: key.trim().to_owned(),
            values: Values::read(of)?,
        })
    }
}

/// The name of the parameter that selects one of the two runs of `weir simulate`.
const RUN: &str = "run";

/// All combinations of a sweep.
#[derive(Debug)]
pub(super) struct Grid {
    /// Name of the system file.
    name: String,
    file: DocumentMut,
    how: How,
    /// The parameters. The value of the last one changes fastest.
    pub vary: Vec<Vary>,
    rows: u64,
}

/// A combination that is ready to be simulated.
pub(super) struct Point {
    pub system: System,
    pub options: Options,
    pub feeds: Feeds,
    /// Whether the run has Weir enabled, as the system describes it.
    pub with: bool,
}

impl Grid {
    /// Makes the grid for the system file `name` with this `text`. No combination is prepared yet.
    ///
    /// # Errors
    /// Fails if a parameter does not exist or is given twice.
    pub fn new(name: &str, text: &str, how: &How, vary: Vec<Vary>) -> miette::Result<Self> {
        let mut rows = 1_u64;
        for (place, of) in vary.iter().enumerate() {
            if vary[..place].iter().any(|other| other.key == of.key) {
                return Err(miette!(
                    help = "list all its values at one place",
                    "`{}` is varied twice",
                    of.key
                ));
            }
            rows = rows.checked_mul(of.values.count()).ok_or_else(|| {
                miette!(
                    help = "vary fewer parameters, or in larger steps",
                    "there are more than 2^64 combinations"
                )
            })?;
        }
        let grid = Self {
            name: name.to_owned(),
            file: text.parse().into_diagnostic()?,
            how: how.clone(),
            vary,
            rows,
        };
        let first = vec![0; grid.vary.len()];
        // The names of all options are checked before any of their values.
        grid.how(&first)?;
        for of in grid.vary.iter().filter(|of| edit::is_key(&of.key)) {
            refuse_unknown_key(name, &grid.file(&first)?, &of.key)?;
        }
        Ok(grid)
    }

    /// Returns the files that `rows` read, apart from the system file.
    ///
    /// # Errors
    /// Fails if an option's value in one of the rows cannot be used with `system`. Values of system
    /// file keys are not checked here, because they may depend on each other; their errors are
    /// reported in the table.
    pub fn files(&self, system: &System, rows: &Range<u64>) -> miette::Result<BTreeSet<PathBuf>> {
        let mut files = BTreeSet::new();
        let mut add = |feeds: &Feeds| files.extend(feeds.files().map(ToOwned::to_owned));
        let first = vec![0; self.vary.len()];
        for (place, of) in self.vary.iter().enumerate() {
            if edit::is_key(&of.key) {
                continue;
            }
            for index in self.indices(place, rows) {
                let mut choice = first.clone();
                choice[place] = index;
                let named = || format!("{}={}", of.key, of.values.get(index).unwrap_or_default());
                let (how, _) = self.how(&choice)?;
                add(&how.options(system).wrap_err_with(named)?.1);
            }
        }
        let (how, _) = self.how(&first)?;
        add(&how.options(system)?.1);
        Ok(files)
    }

    /// Returns the indices of the values of the parameter at `place` that occur in `rows`.
    fn indices(&self, place: usize, rows: &Range<u64>) -> impl Iterator<Item = u64> + use<> {
        let counts = || self.vary.iter().map(|of| of.values.count());
        let stride: u64 = counts().skip(place + 1).product();
        let count = counts().nth(place).unwrap_or(1);
        let (begin, end) = (rows.start / stride, rows.end.div_ceil(stride));
        let some = match rows.is_empty() {
            true => 0,
            false => (end - begin).min(count),
        };
        (0..some).map(move |more| (begin % count + more) % count)
    }

    /// Returns the number of combinations.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the index of each parameter's value in this combination.
    fn choice(&self, row: u64) -> Vec<u64> {
        let mut left = row;
        let mut choice: Vec<u64> = self
            .vary
            .iter()
            .rev()
            .map(|of| {
                let many = of.values.count();
                let index = left % many;
                left /= many;
                index
            })
            .collect();
        choice.reverse();
        choice
    }

    /// Returns the values of a combination.
    pub fn values(&self, row: u64) -> impl Iterator<Item = String> {
        let choice = self.choice(row);
        self.chosen(&choice)
            .map(|(_, value)| value)
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// Returns the parameters of a combination with their values.
    fn chosen(&self, choice: &[u64]) -> impl Iterator<Item = (&str, String)> {
        self.vary.iter().zip(choice).map(|(of, &index)| {
            let value = of.values.get(index).unwrap_or_default();
            (of.key.as_str(), value)
        })
    }

    /// # Errors
    /// Fails if this combination is not a valid system.
    pub fn row(&self, row: u64) -> miette::Result<Point> {
        self.point(&self.choice(row))
    }

    /// Returns the system file of a combination.
    fn file(&self, choice: &[u64]) -> miette::Result<DocumentMut> {
        let mut file = self.file.clone();
        for (key, value) in self.chosen(choice).filter(|(key, _)| edit::is_key(key)) {
            edit::set(&mut file, key, &value)?;
        }
        Ok(file)
    }

    /// Returns the options of a combination, and whether its run has Weir enabled.
    fn how(&self, choice: &[u64]) -> miette::Result<(How, bool)> {
        let (mut how, mut with) = (self.how.clone(), true);
        for (key, value) in self.chosen(choice).filter(|(key, _)| !edit::is_key(key)) {
            if key == RUN {
                with = match value.as_str() {
                    "with" => true,
                    "without" => false,
                    _ => {
                        return Err(miette!(
                            help = "a run is `with` or `without` limits, moderation and deferral",
                            "{RUN}={value}: there is no such run"
                        ));
                    }
                };
                continue;
            }
            match how.set(key, &value) {
                Some(Ok(())) => {}
                Some(Err(wrong)) => return Err(miette!("{key}={value}: {wrong}")),
                None => {
                    return Err(miette!(
                        help = format!(
                            "a parameter is a key of the system file (cpu.clock, source.NAME.limit.rate), one of {}, or {RUN}",
                            How::KEYS
                        ),
                        "`{key}` cannot be varied"
                    ));
                }
            }
        }
        Ok((how, with))
    }

    fn point(&self, choice: &[u64]) -> miette::Result<Point> {
        let (how, with) = self.how(choice)?;
        let system = weir_model::parse(&self.name, &self.file(choice)?.to_string())?;
        let (options, feeds) = how.options(&system)?;
        let options = if with {
            options
        } else {
            runs::without(&options)
        };
        Ok(Point {
            system,
            options,
            feeds,
            with,
        })
    }

    /// Returns a text that identifies this sweep.
    pub fn identity(&self) -> String {
        let mut text = format!("{}\n{:?}\n", self.file, self.how);
        for of in &self.vary {
            text += &format!("{}={}\n", of.key, of.values.text());
        }
        text
    }
}

/// Fails if the key does not exist in the format of system files. No value of such a key would be
/// valid.
fn refuse_unknown_key(name: &str, file: &DocumentMut, key: &str) -> miette::Result<()> {
    let Err(wrong) = weir_model::parse(name, &file.to_string()) else {
        return Ok(());
    };
    match wrong.problems().iter().find(|of| of.is_unknown_key()) {
        Some(problem) => Err(miette!(
            help = problem.advice().unwrap_or_default().to_owned(),
            "`{key}` cannot be varied: {problem}"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Options {
        #[command(flatten)]
        how: How,
    }

    fn grid(vary: &[&str]) -> Grid {
        let how = Options::parse_from(["sweep"]).how;
        let vary = vary.iter().map(|text| text.parse().unwrap()).collect();
        Grid::new("system.toml", "", &how, vary).unwrap()
    }

    #[test]
    fn only_the_values_of_the_rows_are_prepared() {
        let grid = grid(&["seed=1..4", "duration=1ms..3ms:1ms", "run=with,without"]);
        for (begin, end) in [(0, 24), (0, 1), (5, 6), (4, 9), (10, 14), (23, 24), (7, 7)] {
            for place in 0..3 {
                let mut prepared: Vec<u64> = grid.indices(place, &(begin..end)).collect();
                prepared.sort_unstable();
                let mut needed: Vec<u64> =
                    (begin..end).map(|row| grid.choice(row)[place]).collect();
                needed.sort_unstable();
                needed.dedup();
                assert_eq!(prepared, needed, "{begin}..{end} {place}");
            }
        }
    }
}
