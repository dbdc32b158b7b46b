// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program `weir-linux`, which the command `weir linux` starts.
use std::process::ExitCode;

use weir_linux::commands::Cli;

fn main() -> ExitCode {
    weir_report::terminal::exit_code(weir_report::arguments::<Cli>().execute())
}
