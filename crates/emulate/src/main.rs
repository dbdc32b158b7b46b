// SPDX-License-Identifier: GPL-3.0-or-later
//! `weir-run`: the command `weir run`, a program of its own because it links simavr (GPL-3).
use std::process::ExitCode;

use clap::Parser;
use miette::IntoDiagnostic;
use weir_emulate::command;
use weir_report::terminal::{Outcome, exit_code};
use weir_report::{arguments, clean_up_when_interrupted};

#[derive(Debug, Parser)]
#[command(name = "weir run", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    run: command::Args,
}

fn main() -> ExitCode {
    let cli = arguments::<Cli>();
    let outcome = clean_up_when_interrupted()
        .into_diagnostic()
        .and_then(|()| command::execute(&cli.run));
    exit_code(outcome.map(|()| Outcome::Good))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_is_well_formed() {
        assert_eq!(weir_report::faults::<super::Cli>(), Vec::<String>::new());
    }
}
