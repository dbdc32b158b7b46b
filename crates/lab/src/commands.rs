// SPDX-License-Identifier: GPL-3.0-or-later
//! The commands of `weir-lab`.
use clap::{Parser, Subcommand};
use weir_report::terminal::Outcome;

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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use weir_report::terminal::broken_by_hand;

    #[test]
    fn the_commands_are_well_formed() {
        super::Cli::command().debug_assert();
    }

    /// A paragraph of help is one line, which the terminal breaks.
    #[test]
    fn no_help_is_broken_by_hand() {
        let all = super::Cli::command();
        for command in all.get_subcommands().chain([&all]) {
            let texts = [command.get_after_help(), command.get_after_long_help()];
            let arguments = command.get_arguments().map(clap::Arg::get_long_help);
            for help in texts.into_iter().chain(arguments).flatten() {
                assert_eq!(broken_by_hand(&help.to_string()), None);
            }
        }
    }
}
