// SPDX-License-Identifier: MIT OR Apache-2.0
//! The version of a compiler. The costs of a board's interrupts depend on it.
use std::fmt::{self, Display, Formatter};

use weir_boards::Board;

/// A compiler's command and version, such as `avr-gcc 14.2.0`. Values are ordered by the version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CompilerVersion {
    parts: [u32; 3],
    command: String,
}

impl CompilerVersion {
    /// Parses the first line that a compiler of GCC prints for `--version`, such as
    /// `avr-gcc (GCC) 14.2.0`, or the output of [`Display`]. A date may follow the version. Returns
    /// `None` if the first word is not a command, or the last word is not a version of two or three
    /// numbers.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let command = words.next()?.to_owned();
        let mut parts = [0; 3];
        let is_date = |word: &str| word.len() == 8 && word.chars().all(|c| c.is_ascii_digit());
        let mut last = words.next_back()?;
        if is_date(last) {
            last = words.next_back()?;
        }
        let mut numbers = last.split('.');
        for (index, part) in parts.iter_mut().enumerate() {
            match numbers.next() {
                Some(number) => *part = number.parse().ok()?,
                None if index == 2 => {}
                None => return None,
            }
        }
        numbers.next().is_none().then_some(Self { parts, command })
    }

    /// The compiler's command, such as `avr-gcc`.
    #[must_use]
    pub fn command(&self) -> &str {
        &self.command
    }

    /// The version number, such as `14.2.0`.
    #[must_use]
    pub fn number(&self) -> String {
        let [major, minor, patch] = self.parts;
        format!("{major}.{minor}.{patch}")
    }

    /// Whether code of the two compilers has the same costs. This is assumed if they are of one
    /// series, such as 14.2, and differ at most in their patch level.
    #[must_use]
    pub fn is_of_the_series_of(&self, other: &Self) -> bool {
        self.command == other.command && self.parts[..2] == other.parts[..2]
    }
}

impl Display for CompilerVersion {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.command, self.number())
    }
}

/// The compilers with which the costs of this board were measured; `None` if the board is unknown.
///
/// # Panics
/// Never panics for the boards that are part of this program.
#[must_use]
pub fn board_compilers(board: &str) -> Option<Vec<CompilerVersion>> {
    let version = |line: &String| {
        CompilerVersion::parse(line)
            .unwrap_or_else(|| panic!("a file of boards/, which is part of this program: {line}"))
    };
    let compilers = Board::named(board)?.compilers();
    Some(compilers.iter().map(version).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_last_word() {
        for (line, shown) in [
            ("avr-gcc (GCC) 5.4.0", "avr-gcc 5.4.0"),
            (
                "riscv64-unknown-elf-gcc (14.2.0+19) 14.2.0",
                "riscv64-unknown-elf-gcc 14.2.0",
            ),
            (
                "arm-none-eabi-gcc (15:12.2.rel1-1) 12.2.1 20221205",
                "arm-none-eabi-gcc 12.2.1",
            ),
            ("cc 9.1", "cc 9.1.0"),
        ] {
            assert_eq!(CompilerVersion::parse(line).unwrap().to_string(), shown);
        }
        for line in [
            "",
            "cc",
            "cc 9",
            "cc 20221205",
            "cc 9.x",
            "cc 1.2.3.4",
            "cc (9.1.0)",
        ] {
            assert_eq!(CompilerVersion::parse(line), None, "{line}");
        }
    }

    #[test]
    fn versions_are_ordered_as_numbers() {
        let of = |line| CompilerVersion::parse(line).unwrap();
        assert!(of("cc 5.4.0") < of("cc 14.2.0"));
        assert!(of("cc 14.2.0").is_of_the_series_of(&of("cc 14.2.1")));
        assert!(!of("cc 14.2.0").is_of_the_series_of(&of("cc 14.3.0")));
        assert!(!of("cc 14.2.0").is_of_the_series_of(&of("dd 14.2.0")));
    }
}
