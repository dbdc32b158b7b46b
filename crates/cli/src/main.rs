// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir`: analyses systems, and starts the programs that emulate and measure them.
//!
//! The commands that need only a system file are modules of this program. Every other command is
//! passed to a separate program, as git does, so that users who emulate nothing need not install an
//! emulator.
mod check;
mod compiler;
mod delegate;
mod generate;
mod input;
mod output;
mod simulate;
mod sweep;
mod tables;
mod tune;
mod verify;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use miette::IntoDiagnostic;
use weir_report::terminal::exit_code;
use weir_report::{arguments, arguments_from, clean_up_when_interrupted};

use delegate::{ForwardedArgs, LAB, LINUX, RUN};

/// Keeps interrupts from starving the work that matters
#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    max_term_width = 100,
    after_help = "`weir COMMAND --help` explains a command.",
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands in the order in which users need them: from a description to a proof, then to what
/// runs.
#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Args),
    Tune(tune::Args),
    Verify(verify::Args),
    Simulate(simulate::Args),
    Sweep(sweep::Args),
    Generate(generate::Args),
    /// Run a firmware on an emulated board, flood its pins, and show where the cycles went
    #[command(disable_help_flag = true)]
    Run(ForwardedArgs),
    /// Give interrupts on this Linux machine the urgency of the processes that they are for
    #[command(disable_help_flag = true)]
    Linux(ForwardedArgs),
    /// Reproduce a figure or table of a paper, beside the paper's values
    #[command(disable_help_flag = true)]
    Reproduce(ForwardedArgs),
    /// Explain a command
    Help {
        /// The command, and one of its own commands if it has any: check, or linux plan
        #[arg(value_name = "COMMAND")]
        command: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let command = arguments::<Cli>().command;
    match clean_up_when_interrupted().into_diagnostic() {
        Ok(()) => execute(command),
        Err(error) => exit_code(Err(error)),
    }
}

fn execute(command: Command) -> ExitCode {
    let outcome = match command {
        Command::Check(arguments) => check::execute(&arguments),
        Command::Tune(arguments) => tune::execute(&arguments),
        Command::Verify(arguments) => verify::execute(&arguments),
        Command::Simulate(arguments) => simulate::execute(&arguments),
        Command::Sweep(arguments) => sweep::execute(&arguments),
        Command::Generate(arguments) => generate::execute(&arguments),
        Command::Run(arguments) => return RUN.run(None, arguments),
        Command::Linux(arguments) => return LINUX.run(None, arguments),
        Command::Reproduce(arguments) => return LAB.run(Some("reproduce"), arguments),
        Command::Help { command } => {
            let words = [OsString::from("weir")].into_iter().chain(command);
            let words = words.chain([OsString::from("--help")]);
            return execute(arguments_from::<Cli>(words).command);
        }
    };
    exit_code(outcome)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_commands_are_well_formed() {
        assert_eq!(weir_report::faults::<super::Cli>(), Vec::<String>::new());
    }
}
