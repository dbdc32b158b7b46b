// SPDX-License-Identifier: GPL-3.0-or-later
//! The commands of `weir-lab`.
use clap::{Parser, Subcommand};
use miette::IntoDiagnostic as _;
use weir_report::clean_up_when_interrupted;
use weir_report::terminal::Outcome;

/// Prints a line to stdout. A write error is ignored, because the reader of a pipe may have exited.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// Prints a line to stderr. A write error is ignored.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

pub mod bench;
pub mod due;
pub mod reproduce;

/// The papers' experiments.
#[derive(Debug, Parser)]
#[command(name = "weir-lab", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Reproduce(reproduce::Args),
    Bench(bench::Args),
    Due(due::Args),
}

impl Cli {
    /// Executes the command.
    ///
    /// # Errors
    /// Returns an error (exit code 2) if the input is invalid, or if a tool or a file is missing.
    pub fn execute(self) -> miette::Result<Outcome> {
        clean_up_when_interrupted().into_diagnostic()?;
        match self.command {
            Command::Reproduce(arguments) => reproduce::execute(&arguments),
            Command::Bench(arguments) => bench::execute(&arguments),
            Command::Due(arguments) => due::execute(&arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_commands_are_well_formed() {
        assert_eq!(weir_report::faults::<super::Cli>(), Vec::<String>::new());
    }
}
