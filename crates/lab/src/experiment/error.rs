// SPDX-License-Identifier: GPL-3.0-or-later
//! Why an experiment did not happen.
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use miette::{NamedSource, SourceSpan};

use weir_board::firmware::FirmwareError;
use weir_board::run::RunError;
use weir_board::soc::SimulatorError;

/// Why an experiment did not happen.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ExperimentError {
    /// There is no repository to take experiments from.
    #[error("there is no experiment here: neither {} nor a folder above it has experiments/ and core/", from.display())]
    #[diagnostic(help("change into a clone of Weir's repository, or give it with --root DIR"))]
    NoRepository {
        /// The folder in which the search began.
        from: PathBuf,
    },
    /// There is no experiment of this name.
    #[error("there is no experiment `{name}`")]
    #[diagnostic(help("the experiments are: {}", known.join(", ")))]
    Unknown {
        /// The name.
        name: String,
        /// Those that exist.
        known: Vec<String>,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// An experiment's file is not as it should be.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(Box<FileError>),
    /// The board's costs are needed and were never measured.
    #[error("{}: {what}", path.display())]
    #[diagnostic(help("measure them: weir reproduce regehr2005/table2"))]
    Costs {
        /// The file of costs.
        path: PathBuf,
        /// What is missing in it.
        what: String,
    },
    /// There is no shorter form of it.
    #[error("`{0}` has no quick form")]
    #[diagnostic(help(
        "run it without --quick, or give its file a table `quick` with fewer points"
    ))]
    NotQuick(String),
    /// Measurements that are kept in the repository are not there, or not as they should be.
    #[error("{}: {what}", path.display())]
    #[diagnostic(help("measure anew: weir reproduce NAME --measure"))]
    Data {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// What makes them failed.
    #[error("{program} {what}")]
    #[diagnostic(help("its own message is above"))]
    Flow {
        /// The program, from the repository's root.
        program: String,
        /// What became of it.
        what: String,
    },
    /// The experiment keeps no measurements.
    #[error("`{0}` is measured each time: nothing is kept that could be measured anew")]
    #[diagnostic(help("run it without --measure"))]
    NothingKept(String),
    /// A claim of the file was not measured.
    #[error("nothing measured the claim `{0}`")]
    Unmeasured(String),
    /// What was measured cannot be evaluated.
    #[error("{0}")]
    Evaluation(String),
    /// A system file is not as it should be.
    #[error(transparent)]
    #[diagnostic(transparent)]
    System(#[from] Box<weir_model::LoadError>),
    /// No code can be generated for a system.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Generate(#[from] Box<weir_generate::Refused>),
    /// No firmware.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Firmware(#[from] FirmwareError),
    /// The simulator of the board is not there.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Simulator(#[from] SimulatorError),
    /// A run failed.
    #[error("`{firmware}` cannot be run: {cause}")]
    Run {
        /// Whose run.
        firmware: String,
        /// Why.
        cause: Box<RunError>,
    },
    /// A place for the firmware cannot be made.
    #[error("cannot make a folder for the firmware: {0}")]
    Workspace(io::Error),
}

/// What is wrong with an experiment's file, and where.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{what}")]
pub struct FileError {
    /// What is wrong.
    pub what: String,
    /// What would be right.
    #[help]
    pub help: Option<String>,
    /// The file.
    #[source_code]
    pub source_code: NamedSource<String>,
    /// The place in it.
    #[label("here")]
    pub span: Option<SourceSpan>,
}

/// Names, for messages.
pub(super) fn list(names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.join(", ")
}
