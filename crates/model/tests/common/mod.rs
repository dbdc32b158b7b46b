// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of system files have in common.
#![allow(dead_code, reason = "not every test needs all of it")]
use std::path::PathBuf;

use weir_model::{Diagnostics, System};

/// The system of a text that must be good.
pub fn parsed(text: &str) -> System {
    weir_model::parse("system.toml", text).unwrap_or_else(|error| panic!("{}", shown(&error)))
}

/// The errors of a text that must be bad.
pub fn refused(text: &str) -> Diagnostics {
    match weir_model::parse("system.toml", text) {
        Ok(system) => panic!("was taken for {system:#?}"),
        Err(error) => error,
    }
}

/// A file of examples/.
pub fn example_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
        .join("system.toml")
}

/// The system of an example.
pub fn example(name: &str) -> System {
    weir_model::load(&example_path(name)).unwrap_or_else(|error| panic!("{error:?}"))
}

/// Errors as the user reads them.
pub fn shown(error: &dyn miette::Diagnostic) -> String {
    let mut text = String::new();
    miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor())
        .with_width(120)
        .render_report(&mut text, error)
        .unwrap();
    text
}
