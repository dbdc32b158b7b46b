// SPDX-License-Identifier: MIT OR Apache-2.0
//! The grid of a sweep: every combination of the values of its parameters.
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;

use miette::{IntoDiagnostic, WrapErr, miette};
use toml_edit::DocumentMut;
use weir_model::System;
use weir_sim::Options;
use weir_sim::feeds::Feeds;

use super::edit;
use super::values::values;
use crate::simulate::how::How;
use crate::simulate::runs;

/// A parameter and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Vary {
    pub key: String,
    pub values: Vec<String>,
}

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write a parameter and its values, for example flood.eth=1kHz..20kHz:1kHz";
        let (key, of) = text.split_once('=').ok_or(form)?;
        Ok(Self {
            key: key.trim().to_owned(),
            values: values(of)?,
        })
    }
}

/// Parameter that selects one of the two runs of `weir simulate`.
const RUN: &str = "run";

/// All runs of a sweep.
#[derive(Debug)]
pub(super) struct Grid {
    /// Name of the system file.
    name: String,
    file: DocumentMut,
    how: How,
    /// Parameters; the last one changes fastest.
    pub vary: Vec<Vary>,
    rows: u64,
    /// Recordings that the floods play.
    files: BTreeSet<PathBuf>,
}

/// One combination, ready to run.
pub(super) struct Point {
    pub system: System,
    pub options: Options,
    pub feeds: Feeds,
    /// Whether the run has Weir, as the system is described.
    pub with: bool,
}

impl Grid {
    /// The grid over `system`, whose file has the `name` and the `text`.
    ///
    /// # Errors
    /// Fails if a parameter does not exist or is given twice, or an option's value cannot be used.
    pub fn new(
        name: &str,
        text: &str,
        system: &System,
        how: &How,
        vary: Vec<Vary>,
    ) -> miette::Result<Self> {
        let mut rows = 1_u64;
        for (place, of) in vary.iter().enumerate() {
            if vary[..place].iter().any(|other| other.key == of.key) {
                return Err(miette!(
                    help = "list all its values at one place",
                    "`{}` is varied twice",
                    of.key
                ));
            }
            let many = u64::try_from(of.values.len()).into_diagnostic()?;
            rows = rows.checked_mul(many).ok_or_else(|| {
                miette!(
                    help = "vary fewer parameters, or in larger steps",
                    "there are more than 2^64 combinations"
                )
            })?;
        }
        let mut grid = Self {
            name: name.to_owned(),
            file: text.parse().into_diagnostic()?,
            how: how.clone(),
            vary,
            rows,
            files: BTreeSet::new(),
        };
        let first = vec![0; grid.vary.len()];
        let mut feeds = Vec::new();
        for (place, of) in grid.vary.iter().enumerate() {
            for (index, value) in of.values.iter().enumerate() {
                let mut choice = first.clone();
                choice[place] = index;
                // Whether the file accepts a value may depend on other values. Whether an option
                // accepts it does not, so all are checked here.
                let (file, how, _) = grid.chosen(&choice)?;
                if edit::is_key(&of.key) {
                    if index == 0 {
                        refuse_unknown_key(name, &file, &of.key)?;
                    }
                } else {
                    let named = || format!("{}={value}", of.key);
                    feeds.push(how.options(system).wrap_err_with(named)?.1);
                }
            }
        }
        let (_, how, _) = grid.chosen(&first)?;
        feeds.push(how.options(system)?.1);
        let files = feeds.iter().flat_map(Feeds::files);
        grid.files = files.map(ToOwned::to_owned).collect();
        Ok(grid)
    }

    /// Files that the runs read, apart from the system's.
    pub fn files(&self) -> &BTreeSet<PathBuf> {
        &self.files
    }

    /// Number of combinations.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Index of each parameter's value in this combination.
    fn choice(&self, row: u64) -> Vec<usize> {
        let mut left = row;
        let mut choice: Vec<usize> = self
            .vary
            .iter()
            .rev()
            .map(|of| {
                let many = of.values.len() as u64;
                let index = left % many;
                left /= many;
                index as usize
            })
            .collect();
        choice.reverse();
        choice
    }

    /// Values of a combination.
    pub fn values(&self, row: u64) -> impl Iterator<Item = &str> {
        let choice = self.choice(row).into_iter();
        self.vary
            .iter()
            .zip(choice)
            .map(|(of, index)| of.values[index].as_str())
    }

    /// # Errors
    /// Fails if this combination is no system.
    pub fn row(&self, row: u64) -> miette::Result<Point> {
        self.point(&self.choice(row))
    }

    /// The file and the options of a combination, and whether the run has Weir.
    fn chosen(&self, choice: &[usize]) -> miette::Result<(DocumentMut, How, bool)> {
        let (mut file, mut how, mut with) = (self.file.clone(), self.how.clone(), true);
        for (of, &index) in self.vary.iter().zip(choice) {
            let (key, value) = (of.key.as_str(), of.values[index].as_str());
            if edit::is_key(key) {
                edit::set(&mut file, key, value)?;
            } else if key == RUN {
                with = match value {
                    "with" => true,
                    "without" => false,
                    _ => {
                        return Err(miette!(
                            help = "a run is `with` or `without` limits, moderation and deferral",
                            "{RUN}={value}: there is no such run"
                        ));
                    }
                };
            } else {
                match how.set(key, value) {
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
        }
        Ok((file, how, with))
    }

    fn point(&self, choice: &[usize]) -> miette::Result<Point> {
        let (file, how, with) = self.chosen(choice)?;
        let system = weir_model::parse(&self.name, &file.to_string())?;
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

    /// Text that distinguishes this sweep from others.
    pub fn identity(&self) -> String {
        let mut text = format!("{}\n{:?}\n", self.file, self.how);
        for of in &self.vary {
            text += &format!("{}={}\n", of.key, of.values.join(","));
        }
        text
    }
}

/// Fails if the file has a key that no file has: no value of it makes a system.
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
