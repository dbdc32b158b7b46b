// SPDX-License-Identifier: GPL-3.0-or-later
//! `weir-lab`: Weir on emulated hardware.
use std::process::ExitCode;

use clap::Parser;
use weir_lab::commands::{Cli, Outcome};

fn main() -> ExitCode {
    match Cli::parse().execute() {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::ClaimsNotMet) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::from(2)
        }
    }
}
