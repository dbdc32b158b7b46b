// SPDX-License-Identifier: GPL-3.0-or-later
//! Draws spectrograms as SVG: the frequencies of several sounds side by side, over the points of an
//! axis.
//!
//! The SVG has one path per shade. A rectangle for each of the many cells would make the picture
//! ten times as large.
use std::fmt::Write as _;

use weir_report::{FONT, TEXT, marked, short};

/// Spectrograms of several sounds, side by side. Each sound spends the same time at every point of
/// the axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrogram {
    /// The title of the picture.
    pub title: String,
    /// The title of the horizontal axis, with its unit.
    pub x: String,
    /// The points of the horizontal axis.
    pub points: Vec<f64>,
    /// The frequency at the upper edge, in Hz.
    pub highest_hz: f64,
    /// The sounds from left to right.
    pub panels: Vec<SpectralPanel>,
}

/// The spectrogram of one sound.
#[derive(Debug, Clone, PartialEq)]
pub struct SpectralPanel {
    /// The title above the panel.
    pub title: String,
    /// The columns, one per span of time. A column contains the powers of the frequencies from 0 Hz
    /// on in equal steps, relative to the power of a full-scale wave.
    pub columns: Vec<Vec<f64>>,
}

/// The shades from the weakest power to the strongest. Each covers the same number of decibels.
/// They go from light to dark, so that readers with any colour vision, and printers, can tell them
/// apart.
const SHADES: [&str; 4] = ["#c6dbef", "#6baed6", "#2171b5", "#08306b"];
const DECIBELS: f64 = 10.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 140.0;
const TOP: f64 = 80.0;
const BOTTOM: f64 = 64.0;
const WIDTH: f64 = 400.0;
const GAP: f64 = 30.0;
const HEIGHT: f64 = 300.0;
const LINES_HZ: f64 = 250.0;

impl Spectrogram {
    /// Draws the picture as a complete, self-contained SVG.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let count = float(self.panels.len());
        let panels = WIDTH * count + GAP * (count - 1.0).max(0.0);
        let (width, height) = (LEFT + panels + RIGHT, TOP + HEIGHT + BOTTOM);
        let mut svg = format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\" font-family=\"{FONT}\" font-size=\"{TEXT}\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        );
        let middle = LEFT + panels / 2.0;
        text(
            &mut svg,
            (middle, 28.0),
            "middle",
            &format!("<tspan font-size=\"20\">{}</tspan>", escaped(&self.title)),
        );
        text(
            &mut svg,
            (middle, height - 14.0),
            "middle",
            &escaped(&self.x),
        );
        _ = writeln!(
            svg,
            "<text transform=\"translate(20 {}) rotate(-90)\" text-anchor=\"middle\">frequency, Hz</text>",
            TOP + HEIGHT / 2.0
        );
        let mut hz = 0.0;
        while hz <= self.highest_hz {
            text(&mut svg, (LEFT - 8.0, self.y(hz) + 5.0), "end", &short(hz));
            hz += 2.0 * LINES_HZ;
        }
        for (number, panel) in self.panels.iter().enumerate() {
            self.draw(&mut svg, panel, LEFT + float(number) * (WIDTH + GAP));
        }
        legend(&mut svg, LEFT + panels + 16.0);
        svg.push_str("</svg>\n");
        marked(&svg)
    }

    fn y(&self, hz: f64) -> f64 {
        TOP + HEIGHT * (1.0 - hz / self.highest_hz)
    }

    fn draw(&self, svg: &mut String, panel: &SpectralPanel, left: f64) {
        text(
            svg,
            (left + WIDTH / 2.0, TOP - 14.0),
            "middle",
            &escaped(&panel.title),
        );
        for (shade, colour) in SHADES.iter().enumerate() {
            let path = panel.path(shade);
            if !path.is_empty() {
                let (columns, rows) = panel.size();
                _ = writeln!(
                    svg,
                    "<path transform=\"translate({left} {}) scale({:.5} {:.5})\" fill=\"{colour}\" d=\"{path}\"/>",
                    TOP + HEIGHT,
                    WIDTH / float(columns),
                    -HEIGHT / float(rows),
                );
            }
        }
        let point = WIDTH / float(self.points.len());
        for (number, x) in self.points.iter().enumerate() {
            let from = left + float(number) * point;
            if number > 0 {
                _ = writeln!(
                    svg,
                    "<path d=\"M{from:.1} {TOP}v{HEIGHT}\" stroke=\"#999\" stroke-dasharray=\"2 4\"/>"
                );
            }
            text(
                svg,
                (from + point / 2.0, TOP + HEIGHT + 20.0),
                "middle",
                &short(*x),
            );
        }
        _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"black\"/>"
        );
    }
}

impl SpectralPanel {
    fn size(&self) -> (usize, usize) {
        let rows = self.columns.iter().map(Vec::len).max();
        (self.columns.len().max(1), rows.unwrap_or(0).max(1))
    }

    /// The SVG path of all cells with a shade, as horizontal runs from left to right, row by row.
    /// The unit is one column or one row.
    fn path(&self, shade: usize) -> String {
        let (columns, rows) = self.size();
        let has = |column: usize, row: usize| {
            let power = self.columns.get(column).and_then(|all| all.get(row));
            power.and_then(|power| shade_of(*power)) == Some(shade)
        };
        let mut path = String::new();
        for row in 0..rows {
            let mut from = 0;
            while from < columns {
                let run = (from..columns).take_while(|at| has(*at, row)).count();
                if run > 0 {
                    _ = write!(path, "M{from} {row}h{run}v1h-{run}z");
                }
                from += run + 1;
            }
        }
        path
    }
}

/// The index of the shade of a relative power. `None` if the power is weaker than the weakest
/// shade.
fn shade_of(power: f64) -> Option<usize> {
    let decibels = 10.0 * power.log10();
    let below = (0..SHADES.len()).find(|steps| decibels >= -DECIBELS * float(steps + 1))?;
    Some(SHADES.len() - 1 - below)
}

fn legend(svg: &mut String, left: f64) {
    text(svg, (left, TOP + 8.0), "start", "power, dB");
    text(svg, (left, TOP + 24.0), "start", "of a full wave");
    for (steps, colour) in SHADES.iter().rev().enumerate() {
        let top = TOP + 38.0 + 24.0 * float(steps);
        _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{top}\" width=\"20\" height=\"20\" fill=\"{colour}\"/>"
        );
        let least = -DECIBELS * float(steps + 1);
        text(
            svg,
            (left + 28.0, top + 15.0),
            "start",
            &format!("from {least} on"),
        );
    }
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, content: &str) {
    _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{content}</text>"
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[expect(clippy::cast_precision_loss, reason = "hundreds")]
fn float(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shade_is_ten_decibels_and_what_is_weaker_than_all_is_left_white() {
        assert_eq!(shade_of(1.0), Some(3));
        assert_eq!(shade_of(0.11), Some(3));
        assert_eq!(shade_of(0.09), Some(2));
        assert_eq!(shade_of(1.1e-4), Some(0));
        assert_eq!((shade_of(0.9e-4), shade_of(0.0)), (None, None));
    }

    #[test]
    fn cells_of_a_shade_are_joined_along_a_row() {
        let panel = SpectralPanel {
            title: "a < b".to_owned(),
            columns: vec![
                vec![1.0, 0.0],
                vec![1.0, 0.0],
                vec![0.0, 1.0],
                vec![1.0, 0.05],
            ],
        };
        assert_eq!(panel.path(3), "M0 0h2v1h-2zM3 0h1v1h-1zM2 1h1v1h-1z");
        assert_eq!(panel.path(2), "M3 1h1v1h-1z");
        let svg = Spectrogram {
            title: "A tone".to_owned(),
            x: "packets, 1000/s".to_owned(),
            points: vec![0.0, 14.88],
            highest_hz: 2000.0,
            panels: vec![panel],
        }
        .to_svg();
        for part in [
            "A tone",
            "a &lt; b",
            "frequency, Hz",
            "packets, 1000/s",
            "14.88",
            "power, dB",
            "weir",
        ] {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
    }
}
