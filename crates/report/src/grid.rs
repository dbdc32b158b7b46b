// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of results for the terminal.
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, TableComponent,
};

use crate::table::WIDTH;

/// How much something stands out, where there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Emphasis {
    /// As it is.
    #[default]
    Plain,
    /// It is as it should be.
    Good,
    /// It is not as it should be.
    Bad,
    /// It says something of the rest.
    Strong,
}

impl Emphasis {
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

/// Where a column's cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

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

    /// The table, without spaces at the ends of its lines.
    #[must_use]
    pub fn text(&self) -> String {
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
    fn colours_are_there_only_when_asked_for() {
        assert!(!grid(false, "a").contains('\u{1b}'));
        assert!(grid(true, "a").contains('\u{1b}'));
    }
}
