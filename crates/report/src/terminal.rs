// SPDX-License-Identifier: MIT OR Apache-2.0
//! Terminal output and exit codes.
mod excerpt;

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use miette::{
    Diagnostic, IntoDiagnostic as _, MietteHandler, MietteHandlerOpts, Report, ReportHandler as _,
};
use serde::Serialize;
use terminal_size::terminal_size_of;

use excerpt::ExcerptDiagnostic;

/// The most columns of running text, and of tables that do not go to a terminal but to logs, mails
/// and pages.
pub const WIDTH: u16 = 100;

/// The fewest columns of a table. A narrower table could not be read.
const NARROWEST: u16 = 40;

/// Returns the width of tables in columns. If standard output is a terminal, this is the terminal's
/// width or the value of the variable COLUMNS, else [`WIDTH`].
#[must_use]
pub fn width() -> u16 {
    if !io::stdout().is_terminal() {
        return WIDTH;
    }
    let stated = std::env::var("COLUMNS").ok();
    let stated = stated.and_then(|columns| columns.parse::<u16>().ok());
    stated
        .filter(|columns| *columns > 0)
        .or_else(|| Some(terminal_size_of(io::stdout())?.0.0))
        .map_or(WIDTH, |columns| columns.max(NARROWEST))
}

/// The exit code of a command that could not be carried out.
pub const FAILED: u8 = 2;

/// The answer of a command that was carried out successfully.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as it should be. The exit code is 0.
    Good,
    /// The answer is negative. The exit code is 1.
    Bad,
    /// The answer is positive, but for a part of the question only. The exit code is 3.
    Partial,
}

impl Outcome {
    /// Returns [`Outcome::Good`] if `is_good` is true, and [`Outcome::Bad`] otherwise.
    #[must_use]
    pub const fn good_if(is_good: bool) -> Self {
        if is_good { Self::Good } else { Self::Bad }
    }
}

/// Returns the exit code of a program whose command returned `result`. Prints the error, if there
/// is one.
#[must_use]
pub fn exit_code(result: miette::Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::from(1),
        Ok(Outcome::Partial) => ExitCode::from(3),
        Err(error) => {
            eprintln!("{}", described(&error));
            ExitCode::from(FAILED)
        }
    }
}

/// Formats `error` for a user. Causes that the message already contains are left out. Control
/// characters, which a file name may contain, are escaped, because a terminal would execute them.
fn described(error: &Report) -> String {
    let message = error.to_string();
    let is_told = error
        .chain()
        .all(|cause| message.contains(&cause.to_string()));
    let options = || match is_told {
        true => MietteHandlerOpts::new().without_cause_chain(),
        false => MietteHandlerOpts::new(),
    };
    let short = ExcerptDiagnostic::new(error.as_ref());
    let mut shown: &dyn Diagnostic = error.as_ref();
    let render = |shown, options: MietteHandlerOpts| Rendering(shown, options.build()).to_string();
    let mut plain = render(shown, options().color(false));
    if plain
        .lines()
        .any(|line| line.chars().count() > LONGEST_LINE)
    {
        shown = &short;
        plain = render(shown, options().color(false));
    }
    let escaped: Vec<String> = plain.split('\n').map(printable).collect();
    let escaped = escaped.join("\n");
    if escaped == plain {
        render(shown, options())
    } else {
        escaped
    }
}

/// The longest line of a file that an error message shows completely.
const LONGEST_LINE: usize = 300;

/// An error with the handler that formats it.
struct Rendering<'a>(&'a dyn Diagnostic, MietteHandler);

impl fmt::Display for Rendering<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1.debug(self.0, f)
    }
}

/// Prints `text` and a line end. It is no error if the reader has closed the pipe.
///
/// # Errors
/// Fails if standard output cannot be written to.
pub fn print(text: &str) -> miette::Result<()> {
    print_more(text).map(|_| ())
}

/// Prints one of several texts as [`print()`] does. Returns false if the reader has closed the
/// pipe.
///
/// # Errors
/// Fails if standard output cannot be written to.
pub fn print_more(text: &str) -> miette::Result<bool> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        other => other.into_diagnostic().map(|()| true),
    }
}

/// Prints `value` as indented JSON.
///
/// # Errors
/// Fails if `value` has no JSON form, or if standard output cannot be written to.
pub fn print_json(value: &impl Serialize) -> miette::Result<()> {
    print(&serde_json::to_string_pretty(value).into_diagnostic()?)
}

/// Prints `value` as JSON if the user asked for JSON, else `text`.
///
/// # Errors
/// Fails if `value` has no JSON form, or if standard output cannot be written to.
pub fn print_answer(
    value: &impl Serialize,
    json: bool,
    text: impl FnOnce() -> String,
) -> miette::Result<()> {
    if json {
        print_json(value)
    } else {
        print(&text())
    }
}

/// Returns whether to use colours on standard output: it is a terminal, and the user has not
/// disabled colours (<https://no-color.org>).
#[must_use]
pub fn is_coloured() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Breaks `text` into lines of at most [`WIDTH`] columns, or as many as the terminal has. The first
/// begins with `first`, the others
/// with `other`.
#[must_use]
pub fn wrapped(text: &str, first: &str, other: &str) -> String {
    let options = textwrap::Options::new(width().min(WIDTH).into())
        .initial_indent(first)
        .subsequent_indent(other);
    textwrap::fill(text, options)
}

/// Finds a help text that is broken into lines by hand. Returns its first such line joined with the
/// line that continues it. A narrow terminal would break these lines again in other places, so each
/// paragraph of a help text should be one line.
#[must_use]
pub fn broken_by_hand(help: &str) -> Option<String> {
    let lines: Vec<&str> = help.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let goes_on = |pair: &&[&str]| {
        let [line, next] = pair else {
            return false;
        };
        let ends = line.is_empty() || line.ends_with(':') || line.ends_with('\\');
        let is_prose = indent(line) == 0 && indent(next) == 0;
        !ends && !next.is_empty() && (is_prose || indent(next) > indent(line))
    };
    lines.windows(2).find(goes_on).map(|pair| pair.join("\n"))
}

/// Formats a path or another external text without control characters, which would act on the
/// terminal.
#[must_use]
pub fn printable(text: impl AsRef<OsStr>) -> String {
    let text = text.as_ref().to_string_lossy();
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use miette::{NamedSource, SourceSpan, WrapErr as _, miette};

    use super::*;

    #[test]
    fn an_error_tells_each_cause_once() {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let cause = missing().to_string();
        let told = crate::WriteError {
            path: "a".into(),
            cause: missing(),
        };
        for report in [
            Report::from_err(told),
            Err::<(), _>(missing())
                .into_diagnostic()
                .wrap_err("cannot read a")
                .unwrap_err(),
        ] {
            let text = described(&report);
            assert_eq!(text.matches(&cause).count(), 1, "{text}");
        }
    }

    #[test]
    fn an_error_has_no_control_characters_of_a_name() {
        let text = described(&miette!("cannot read \u{1b}[31mred"));
        assert!(text.contains("\\u{1b}[31mred"), "{text}");
    }

    #[test]
    fn an_error_in_a_long_line_shows_the_surroundings_of_its_label() {
        #[derive(Debug, thiserror::Error, Diagnostic)]
        #[error("a slip")]
        struct Slip {
            #[source_code]
            file: NamedSource<String>,
            #[label("here")]
            label: SourceSpan,
        }
        for (label, place) in [((8005, 5), ":2:8004"), ((3, 8_000), ":2:2")] {
            let text = format!("a\nb{}wrong{}\nc", "ä".repeat(4001), " ".repeat(5000));
            let file = NamedSource::new("file", text);
            let label = label.into();
            let text = described(&Slip { file, label }.into());
            assert!(
                text.lines().all(|line| line.chars().count() < 200),
                "{text}"
            );
            assert!(text.contains(place) && text.contains("here"), "{text}");
        }
    }

    #[test]
    fn a_paragraph_of_help_is_one_line() {
        for whole in [
            "",
            "One line.\n\nExamples:\n  weir check a\n  weir check b",
            "  weir sweep a \\\n      --out b",
        ] {
            assert_eq!(broken_by_hand(whole), None);
        }
        for broken in ["One\nline.", "  soc  a board\n       with a core"] {
            assert_eq!(broken_by_hand(broken).as_deref(), Some(broken));
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\u{1b}[31m ü\n"), "a\\u{1b}[31m ü\\n");
    }
}
