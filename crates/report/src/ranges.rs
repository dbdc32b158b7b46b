// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws distributions of times as SVG. Each row has a bar for each series, and marks for
//! comparison.
use std::ops::Range;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::number::time;
use crate::output::marked;
use crate::plot::{Area, Colour, Drawn, FONT, PlotError, Stroke, TEXT, stroke};

/// A picture of time distributions on a logarithmic axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranges {
    /// Title of the picture.
    pub title: String,
    /// The names and colours of the bars in each row, from top to bottom.
    pub series: Vec<(String, Colour)>,
    /// The names, colours and strokes of the marks.
    pub marks: Vec<(String, Colour, Stroke)>,
    /// The rows from top to bottom.
    pub rows: Vec<RangeRow>,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeRow {
    /// The label to the left of the row.
    pub label: String,
    /// The distribution of each series. `None` if the series has no value in this row.
    pub spans: Vec<Option<Span>>,
    /// The time of each mark in seconds. `None` if the mark is missing in this row.
    pub marks: Vec<Option<f64>>,
}

/// A distribution of times in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// The shortest.
    pub least: f64,
    /// The median.
    pub median: f64,
    /// A high quantile. The bar ends here, and a line extends to the longest time.
    pub high: f64,
    /// The longest.
    pub most: f64,
}

const WIDTH: i32 = 1000;
const LEFT: i32 = 190;
const RIGHT: i32 = 40;
const TITLE: i32 = 40;
const LEGEND_LINE: i32 = 22;
const AXIS: i32 = 34;
const BAR: i32 = 12;
const BAR_GAP: i32 = 6;
const ROW_GAP: i32 = 18;
/// The most characters of a row's label.
const LABEL_MOST: usize = 22;

impl Ranges {
    /// Returns the picture as a self-contained SVG file.
    ///
    /// # Errors
    /// Fails if a time is not finite, or if no time is above 0.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        let mut svg = String::new();
        self.draw(&mut svg)
            .map_err(|error| PlotError::new(&self.title, error.as_ref()))?;
        Ok(marked(&svg))
    }

    fn row_height(&self) -> Drawn<i32> {
        Ok(i32::try_from(self.series.len())? * (BAR + BAR_GAP) + ROW_GAP)
    }

    fn draw(&self, svg: &mut String) -> Drawn<()> {
        let axis = Axis::new(self.times())?;
        let legend = LEGEND_LINE * i32::try_from(self.series.len() + self.marks.len())?;
        let top = TITLE + legend;
        let row = self.row_height()?;
        let bottom = top + row * i32::try_from(self.rows.len())?;
        let size = (WIDTH.unsigned_abs(), (bottom + AXIS).unsigned_abs());
        let area = SVGBackend::with_string(svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        let centred = (FONT, 20).into_text_style(&area);
        let centred = centred.pos(Pos::new(HPos::Center, VPos::Top));
        area.draw(&Text::new(self.title.clone(), (WIDTH / 2, 10), centred))?;
        self.draw_legend(&area)?;
        axis.draw(&area, top..bottom)?;
        for (row_of, y) in self.rows.iter().zip((top..).step_by(usize::try_from(row)?)) {
            self.draw_row(&area, &axis, row_of, y..y + row)?;
        }
        area.present()?;
        Ok(())
    }

    fn times(&self) -> impl Iterator<Item = f64> {
        self.rows.iter().flat_map(|row| {
            let spans = row.spans.iter().flatten();
            let spans = spans.flat_map(|of| [of.least, of.median, of.high, of.most]);
            spans.chain(row.marks.iter().copied().flatten())
        })
    }

    fn draw_legend(&self, area: &Area) -> Drawn<()> {
        let mut y = TITLE + LEGEND_LINE / 2;
        let text = |label: &str, y: i32| {
            let style = (FONT, TEXT).into_text_style(area);
            let style = style.pos(Pos::new(HPos::Left, VPos::Center));
            Text::new(label.to_owned(), (LEFT + 44, y), style)
        };
        for (label, colour) in &self.series {
            let sample = [(LEFT, y - BAR / 2), (LEFT + 32, y + BAR / 2)];
            area.draw(&Rectangle::new(sample, colour.rgb().mix(0.75).filled()))?;
            let label = format!("{label}: shortest, median, 99 %, longest");
            area.draw(&text(&label, y))?;
            y += LEGEND_LINE;
        }
        for (label, colour, dashes) in &self.marks {
            let x = LEFT + 16;
            stroke(area, (x, y - 9), (x, y + 9), *colour, *dashes)?;
            area.draw(&text(label, y))?;
            y += LEGEND_LINE;
        }
        Ok(())
    }

    fn draw_row(&self, area: &Area, axis: &Axis, row: &RangeRow, y: Range<i32>) -> Drawn<()> {
        let style = (FONT, TEXT).into_text_style(area);
        let style = style.pos(Pos::new(HPos::Right, VPos::Center));
        let middle = (y.start + y.end) / 2;
        let label = shortened(&row.label);
        area.draw(&Text::new(label, (LEFT - 12, middle), style))?;
        let mut top = y.start + ROW_GAP / 2;
        for ((_, colour), span) in self.series.iter().zip(&row.spans) {
            if let Some(span) = span {
                draw_span(area, axis, span, *colour, top)?;
            } else {
                let colour = colour.rgb();
                let style = (FONT, TEXT - 2).into_text_style(area).color(&colour);
                area.draw(&Text::new("none ended", (LEFT + 6, top), style))?;
            }
            top += BAR + BAR_GAP;
        }
        for ((_, colour, dashes), mark) in self.marks.iter().zip(&row.marks) {
            if let Some(mark) = mark {
                let x = axis.place(*mark);
                let ends = ((x, y.start + 4), (x, y.end - 4));
                stroke(area, ends.0, ends.1, *colour, *dashes)?;
            }
        }
        Ok(())
    }
}

fn shortened(label: &str) -> String {
    if label.chars().count() <= LABEL_MOST {
        return label.to_owned();
    }
    let begin: String = label.chars().take(LABEL_MOST - 1).collect();
    format!("{begin}…")
}

fn draw_span(area: &Area, axis: &Axis, span: &Span, colour: Colour, top: i32) -> Drawn<()> {
    let [least, median, high, most] =
        [span.least, span.median, span.high, span.most].map(|at| axis.place(at));
    let middle = top + BAR / 2;
    let colour = colour.rgb();
    let bar = [(least, top), (high.max(least + 1), top + BAR)];
    area.draw(&Rectangle::new(bar, colour.mix(0.75).filled()))?;
    let line = vec![(least, middle), (most, middle)];
    area.draw(&PathElement::new(line, colour.stroke_width(2)))?;
    for (x, reach, style) in [
        (most, 0, colour.stroke_width(2)),
        (median, 2, BLACK.stroke_width(2)),
    ] {
        let tick = vec![(x, top - reach), (x, top + BAR + reach)];
        area.draw(&PathElement::new(tick, style))?;
    }
    Ok(())
}

/// The logarithmic time axis.
struct Axis {
    first: i32,
    last: i32,
}

impl Axis {
    fn new(times: impl Iterator<Item = f64>) -> Drawn<Self> {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for time in times {
            if !time.is_finite() {
                return Err("a time is not finite".into());
            }
            if time > 0.0 {
                least = least.min(time);
                most = most.max(time);
            }
        }
        if most == 0.0 {
            return Err("there is no time to be drawn".into());
        }
        // The exponent of a finite number above 0 is at most about 308.
        #[allow(clippy::cast_possible_truncation)]
        let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
        Ok(Self {
            first,
            last: last.max(first + 1),
        })
    }

    /// Returns the position of a time on the axis. A time of 0 or less is at the left end.
    fn place(&self, seconds: f64) -> i32 {
        let decades = f64::from(self.last - self.first);
        let along = (seconds.log10() - f64::from(self.first)) / decades;
        let along = along.clamp(0.0, 1.0) * f64::from(WIDTH - LEFT - RIGHT);
        // The position is within the picture.
        #[allow(clippy::cast_possible_truncation)]
        let along = along.round() as i32;
        LEFT + along
    }

    fn draw(&self, area: &Area, y: Range<i32>) -> Drawn<()> {
        let style = (FONT, TEXT).into_text_style(area);
        let style = style.pos(Pos::new(HPos::Center, VPos::Top));
        for decade in self.first..=self.last {
            let seconds = 10_f64.powi(decade);
            let x = self.place(seconds);
            let line = vec![(x, y.start), (x, y.end)];
            area.draw(&PathElement::new(line, BLACK.mix(0.2)))?;
            area.draw(&Text::new(time(seconds, 3), (x, y.end + 8), style.clone()))?;
            for part in (2..10).filter(|_| decade < self.last) {
                let x = self.place(f64::from(part) * seconds);
                let line = vec![(x, y.start), (x, y.end)];
                area.draw(&PathElement::new(line, BLACK.mix(0.06)))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(times: [f64; 4]) -> Ranges {
        let [least, median, high, most] = times;
        let span = Span {
            least,
            median,
            high,
            most,
        };
        Ranges {
            title: "responses <&>".to_owned(),
            series: vec![
                ("described".to_owned(), Colour::Blue),
                ("without".to_owned(), Colour::Vermilion),
            ],
            marks: vec![("deadline".to_owned(), Colour::Black, Stroke::Dashed)],
            rows: vec![RangeRow {
                label: "control".to_owned(),
                spans: vec![Some(span), None],
                marks: vec![Some(2e-3)],
            }],
        }
    }

    #[test]
    fn a_row_has_its_bar_and_its_marks() {
        let svg = ranges([1e-4, 2e-4, 3e-4, 1e-3]).to_svg().unwrap();
        assert!(svg.trim_start().starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in [
            "responses &lt;&amp;&gt;",
            "control",
            "deadline",
            "none ended",
            "100 µs",
            "10 ms",
        ] {
            assert!(svg.contains(text), "{text} is missing");
        }
    }

    #[test]
    fn longer_times_stand_further_right() {
        let axis = Axis::new([1e-5, 3e-2].into_iter()).unwrap();
        let places = [0.0, 1e-5, 1e-4, 5e-4, 3e-2, 1e-1, 7.0].map(|at| axis.place(at));
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(places[0], LEFT);
        assert_eq!(places[6], WIDTH - RIGHT);
        assert!(places[2] < places[3] && places[3] < places[4]);
    }

    #[test]
    fn without_a_time_there_is_no_picture() {
        let error = ranges([0.0; 4]);
        let error = Ranges {
            rows: Vec::new(),
            ..error
        };
        assert!(error.to_svg().unwrap_err().to_string().contains("no time"));
        let error = ranges([1e-4, f64::NAN, 1.0, 1.0]).to_svg().unwrap_err();
        assert!(error.to_string().contains("not finite"), "{error}");
    }
}
