// SPDX-License-Identifier: GPL-3.0-or-later
//! The errors of experiments.
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use miette::{NamedSource, SourceSpan};

use weir_emulate::firmware::FirmwareError;
use weir_emulate::run::RunError;

/// An error that prevents an experiment from being carried out.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ExperimentError {
    /// No folder with experiments was found.
    #[error("cannot find Weir's repository: neither {} nor a folder above it has papers/experiments/ and core/", from.display())]
    #[diagnostic(help(
        "change into a clone of Weir's repository; `weir reproduce` also takes one by --root DIR"
    ))]
    NoRepository {
        /// The folder in which the search began.
        from: PathBuf,
    },
    /// There is no experiment of this name.
    #[error("there is no experiment `{name}`")]
    #[diagnostic(help("the experiments are: {}", known.join(", ")))]
    Unknown {
        /// The unknown name.
        name: String,
        /// The names of all experiments.
        known: Vec<String>,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
    /// An experiment's file is invalid.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(Box<FileError>),
    /// A cost of the board is needed but was never measured.
    #[error("{}: {what}", path.display())]
    #[diagnostic(help("measure the costs: weir reproduce regehr2005/table2"))]
    Costs {
        /// The path of the file of costs.
        path: PathBuf,
        /// The name of the missing cost.
        what: String,
    },
    /// The experiment has no quick form, but `--quick` was given.
    #[error("the experiment `{0}` has no quick form")]
    #[diagnostic(help(
        "run the experiment without --quick, or give its file a table `quick` with fewer points"
    ))]
    NotQuick(String),
    /// Measurements that should be committed are missing or invalid.
    #[error("{}: {what}", path.display())]
    #[diagnostic(help("repeat the measurements: weir reproduce NAME --measure"))]
    Data {
        /// The path of the file.
        path: PathBuf,
        /// A description of the error in the file.
        what: String,
    },
    /// The program that makes the committed measurements failed.
    #[error("{program} {what}")]
    #[diagnostic(help("the program's own message is above"))]
    Flow {
        /// The path of the program, relative to the repository's root.
        program: String,
        /// A description of the failure.
        what: String,
    },
    /// The experiment has no committed measurements, but `--measure` was given.
    #[error("the experiment `{0}` keeps no measurements: every run measures anew")]
    #[diagnostic(help("run the experiment without --measure"))]
    NothingKept(String),
    /// The experiment did not measure a claim of its file.
    #[error("the claim `{0}` was not measured")]
    Unmeasured(String),
    /// The measured values cannot be evaluated.
    #[error("{0}")]
    Evaluation(String),
    /// A system file is invalid.
    #[error(transparent)]
    #[diagnostic(transparent)]
    System(#[from] Box<weir_model::LoadError>),
    /// No code can be generated for a system.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Generate(#[from] Box<weir_generate::Refusal>),
    /// The firmware cannot be compiled.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Firmware(#[from] FirmwareError),
    /// The emulator or the simulator of the board is missing.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Target(#[from] Box<RunError>),
    /// A run failed.
    #[error("`{firmware}` cannot be run: {cause}")]
    Run {
        /// The name of the firmware.
        firmware: String,
        /// The cause of the failure.
        cause: Box<RunError>,
    },
    /// The ledger cannot be read.
    #[error("{}: {what}", path.display())]
    #[diagnostic(help("take the file from the last commit, or remove it and run `make bench`"))]
    Ledger {
        /// The path of the ledger, relative to the repository's root.
        path: PathBuf,
        /// A description of the error in the file.
        what: String,
    },
    /// The temporary folder for the firmware cannot be made.
    #[error("cannot make a folder for the firmware: {0}")]
    Workspace(io::Error),
}

/// An error in an experiment's file, with the place of the error.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{what}")]
pub struct FileError {
    /// A description of the error.
    pub what: String,
    /// A description of what would be correct.
    #[help]
    pub help: Option<String>,
    /// The file's name and text.
    #[source_code]
    pub source_code: NamedSource<String>,
    /// The place in the text.
    #[label("here")]
    pub span: Option<SourceSpan>,
}

/// Joins names to a list for messages.
pub(super) fn list(names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.join(", ")
}
