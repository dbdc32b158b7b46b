// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands of `weir-load`.
use clap::{Parser, Subcommand};
use miette::IntoDiagnostic;
use weir_report::terminal::Outcome;

use crate::bound::stop_on_signals;

mod ask;
mod drop;
mod raise;
mod receive;
mod send;
mod spin;

/// Real packets and real jobs for tests and experiments, bounded in time.
#[derive(Debug, Parser)]
#[command(name = "weir-load", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ask(ask::Args),
    Drop(drop::Args),
    Raise(raise::Args),
    Send(send::Args),
    Receive(receive::Args),
    Spin(spin::Args),
}

impl Cli {
    /// Executes the command.
    ///
    /// # Errors
    /// Fails with exit code 2 on bad input, or if the system refuses an operation.
    pub fn execute(self) -> miette::Result<Outcome> {
        stop_on_signals().into_diagnostic()?;
        match self.command {
            Command::Ask(arguments) => ask::execute(&arguments),
            Command::Drop(arguments) => drop::execute(&arguments),
            Command::Raise(arguments) => raise::execute(&arguments),
            Command::Send(arguments) => send::execute(&arguments),
            Command::Receive(arguments) => receive::execute(&arguments),
            Command::Spin(arguments) => spin::execute(&arguments),
        }?;
        Ok(Outcome::Good)
    }
}

/// Formats a time for a message, in the largest unit that suits.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn shown(nanoseconds: u64) -> String {
    let time = nanoseconds as f64;
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.1} us", time / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", time / 1e6),
        _ => format!("{:.3} s", time / 1e9),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_commands_are_well_formed() {
        assert_eq!(weir_report::faults::<super::Cli>(), Vec::<String>::new());
    }
}
