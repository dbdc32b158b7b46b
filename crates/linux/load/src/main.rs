// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir-load`: real packets and real jobs for tests and experiments.
use std::process::ExitCode;

use weir_load::commands::Cli;

fn main() -> ExitCode {
    weir_report::terminal::exit_code(weir_report::arguments::<Cli>().execute())
}
