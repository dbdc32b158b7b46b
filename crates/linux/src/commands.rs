// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands of `weir linux`.
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use miette::IntoDiagnostic as _;
use weir_model::LinuxMode;
use weir_report::clean_up_when_interrupted;
use weir_report::terminal::Outcome;

use crate::machine::{Capability, Lacks, Machine, listed};
use crate::settings::journal;
use crate::system::Node;

pub mod inspect;
pub mod install;
pub mod plan;
pub mod run;
pub mod status;
pub mod stop;
pub mod top;
pub mod uninstall;

/// Gives interrupts on a Linux machine the urgency of the processes that they are for.
#[derive(Debug, Parser)]
#[command(
    name = "weir-linux",
    bin_name = "weir linux",
    version,
    max_term_width = 100,
    after_help = "`weir linux COMMAND --help` explains a command; docs/linux.md explains the modes and what each costs.",
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Inspect(inspect::Args),
    Install(install::Args),
    Plan(plan::Args),
    Run(run::Args),
    Status(status::Args),
    Stop(stop::Args),
    Top(top::Args),
    Uninstall(uninstall::Args),
}

impl Cli {
    /// Executes the command.
    ///
    /// # Errors
    /// Fails with exit code 2 on bad input, or if something that the command needs is missing.
    pub fn execute(self) -> miette::Result<Outcome> {
        // The other commands write no files that must be complete, and `run` handles signals
        // itself.
        if matches!(self.command, Command::Inspect(_) | Command::Install(_)) {
            clean_up_when_interrupted().into_diagnostic()?;
        }
        match self.command {
            Command::Inspect(arguments) => inspect::execute(&arguments),
            Command::Install(arguments) => install::execute(&arguments),
            Command::Plan(arguments) => plan::execute(&arguments),
            Command::Run(arguments) => run::execute(&arguments),
            Command::Status(arguments) => status::execute(&arguments),
            Command::Stop(arguments) => stop::execute(&arguments),
            Command::Top(arguments) => top::execute(&arguments),
            Command::Uninstall(arguments) => uninstall::execute(&arguments),
        }
    }
}

/// The way in which bottom halves get their receivers' urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Each interface's threads have the urgency of its most urgent receiver
    Native,
    /// They have the urgency of the most urgent receiver that waits for a packet
    Predicted,
    /// Each packet is given to the thread of its receiver's urgency, by an XDP program
    Exact,
}

impl Mode {
    const fn linux_mode(self) -> LinuxMode {
        match self {
            Self::Native => LinuxMode::Native,
            Self::Predicted => LinuxMode::Predicted,
            Self::Exact => LinuxMode::Exact,
        }
    }
}

/// The system file that a command works on.
#[derive(Debug, clap::Args)]
struct SystemArgs {
    /// The description of the system
    #[arg(value_name = "SYSTEM.toml", value_hint = ValueHint::FilePath)]
    system: PathBuf,

    /// Take this mode in place of the file's
    #[arg(long)]
    mode: Option<Mode>,
}

impl SystemArgs {
    /// Reads the file, and returns the part of the system that this machine runs.
    fn node(&self) -> miette::Result<Node> {
        let system = weir_model::load(&self.system)?;
        Ok(Node::new(&system, self.mode.map(Mode::linux_mode))?)
    }
}

/// The folder in which running systems are recorded.
#[derive(Debug, clap::Args)]
struct StateArgs {
    /// The folder in which what runs, and what is to be put back, is noted
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, default_value = journal::FOLDER)]
    state: PathBuf,
}

/// Fails if this machine cannot do what `node` asks for. `trusted` means that packets count as
/// having checksums where that cannot be checked.
fn able(node: &Node, trusted: bool) -> miette::Result<()> {
    let all = Machine::here(node).into_diagnostic()?.lacks(node, trusted);
    if all.is_empty() {
        Ok(())
    } else {
        Err(Lacks { all }.into())
    }
}

/// Fails with the hint `help` if this process lacks one of the capabilities `needed` to see `what`.
/// The kernel's own error would not name the capability.
fn able_to_see(what: &str, needed: &[Capability], help: &str) -> miette::Result<()> {
    let missing = Capability::lacking(needed).into_diagnostic()?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(miette::miette!(
        help = help.to_owned(),
        "{what} cannot be seen: only root may, or a process with {}",
        listed(&missing)
    ))
}

/// Longest path of a control group that tables show in full, in characters.
const CGROUP: usize = 32;

/// Shortens the path of a control group for a table. The end is kept, since it says more than the
/// beginning.
fn end_of(path: &str) -> String {
    let length = path.chars().count();
    if length <= CGROUP {
        return path.to_owned();
    }
    let end = path.chars().skip(length - CGROUP + 1);
    std::iter::once('…').chain(end).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_commands_are_well_formed() {
        assert_eq!(weir_report::faults::<super::Cli>(), Vec::<String>::new());
    }
}
