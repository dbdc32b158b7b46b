// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pieces of C: macros in the layout of clang-format, and users' texts in a safe form.
use std::fmt::{self, Write};

/// The column of a macro's backslashes, as in `.clang-format`.
const COLUMNS: usize = 140;

/// Writes a macro of several lines, followed by an empty line.
pub(crate) fn definition(out: &mut String, lines: &[String]) -> fmt::Result {
    if let Some((last, rest)) = lines.split_last() {
        for line in rest {
            writeln!(out, "{line:<width$}\\", width = COLUMNS - 1)?;
        }
        writeln!(out, "{last}")?;
    }
    writeln!(out)
}

/// Makes a user's text safe for a comment: the text can neither end nor nest it.
pub(crate) fn comment(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for character in text.chars() {
        let plain = character.is_ascii_graphic() || character == ' ' || character.is_alphanumeric();
        let character = if plain { character } else { '_' };
        // The inserted blank prevents the begin or end of a comment, and trigraphs.
        if matches!(
            (kept.chars().next_back(), character),
            (Some('*'), '/') | (Some('/'), '*') | (Some('?'), '?')
        ) {
            kept.push(' ');
        }
        kept.push(character);
    }
    kept
}

/// The string literal of C for this text.
pub(crate) fn c_string(text: &str) -> String {
    let mut literal = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | b'?' => {
                literal.push('\\');
                literal.push(char::from(byte));
            }
            b' '..=b'~' => literal.push(char::from(byte)),
            _ => {
                let _ = write!(literal, "\\{byte:03o}");
            }
        }
    }
    literal.push('"');
    literal
}

/// The use of a macro, broken into lines as by clang-format.
pub(crate) fn call(name: &str, arguments: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = format!("    {name}(");
    let indent = line.len();
    for (index, argument) in arguments.iter().enumerate() {
        let is_last = index + 1 == arguments.len();
        let argument = format!("{argument}{}", if is_last { ")" } else { "," });
        let begins = line.len() == indent;
        // A line leaves room for the blank and the backslash.
        if !begins && line.len() + 1 + argument.len() > COLUMNS - 2 {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
        } else if !begins {
            line.push(' ');
        }
        line.push_str(&argument);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_write_stays_inside_comments_and_strings() {
        assert_eq!(comment("a */ int x; /* b"), "a * / int x; / * b");
        assert_eq!(comment("*//*"), "* // *");
        assert_eq!(comment("a\nb??/\u{202e}ü"), "a_b? ?/_ü");
        assert_eq!(c_string("a\"b\\c??/\n"), r#""a\"b\\c\?\?/\012""#);
    }
}
