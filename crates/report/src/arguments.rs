// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the command lines of Weir's programs.
use std::any::TypeId;
use std::error::Error as _;
use std::ffi::OsString;
use std::num::{ParseFloatError, ParseIntError};
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser as _};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, Parser};

/// Parses the command line of this program. Ends the program if the command line is not valid.
///
/// The value of an option may begin with a dash, because the code that parses the value gives the
/// best message about `-1s`. Only a file name may not begin with a dash, so that an option is not
/// mistaken for a file.
#[must_use]
pub fn arguments<P: Parser>() -> P {
    arguments_from(std::env::args_os())
}

/// Parses `words` as [`arguments`] parses the command line. The first word is the name of the
/// program.
#[must_use]
pub fn arguments_from<P: Parser>(words: impl IntoIterator<Item = OsString>) -> P {
    let mut command = with_dashes(P::command());
    let read = command.try_get_matches_from_mut(words);
    let read = read.and_then(|mut matches| {
        P::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    });
    read.unwrap_or_else(|error| explained(error).exit())
}

/// Returns the command, whose options accept values that begin with a dash.
fn with_dashes(command: Command) -> Command {
    command
        .mut_args(|argument| match takes(&argument) {
            None => argument,
            Some(OptionKind::Value) => argument.allow_hyphen_values(true),
            Some(OptionKind::Path) => {
                let named = PathBufValueParser::new().try_map(|path: PathBuf| {
                    let name = path.to_string_lossy();
                    if name.len() > 1 && name.starts_with('-') {
                        Err(format!(
                            "a file's name may not look like an option: write ./{name}"
                        ))
                    } else {
                        Ok(path)
                    }
                });
                argument.allow_hyphen_values(true).value_parser(named)
            }
        })
        .mut_subcommands(with_dashes)
}

/// The kind of value that an option takes.
enum OptionKind {
    Path,
    Value,
}

/// Returns the kind of value that the option takes. `None` if it takes no value, or if the argument
/// is not an option.
fn takes(argument: &Arg) -> Option<OptionKind> {
    if argument.is_positional() || !argument.get_action().takes_values() {
        return None;
    }
    let is_path = argument.get_value_parser().type_id() == TypeId::of::<PathBuf>();
    Some(if is_path {
        OptionKind::Path
    } else {
        OptionKind::Value
    })
}

/// Adds to the error what would be right, because the number parsers of Rust do not say that.
fn explained(mut error: clap::Error) -> clap::Error {
    let Some(cause) = error.source() else {
        return error;
    };
    let tip = if cause.is::<ParseIntError>() {
        "write a whole number, for example 1"
    } else if cause.is::<ParseFloatError>() {
        "write a number, for example 1.5"
    } else {
        return error;
    };
    let tips = ContextValue::StyledStrs(vec![tip.into()]);
    error.insert(ContextKind::Suggested, tips);
    error
}

/// Returns the faults in a program's command definitions: help texts that are broken by hand
/// ([`broken_by_hand`]), and options that mistake a value with a leading dash for another option.
///
/// # Panics
/// Panics if clap itself finds a fault.
///
/// [`broken_by_hand`]: crate::terminal::broken_by_hand
#[must_use]
pub fn faults<P: Parser>() -> Vec<String> {
    let command = with_dashes(P::command());
    command.clone().debug_assert();
    let mut found = Vec::new();
    faults_of(
        &command,
        &mut vec![command.get_name().into()],
        &command,
        &mut found,
    );
    found
}

fn faults_of(
    command: &Command,
    words: &mut Vec<OsString>,
    program: &Command,
    found: &mut Vec<String>,
) {
    let texts = [command.get_after_help(), command.get_after_long_help()];
    let arguments = command.get_arguments().map(Arg::get_long_help);
    for help in texts.into_iter().chain(arguments).flatten() {
        found.extend(crate::terminal::broken_by_hand(&help.to_string()));
    }
    for option in command.get_arguments().filter(|of| takes(of).is_some()) {
        let Some(name) = option.get_long() else {
            found.push(format!(
                "{}: `{option}` has no long name",
                command.get_name()
            ));
            continue;
        };
        let mut words = words.clone();
        words.extend([format!("--{name}").into(), "-1".into()]);
        let read = program.clone().try_get_matches_from(words);
        if read.is_err_and(|error| error.kind() == clap::error::ErrorKind::UnknownArgument) {
            found.push(format!("{} --{name} -1", command.get_name()));
        }
    }
    for command in command.get_subcommands() {
        words.push(command.get_name().into());
        faults_of(command, words, program, found);
        words.pop();
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _};

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[arg(long)]
        seed: Option<u64>,
        #[arg(long)]
        share: Option<f64>,
        #[arg(long)]
        out: Option<PathBuf>,
    }

    fn read(words: &[&str]) -> Result<Cli, String> {
        let words = ["program"].iter().chain(words);
        let matches = with_dashes(Cli::command()).try_get_matches_from(words);
        let read = matches.and_then(|of| Cli::from_arg_matches(&of));
        read.map_err(|error| explained(error).to_string())
    }

    #[test]
    fn an_error_says_what_would_be_right() {
        for (words, says) in [
            (["--seed", "-1"], "write a whole number"),
            (["--seed", "many"], "write a whole number"),
            (["--share", "-x"], "write a number"),
            (["--out", "-x.svg"], "write ./-x.svg"),
            (["--out", "--seed"], "write ./--seed"),
        ] {
            let error = read(&words).unwrap_err();
            assert!(error.contains(says) && error.contains(words[0]), "{error}");
        }
        assert_eq!(read(&["--share", "-1"]).unwrap().share, Some(-1.0));
        assert_eq!(read(&["--out", "-"]).unwrap().out, Some("-".into()));
    }

    #[test]
    fn commands_without_a_fault_have_none() {
        assert_eq!(faults::<Cli>(), Vec::<String>::new());
    }
}
