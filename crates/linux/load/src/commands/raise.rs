// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir-load raise`
use miette::IntoDiagnostic;
use serde_json::json;
use weir_report::terminal::print_answer;

use crate::place::{SchedPolicy, raise};

/// Give processes another scheduling policy, kernel threads among them
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The beginning of the names of the processes: ksoftirqd/0, napi/eth0-
    #[arg(value_name = "NAME")]
    beginning: String,

    /// other, batch, idle, fifo:50, rr:50
    #[arg(long)]
    policy: SchedPolicy,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  weir-load raise ksoftirqd/0 --policy fifo:98
  weir-load raise napi/eth0- --policy fifo:81

Only for machines that are set up for an experiment: the policies stay when weir-load ends.";

/// Executes the command.
///
/// # Errors
/// Fails if there is no such process, or if the system refuses the policy.
pub fn execute(arguments: &Args) -> miette::Result<()> {
    let raised = raise(&arguments.beginning, arguments.policy).into_diagnostic()?;
    print_answer(&json!({ "raised": raised }), arguments.json, || {
        format!("{}: {}", raised.join(", "), arguments.policy)
    })
}
