// SPDX-License-Identifier: GPL-3.0-or-later
//! `weir-lab`: the papers' experiments.
use std::process::ExitCode;

use weir_lab::commands::Cli;

fn main() -> ExitCode {
    weir_report::terminal::exit_code(weir_report::arguments::<Cli>().execute())
}
