// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir-linux`, which `weir linux` starts.
use std::process::ExitCode;

use clap::Parser;
use weir_linux::commands::{Cli, Outcome};

fn main() -> ExitCode {
    match Cli::parse().execute() {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::from(2)
        }
    }
}
