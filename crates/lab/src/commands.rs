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

/// The outcome of a command that was carried out, for the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as claimed: 0.
    Good,
    /// The command was carried out, and a claim is not met: 1.
    ClaimsNotMet,
}

impl Cli {
    /// Carries the command out.
    ///
    /// # Errors
    /// Bad input, or a missing tool or file: exit code 2.
    pub fn execute(self) -> miette::Result<Outcome> {
        match self.command {
            Command::Run(arguments) => run::execute(&arguments).map(|()| Outcome::Good),
            Command::Reproduce(arguments) => reproduce::execute(&arguments),
        }
    }
}

/// Prints a text with a line break at its end.
fn print(text: &str) -> miette::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        // A reader that closes the pipe has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.into_diagnostic(),
    }
}
