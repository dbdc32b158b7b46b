// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir-load drop`
use miette::IntoDiagnostic;
use serde_json::json;
use weir_report::terminal::print_answer;

use crate::bound::Time;
use crate::drop::Drops;

/// Drop all packets of an interface by XDP, which is the least that a packet can cost
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The interface; nothing is received over it meanwhile
    #[arg(value_name = "NAME")]
    interface: String,

    /// For how long, at most 10 minutes
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    time: Time,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  weir-load drop eth0 --for 5s

Prints `ready` to its standard error once packets are dropped. Only for machines that are set up for \
an experiment: a user who is logged in over the interface is cut off.";

/// Executes the command.
///
/// # Errors
/// Fails if there is no such interface, or if the kernel or the driver refuses the program.
pub fn execute(arguments: &Args) -> miette::Result<()> {
    let drops = Drops {
        interface: arguments.interface.clone(),
        time: arguments.time,
    };
    drops.run(|| eprintln!("ready")).into_diagnostic()?;
    let found = json!({ "interface": arguments.interface });
    print_answer(&found, arguments.json, || {
        format!("{}: all packets were dropped", arguments.interface)
    })
}
