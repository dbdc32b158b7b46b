// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of system files have in common.
pub mod invariants;

use std::path::PathBuf;

use weir_model::{Diagnostics, Problem, System};

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

/// The text without the marks, and what stood between them.
pub fn unmarked(marked: &str) -> (String, std::ops::Range<usize>) {
    let (before, rest) = marked.split_once('«').expect("a mark «");
    let (inner, after) = rest.split_once('»').expect("a mark »");
    let text = format!("{before}{inner}{after}");
    (text, before.len()..before.len() + inner.len())
}

/// `marked` has the one error `message` at its mark, and the help says `help`.
pub fn says(marked: &str, message: &str, help: &str) -> Problem {
    let (text, place) = unmarked(marked);
    let error = refused(&text);
    let all = shown(&error);
    let [problem] = error.problems() else {
        panic!("not one error in\n{text}\n{all}");
    };
    assert!(
        problem.message().contains(message),
        "no `{message}` in\n{all}"
    );
    let advice = problem.advice().unwrap_or_default();
    assert!(advice.contains(help), "no `{help}` in\n{all}");
    let span = problem.spans().next().expect("a label");
    let labelled = span.offset()..span.offset() + span.len();
    assert!(
        labelled == place,
        "labels `{}` in place of `{}`:\n{all}",
        &text[labelled],
        &text[place]
    );
    problem.clone()
}

/// A board, and then `rest`.
pub fn on_board(rest: &str) -> String {
    format!("schema = 1\n[cpu]\nboard = \"atmega128\"\nclock = \"16MHz\"\n{rest}")
}

/// The same with the flavour `fast`, at 4 MHz.
pub fn on_fast(rest: &str) -> String {
    format!(
        "schema = 1\n[cpu]\nboard = \"atmega128\"\nflavour = \"fast\"\nclock = \"4MHz\"\n{rest}"
    )
}

/// A source on a line with `rest` of its keys.
pub fn source(rest: &str) -> String {
    on_board(&format!(
        "[[source]]\nname = \"a\"\nvector = \"INT0\"\nhandler = \"10 cycles\"\n{rest}"
    ))
}

pub fn task(rest: &str) -> String {
    on_board(&format!("[[receiver]]\nname = \"t\"\nurgency = 1\n{rest}"))
}

/// A shared timer `s`.
pub const SHARED: &str = "[[timer]]\nname = \"s\"\nchannel = \"TIMER1A\"\nrate = \"100Hz\"\n";

/// A source `name` on `line` with this limit.
pub fn limited(name: &str, line: &str, limit: &str) -> String {
    format!(
        "[[source]]\nname = \"{name}\"\nvector = \"{line}\"\nhandler = \"1us\"\nlimit = {{ {limit} }}\n"
    )
}

/// A system without a board: `cpu` in its first section, then `rest`.
pub fn own(cpu: &str, rest: &str) -> String {
    format!(
        "schema = 1\n[cpu]\nclock = \"8MHz\"\ninterrupts = \"flat\"\nlongest_instruction = \"4 cycles\"\n{cpu}\n{rest}"
    )
}

/// The costs of a source without a limit.
pub const LIMITER_OFF: &str = "costs.off.request_served = \"20 cycles\"";
