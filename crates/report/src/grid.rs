// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of results for the terminal.
use anstyle::{AnsiColor, Style};
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table,
    TableComponent,
};

use crate::terminal::WIDTH;

/// Emphasis of a text on a terminal that has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Emphasis {
    /// No emphasis.
    #[default]
    Plain,
    /// A good result.
    Good,
    /// A bad result.
    Bad,
    /// A heading or a sum.
    Strong,
}

impl Emphasis {
    /// Formats `text` with the escape codes of its emphasis; unchanged if not `coloured`.
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

/// Alignment of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// Characters between two columns.
const GAP: usize = 2;
/// Least width, in characters, of the first column before other columns are wrapped, too.
const LEAST_FIRST: usize = 8;

/// A table of at most 100 columns of characters: long cells are wrapped.
#[derive(Debug)]
pub struct Grid {
    table: Table,
    aligned: Vec<CellAlignment>,
}

impl Grid {
    /// A table with these columns; `coloured` for a terminal.
    #[must_use]
    pub fn new(columns: &[(&str, Align)], coloured: bool) -> Self {
        let mut table = Table::new();
        table
            .load_preset(UTF8_HORIZONTAL_ONLY)
            .remove_style(TableComponent::HorizontalLines)
            .remove_style(TableComponent::MiddleIntersections)
            .remove_style(TableComponent::LeftBorderIntersections)
            .remove_style(TableComponent::RightBorderIntersections)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(WIDTH);
        if coloured {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        let aligned: Vec<CellAlignment> = columns
            .iter()
            .map(|(_, align)| match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            })
            .collect();
        table.set_header(columns.iter().zip(&aligned).map(|((title, _), &align)| {
            Cell::new(title)
                .set_alignment(align)
                .add_attribute(Attribute::Bold)
        }));
        for column in table.column_iter_mut() {
            column.set_padding((0, 1));
        }
        Self { table, aligned }
    }

    /// Adds a row: a text and its emphasis per column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = (String, Emphasis)>) {
        self.table.add_row(cells.into_iter().zip(&self.aligned).map(
            |((text, emphasis), &align)| emphasis.apply(Cell::new(text).set_alignment(align)),
        ));
    }

    /// The table, without spaces at the ends of its lines. If it is too wide, the first column is
    /// wrapped, and others only if that is not enough.
    #[must_use]
    pub fn text(mut self) -> String {
        let widths = self.table.column_max_content_widths();
        let others: usize = widths.iter().skip(1).map(|&width| usize::from(width)).sum();
        let gaps = GAP * widths.len();
        if others + gaps + LEAST_FIRST <= usize::from(WIDTH) {
            for column in self.table.column_iter_mut().skip(1) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        self.table
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    }
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
