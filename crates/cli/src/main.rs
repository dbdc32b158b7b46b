// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir`: hands each command to the program that knows it, as git does. Whoever does not emulate installs no emulator.
mod delegate;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Arg, ArgAction, Command};

use delegate::Program;

/// The emulated boards and the experiments.
const LAB: Program = Program {
    name: "weir-lab",
    package: "crates/lab",
};

/// Every command there is: its name, what it is for, and who knows it.
const COMMANDS: &[(&str, &str, Program)] = &[
    (
        "run",
        "Run a firmware on an emulated board, flood its pins, and show where the cycles went",
        LAB,
    ),
    (
        "reproduce",
        "Reproduce a figure or table of a paper, beside the paper's values",
        LAB,
    ),
];

fn command() -> Command {
    let arguments = || {
        Arg::new("arguments")
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .action(ArgAction::Append)
            .value_parser(clap::value_parser!(OsString))
    };
    COMMANDS.iter().fold(
        Command::new("weir")
            .version(env!("CARGO_PKG_VERSION"))
            .about("Keeps interrupts from starving the work that matters")
            .after_help("`weir COMMAND --help` explains a command.")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .disable_help_subcommand(true),
        |weir, (name, about, _)| {
            weir.subcommand(
                Command::new(*name)
                    .about(*about)
                    // --help is for the program that knows the command.
                    .disable_help_flag(true)
                    .arg(arguments()),
            )
        },
    )
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let Some((name, rest)) = matches.subcommand() else {
        return ExitCode::from(delegate::FAILED);
    };
    let Some((_, _, program)) = COMMANDS.iter().find(|(known, _, _)| *known == name) else {
        return ExitCode::from(delegate::FAILED);
    };
    let arguments = rest
        .get_many::<OsString>("arguments")
        .into_iter()
        .flatten()
        .cloned();
    program.run(std::iter::once(OsString::from(name)).chain(arguments))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_commands_are_well_formed() {
        super::command().debug_assert();
    }
}
