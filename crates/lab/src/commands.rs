// SPDX-License-Identifier: GPL-3.0-or-later
//! The commands of `weir-lab`.
use std::io::{self, Write};

use clap::{Parser, Subcommand};
use miette::IntoDiagnostic;

pub mod reproduce;
pub mod run;

/// Weir on emulated hardware.
#[derive(Debug, Parser)]
#[command(name = "weir-lab", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Reproduce(reproduce::Args),
}

/// What a command that was carried out says to the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as it should be: 0.
    Good,
    /// It was carried out, and something that was claimed is not so: 1.
    ClaimsNotMet,
}

impl Cli {
    /// Carries the command out.
    ///
    /// # Errors
    /// Bad input, or something that it needs is missing: exit code 2.
    pub fn execute(self) -> miette::Result<Outcome> {
        match self.command {
            Command::Run(arguments) => run::execute(&arguments).map(|()| Outcome::Good),
            Command::Reproduce(arguments) => reproduce::execute(&arguments),
        }
    }
}

/// Prints a text and the end of its line.
fn print(text: &str) -> miette::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        // A reader who went away has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.into_diagnostic(),
    }
}
