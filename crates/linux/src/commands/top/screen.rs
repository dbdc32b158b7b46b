// SPDX-License-Identifier: MIT OR Apache-2.0
//! The live table on a terminal.
use std::io;
use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};
use weir_report::Align;

use super::view::{COLUMNS, View};

/// Widths of [`COLUMNS`]. The last column gets the rest of the line.
const WIDTHS: [Constraint; 7] = [
    Constraint::Length(15),
    Constraint::Length(8),
    Constraint::Length(8),
    Constraint::Length(8),
    Constraint::Length(8),
    Constraint::Length(11),
    Constraint::Min(8),
];

const HELP: &str = "q: end   up, down: scroll   charged: interrupts for it while others ran   taken: from it, for others";

/// Shows the result of `next` every `period` until the user ends the display. While `next` returns
/// nothing new, the earlier result stays.
///
/// # Errors
/// Fails on an error of the terminal or of `next`. The terminal is restored in every case.
pub fn show(
    period: Duration,
    mut next: impl FnMut() -> miette::Result<Option<View>>,
) -> miette::Result<()> {
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let shown = (|| {
        let mut state = TableState::default();
        let mut view = View::default();
        loop {
            view = next()?.unwrap_or(view);
            let until = Instant::now() + period;
            while Instant::now() < until {
                terminal
                    .draw(|frame| draw(frame, &view, &mut state))
                    .map_err(failed)?;
                match key(until).map_err(failed)? {
                    Some(KeyPress::End) => return Ok(()),
                    Some(KeyPress::Up) => state.scroll_up_by(1),
                    Some(KeyPress::Down) => state.scroll_down_by(1),
                    None => {}
                }
            }
        }
    })();
    ratatui::try_restore().map_err(failed)?;
    shown
}

fn failed(error: io::Error) -> miette::Report {
    miette::miette!(
        help = "`--once` and `--json` do without a terminal",
        "the terminal cannot be used: {error}"
    )
}

enum KeyPress {
    End,
    Up,
    Down,
}

/// Waits for a key until `until`. Returns early without a key if the terminal's size changes, so
/// that the table is drawn again.
fn key(until: Instant) -> io::Result<Option<KeyPress>> {
    if !event::poll(until.saturating_duration_since(Instant::now()))? {
        return Ok(None);
    }
    Ok(match event::read()? {
        Event::Key(KeyEvent {
            code,
            modifiers,
            kind: KeyEventKind::Press,
            ..
        }) => match code {
            KeyCode::Char('q') | KeyCode::Esc => Some(KeyPress::End),
            // In raw mode the terminal does not turn Ctrl-C into a signal.
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Some(KeyPress::End),
            KeyCode::Up | KeyCode::Char('k') => Some(KeyPress::Up),
            KeyCode::Down | KeyCode::Char('j') => Some(KeyPress::Down),
            _ => None,
        },
        _ => None,
    })
}

fn draw(frame: &mut Frame<'_>, view: &View, state: &mut TableState) {
    let areas = Layout::vertical([
        Constraint::Length(3),
        Constraint::Min(1),
        Constraint::Length(1),
    ]);
    let [head, body, foot] = areas.areas(frame.area());
    let lines: Vec<Line<'_>> = view.headings().into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines), head);
    let aligned = |text: String, align| {
        let align = match align {
            Align::Left => Alignment::Left,
            Align::Right => Alignment::Right,
        };
        Cell::from(Text::from(text).alignment(align))
    };
    let rows = view.processes.iter().map(|row| {
        let cells = row.cells().into_iter().zip(COLUMNS);
        Row::new(cells.map(|(cell, (_, align))| aligned(cell, align)))
    });
    let titles = COLUMNS.map(|(title, align)| aligned(title.to_owned(), align));
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let table = Table::new(rows, WIDTHS)
        .header(Row::new(titles).style(bold))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, body, state);
    frame.render_widget(Paragraph::new(HELP), foot);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::view::Row as Shown;
    use super::*;

    #[test]
    fn the_screen_has_what_the_text_has() {
        let row = Shown {
            command: "plc".to_owned(),
            pid: 1234,
            charged: 0.25,
            packets_hz: 12_345.0,
            ..Shown::default()
        };
        let view = View {
            interrupts: 0.5,
            processes: vec![row],
            ..View::default()
        };
        // The second terminal is too small for the whole text.
        for (width, height) in [(100, 12), (20, 3)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            let mut state = TableState::default();
            terminal
                .draw(|frame| draw(frame, &view, &mut state))
                .unwrap();
            if width == 100 {
                let screen = terminal.backend().to_string();
                for part in [
                    "50.0 % of a processor",
                    "plc",
                    "1234",
                    "25.0 %",
                    "12,345",
                    "q: end",
                ] {
                    assert!(screen.contains(part), "{part}: {screen}");
                }
            }
        }
    }
}
