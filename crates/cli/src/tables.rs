// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats cells of tables, and chooses the rows of a table that is too long.
use weir_report::Emphasis;
use weir_report::terminal::{is_coloured, wrapped};

use crate::words::plural;

/// Format of the printed answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    /// Whether all rows are shown.
    pub all: bool,
    /// Whether the text has colours.
    pub coloured: bool,
}

impl Format {
    /// Returns the format for standard output.
    pub(crate) fn new(all: bool) -> Self {
        Self {
            all,
            coloured: is_coloured(),
        }
    }

    /// Returns the most rows to show of a table that is limited to `rows` rows.
    pub(crate) fn most(self, rows: usize) -> usize {
        if self.all { usize::MAX } else { rows }
    }
}

/// The cell of a value that does not exist or was not requested.
pub(crate) const NONE: &str = "–";

/// Makes a cell without emphasis.
pub(crate) fn plain(text: impl Into<String>) -> (String, Emphasis) {
    (text.into(), Emphasis::Plain)
}

/// Makes a cell of a value that may be missing.
pub(crate) fn or_none(text: Option<String>) -> (String, Emphasis) {
    plain(text.unwrap_or_else(|| NONE.to_owned()))
}

/// Returns the items that are shown, in their order: the `most` items with the least `worth`.
pub(crate) fn fold<T>(items: &[T], most: usize, worth: impl Fn(&T) -> f64) -> Vec<&T> {
    if items.len() <= most {
        return items.iter().collect();
    }
    let mut ranked: Vec<(f64, usize)> = items.iter().map(worth).zip(0..).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut shown: Vec<usize> = ranked
        .into_iter()
        .take(most)
        .map(|(_, index)| index)
        .collect();
    shown.sort_unstable();
    shown
        .into_iter()
        .filter_map(|index| items.get(index))
        .collect()
}

/// Formats a sentence below a table.
pub(crate) fn note(text: &str) -> String {
    format!("\n{}", wrapped(text, "", "  "))
}

/// Formats the sentence below a shortened table. `what` names the rows in the singular. The text is
/// empty if the table has all rows.
pub(crate) fn hidden(shown: usize, of: usize, what: &str, why: &str) -> String {
    if shown >= of {
        return String::new();
    }
    let more = plural(of - shown, &format!("more {what}"));
    let them = if of - shown == 1 { "it" } else { "them" };
    note(&format!("{more}, {why}: --all shows {them}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_the_least_worth_stay_in_their_order() {
        let items: Vec<f64> = (0..100).map(|i| f64::from((i * 37) % 100)).collect();
        let shown = fold(&items, 40, |&item| item);
        assert_eq!(shown.len(), 40);
        assert!(shown.iter().all(|&&item| item < 40.0));
        let places: Vec<usize> = shown
            .iter()
            .map(|&shown| items.iter().position(|item| item == shown).unwrap())
            .collect();
        assert!(places.is_sorted());
        assert_eq!(fold(&items, usize::MAX, |&item| item).len(), 100);
        assert_eq!(fold(&items[..40], 40, |&item| item).len(), 40);
    }
}
