// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats sentences, lists, times and rates in the way that all answers share.
use weir_model::System;
use weir_report::{rate, significant, time};

/// The digits of times and rates in tables. Sentences use more digits if two numbers would look the
/// same.
const DIGITS: u8 = 3;
/// The most names in a sentence.
const MOST_NAMES: usize = 6;

/// Describes a system in one line.
pub(crate) fn title(system: &System) -> String {
    let cpu = &system.cpu;
    let on = match (&cpu.board, &cpu.flavour) {
        (Some(board), Some(flavour)) => format!(" on {board} ({flavour})"),
        (Some(board), None) => format!(" on {board}"),
        (None, _) => String::new(),
    };
    format!(
        "{}: {}, {}{on} at {}",
        system.name,
        plural(system.sources.len(), "source"),
        plural(system.receivers.len(), "receiver"),
        rate(cpu.clock_hz as f64, 6)
    )
}

/// Formats a count with its noun: `1 source`, `2 sources`.
pub(crate) fn plural(count: usize, what: &str) -> String {
    weir_report::plural(count as u64, what)
}

/// Joins names: `a, b and c`, or `a, b, c and 7 more`.
pub(crate) fn list(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    list_with_more(&names, 0)
}

/// Joins names as [`list`] does, followed by `more` things without a name.
pub(crate) fn list_with_more(names: &[&str], more: usize) -> String {
    let shown = if names.len() + more <= MOST_NAMES {
        names.len()
    } else {
        names.len().min(MOST_NAMES - 1)
    };
    let more = names.len() - shown + more;
    let names = names.get(..shown).unwrap_or(names);
    match (names, more) {
        ([], more) => more.to_string(),
        ([only], 0) => (*only).to_owned(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (names, more) => format!("{} and {more} more", names.join(", ")),
    }
}

/// Converts cycles to times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CycleClock {
    hertz: f64,
}

impl CycleClock {
    pub(crate) fn of(system: &System) -> Self {
        Self {
            hertz: system.cpu.clock_hz as f64,
        }
    }

    /// Formats a time for a table.
    pub(crate) fn time(self, cycles: u64) -> String {
        time(cycles as f64 / self.hertz, DIGITS)
    }

    /// Formats a time with its sign for a table.
    pub(crate) fn signed(self, cycles: i64) -> String {
        time(cycles as f64 / self.hertz, DIGITS)
    }

    /// Formats two different times with enough digits to make them look different.
    pub(crate) fn times_apart(self, a: u64, b: u64) -> (String, String) {
        let texts = |digits| {
            (
                time(a as f64 / self.hertz, digits),
                time(b as f64 / self.hertz, digits),
            )
        };
        (DIGITS + 1..16)
            .map(texts)
            .find(|(a, b)| a != b)
            .unwrap_or_else(|| (format!("{a} cycles"), format!("{b} cycles")))
    }
}

/// Formats a rate for a table.
pub(crate) fn hertz(hertz: f64) -> String {
    rate(hertz, DIGITS)
}

/// Formats a factor for a table.
pub(crate) fn factor(factor: f64) -> String {
    format!("×{}", significant(factor, DIGITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_short() {
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b"]), "a and b");
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
        assert_eq!(list(&["a", "b", "c", "d", "e", "f"]), "a, b, c, d, e and f");
        assert_eq!(
            list(&["a", "b", "c", "d", "e", "f", "g"]),
            "a, b, c, d, e and 2 more"
        );
        assert_eq!(list_with_more(&["a"], 999), "a and 999 more");
    }

    #[test]
    fn times_that_differ_look_different() {
        let clock = CycleClock { hertz: 16e6 };
        assert_eq!(
            clock.times_apart(160_001, 160_000),
            ("10.0001 ms".to_owned(), "10 ms".to_owned())
        );
        assert_eq!(
            clock.times_apart(400_000, 160_000),
            ("25 ms".to_owned(), "10 ms".to_owned())
        );
    }
}
