// SPDX-License-Identifier: GPL-3.0-or-later
//! The work that can be run: each experiment in each of its forms, and the product's long tests.
use std::fmt;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::experiment::{Checkout, ExperimentError, Head};

/// The path of the script that runs the product's long tests, relative to the repository's root.
pub(super) const LONG: &str = "scripts/long.sh";

/// The form of a run: how much of an experiment is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// The part that the experiment's file states for `--quick`.
    Short,
    /// The whole experiment.
    Whole,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "short",
            Self::Whole => "whole",
        })
    }
}

/// An experiment in one of its forms, or a long test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The experiment, such as regehr2005/fig1, or the long test, such as long/core.
    pub name: String,
    /// The form in which the experiment runs.
    pub form: Form,
    /// Whether the work takes so long that only `weir-lab bench` runs it.
    pub is_for_bench: bool,
    /// The kind of the experiment, or `long` for a long test.
    pub kind: String,
    /// The experiments of the same paper whose keys this one inherits.
    pub bases: Vec<String>,
}

impl Work {
    /// The name of the long test. `None` if the work is an experiment.
    #[must_use]
    pub fn long_test(&self) -> Option<&str> {
        self.name.strip_prefix("long/")
    }
}

/// Lists all work: first the short forms, then the whole forms, then the long tests.
///
/// # Errors
/// Returns an error if an experiment cannot be read, or if the script of the long tests is missing.
pub fn all(place: &Checkout) -> Result<Vec<Work>, ExperimentError> {
    let mut all = Vec::new();
    for name in place.names() {
        let head = Head::load(place, &name)?;
        let is_for_bench = head.is_for_bench;
        let of = |form, is_for_bench| Work {
            name: name.clone(),
            form,
            is_for_bench,
            kind: head.kind.clone(),
            bases: head.bases.clone(),
        };
        if head.has_short_form {
            all.push(of(Form::Short, is_for_bench));
            all.push(of(Form::Whole, true));
        } else {
            all.push(of(Form::Whole, is_for_bench));
        }
    }
    for name in long_tests(place)? {
        all.push(Work {
            name: format!("long/{name}"),
            form: Form::Whole,
            is_for_bench: false,
            kind: "long".to_owned(),
            bases: Vec::new(),
        });
    }
    Ok(all)
}

fn long_tests(place: &Checkout) -> Result<Vec<String>, ExperimentError> {
    let listed = Command::new(place.path(LONG)).arg("--list").output();
    let listed = listed.map_err(|cause| ExperimentError::Read {
        path: place.path(LONG),
        cause,
    })?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(text.lines().map(str::to_owned).collect())
}
