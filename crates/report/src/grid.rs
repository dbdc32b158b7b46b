// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats tables of results for the terminal.
use std::borrow::Cow;
use std::iter;

use anstyle::{AnsiColor, Style};
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table,
    TableComponent, Width,
};
use textwrap::core::display_width;

use crate::terminal::width;

/// The emphasis of a text on a terminal with colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Emphasis {
    /// No emphasis.
    #[default]
    Plain,
    /// The text is a good result.
    Good,
    /// The text is a bad result.
    Bad,
    /// The text is a heading or a sum.
    Strong,
}

impl Emphasis {
    /// Formats `text` with the escape codes of its emphasis, or unchanged unless `coloured`.
    #[must_use]
    pub fn paint(self, text: &str, coloured: bool) -> String {
        if !coloured {
            return text.to_owned();
        }
        let style = match self {
            Self::Plain => Style::new(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Strong => Style::new().bold(),
        };
        format!("{style}{text}{style:#}")
    }

    fn colour(self) -> Option<Color> {
        match self {
            Self::Good => Some(Color::Green),
            Self::Bad => Some(Color::Red),
            Self::Plain | Self::Strong => None,
        }
    }

    fn apply(self, cell: Cell) -> Cell {
        let cell = match self.colour() {
            Some(colour) => cell.fg(colour),
            None => cell,
        };
        match self {
            Self::Bad | Self::Strong => cell.add_attribute(Attribute::Bold),
            Self::Plain | Self::Good => cell,
        }
    }
}

/// The alignment of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Left-aligned, for words.
    Left,
    /// Right-aligned, for numbers.
    Right,
}

/// The number of spaces between two columns.
const GAP: usize = 2;
/// Words of at least this many characters may be broken, because users' names can have any length.
const LONG: usize = 24;

/// A table that is at most as wide as the terminal, or 100 columns. Long cells are wrapped between
/// words. If the longest words of the columns do not fit side by side, each row is printed as a
/// list.
#[derive(Debug)]
pub struct Grid {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<(String, Emphasis)>>,
    coloured: bool,
}

impl Grid {
    /// Makes a table with these columns. `coloured` is true for a terminal that shows colours.
    #[must_use]
    pub fn new(columns: &[(&str, Align)], coloured: bool) -> Self {
        let columns = columns
            .iter()
            .map(|&(title, align)| (title.to_owned(), align));
        Self {
            columns: columns.collect(),
            rows: Vec::new(),
            coloured,
        }
    }

    /// Adds a row. Each cell is a text with its emphasis.
    pub fn row(&mut self, cells: impl IntoIterator<Item = (String, Emphasis)>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns the formatted table. Lines have no trailing spaces.
    #[must_use]
    pub fn text(self) -> String {
        self.at_most(usize::from(width()))
    }

    fn at_most(&self, width: usize) -> String {
        let gaps = GAP * self.columns.len().saturating_sub(1);
        let room = width.saturating_sub(gaps);
        self.widths(room)
            .map_or_else(|| self.list(width), |widths| self.table(&widths))
    }

    /// Returns the width of each column if all fit into `room` characters. `None` if there is not
    /// enough room for the words. The columns with the shortest cells are laid out without wrapping
    /// first.
    fn widths(&self, room: usize) -> Option<Vec<usize>> {
        let texts = |column: usize| {
            let cells = self.rows.iter().filter_map(move |row| row.get(column));
            let title = self.columns[column].0.as_str();
            cells
                .map(|(text, _)| text.as_str())
                .chain([title])
                .flat_map(str::lines)
        };
        let most = |widths: &mut dyn Iterator<Item = usize>| widths.max().unwrap_or(0).max(1);
        let mut widths: Vec<usize> = Vec::new();
        let mut missing: Vec<(usize, usize)> = Vec::new();
        for column in 0..self.columns.len() {
            let parts = texts(column).flat_map(|text| wrap(text, 1, false));
            let least = most(&mut parts.map(|part| display_width(&part))).min(LONG);
            let whole = most(&mut texts(column).map(display_width));
            widths.push(least);
            missing.push((whole.saturating_sub(least), column));
        }
        let mut left = room.checked_sub(widths.iter().sum())?;
        missing.sort_unstable();
        let mut others = missing.len();
        for (wanted, column) in missing {
            let more = wanted.min(left / others);
            widths[column] += more;
            left -= more;
            others -= 1;
        }
        Some(widths)
    }

    fn table(&self, widths: &[usize]) -> String {
        let mut table = Table::new();
        table
            .load_preset(UTF8_HORIZONTAL_ONLY)
            .remove_style(TableComponent::HorizontalLines)
            .remove_style(TableComponent::MiddleIntersections)
            .remove_style(TableComponent::LeftBorderIntersections)
            .remove_style(TableComponent::RightBorderIntersections)
            .set_content_arrangement(ContentArrangement::Disabled);
        if self.coloured {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        let alignment = |column: usize| match self.columns[column].1 {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        };
        let cell = |column: usize, text: &str, emphasis: Emphasis| {
            let text = wrap(text, widths[column], true).join("\n");
            emphasis.apply(Cell::new(text).set_alignment(alignment(column)))
        };
        let titles = self.columns.iter().enumerate();
        table.set_header(titles.map(|(column, (title, _))| cell(column, title, Emphasis::Strong)));
        let last = widths.len().saturating_sub(1);
        for (index, (column, &width)) in table.column_iter_mut().zip(widths).enumerate() {
            let padding = u16::from(index != last);
            let width = u16::try_from(width).unwrap_or(u16::MAX);
            column.set_padding((0, padding));
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width + padding)));
        }
        for row in &self.rows {
            let cells = row.iter().enumerate();
            table.add_row(cells.map(|(column, (text, emphasis))| cell(column, text, *emphasis)));
        }
        let lines = table.lines().map(|line| line.trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Formats each row as a list: the first cell, and below it the other cells with their column
    /// titles.
    fn list(&self, width: usize) -> String {
        let titles = || self.columns.iter().skip(1).map(|(title, _)| title.as_str());
        let widest = titles().map(display_width).max().unwrap_or(0);
        let mut lines = Vec::new();
        for row in &self.rows {
            let Some(((name, emphasis), cells)) = row.split_first() else {
                continue;
            };
            lines.push(emphasis.paint(name, self.coloured));
            for (title, (text, emphasis)) in titles().zip(cells) {
                let room = width.saturating_sub(widest + 2 * GAP).max(1);
                let parts = match text.as_str() {
                    "" => Vec::new(),
                    text => wrap(text, room, true),
                };
                for (title, part) in iter::once(title).chain(iter::repeat("")).zip(parts) {
                    let space = " ".repeat(widest - display_width(title));
                    let part = emphasis.paint(&part, self.coloured);
                    lines.push(format!("  {title}{space}  {part}"));
                }
            }
        }
        lines.join("\n")
    }
}

/// Splits `text` into lines. It is broken between words and after hyphens and, if `break_words`,
/// within words that are too long.
fn wrap(text: &str, width: usize, break_words: bool) -> Vec<Cow<'_, str>> {
    textwrap::wrap(text, textwrap::Options::new(width).break_words(break_words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(coloured: bool, name: &str) -> String {
        let mut grid = Grid::new(&[("name", Align::Left), ("worst", Align::Right)], coloured);
        grid.row([
            (name.to_owned(), Emphasis::Plain),
            ("1.5 ms".to_owned(), Emphasis::Bad),
        ]);
        grid.row([
            ("b".to_owned(), Emphasis::Strong),
            ("12.25 ms".to_owned(), Emphasis::Good),
        ]);
        grid.text()
    }

    #[test]
    fn numbers_stand_right_and_words_left() {
        let text = grid(false, "control");
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.iter().any(|line| line.trim() == "control    1.5 ms"),
            "{text}"
        );
        assert!(
            lines.iter().any(|line| line.trim() == "b        12.25 ms"),
            "{text}"
        );
    }

    #[test]
    fn it_is_narrow_enough_whatever_a_name_is() {
        let text = grid(false, &"a very long name ".repeat(20));
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
        assert!(text.contains("12.25 ms"), "{text}");
    }

    #[test]
    fn a_long_name_wraps_no_other_column() {
        let text = grid(false, &"long_".repeat(30));
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
        assert!(
            text.contains("1.5 ms") && text.contains("12.25 ms"),
            "{text}"
        );
    }

    fn wide() -> Grid {
        let columns = ["source", "limit", "worst", "then misses"];
        let mut grid = Grid::new(&columns.map(|title| (title, Align::Left)), false);
        grid.row(
            ["eth-telemetry", "bucket lazy 2", "149 kHz", ""]
                .map(|text| (text.to_owned(), Emphasis::Plain)),
        );
        grid
    }

    #[test]
    fn no_word_is_broken_at_any_width() {
        for width in 24..=100 {
            let text = wide().at_most(width);
            let words: Vec<&str> = text.split([' ', '\n', '-']).collect();
            for word in ["telemetry", "source", "bucket", "kHz"] {
                let is_title = word == "source" && !text.contains('═');
                assert!(is_title || words.contains(&word), "{width}: {text}");
            }
            let widest = text.lines().map(display_width).max().unwrap();
            assert!(widest <= width, "{width}: {text}");
        }
    }

    #[test]
    fn where_the_words_have_no_room_each_row_is_a_list() {
        assert_eq!(
            wide().at_most(30),
            "eth-telemetry\n  limit        bucket lazy 2\n  worst        149 kHz"
        );
    }

    #[test]
    fn colours_are_there_only_when_asked_for() {
        assert!(!grid(false, "a").contains('\u{1b}'));
        assert!(grid(true, "a").contains('\u{1b}'));
        assert_eq!(Emphasis::Bad.paint("no", false), "no");
        let painted = Emphasis::Bad.paint("no", true);
        assert!(
            painted.contains('\u{1b}') && painted.contains("no"),
            "{painted}"
        );
    }
}
