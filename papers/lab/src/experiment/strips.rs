// SPDX-License-Identifier: GPL-3.0-or-later
//! All measured values as SVG: a strip of points over a box for each row, beside lines that they
//! are compared with.
use std::ops::Range;

use plotters::coord::ranged1d::{BoldPoints, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::data::Quartiles;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use weir_report::{
    Area, Colour, Drawn, FONT, PlotError, Stroke, TEXT, marked, significant, stroke,
};

/// A picture: panels of strips with a common title.
#[derive(Debug, Clone, PartialEq)]
pub struct Strips {
    /// Title of the picture.
    pub title: String,
    /// Panels from top to bottom.
    pub panels: Vec<StripPanel>,
}

/// Rows on a common linear axis, whose range is that of the values.
#[derive(Debug, Clone, PartialEq)]
pub struct StripPanel {
    /// Title above the panel.
    pub title: String,
    /// Name of the x axis, with its unit.
    pub x: String,
    /// Rows from top to bottom.
    pub rows: Vec<Strip>,
    /// Lines across all rows: label, position, colour and stroke.
    pub lines: Vec<(String, f64, Colour, Stroke)>,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Strip {
    /// The label to the left of the row.
    pub label: String,
    /// The colour of the points.
    pub colour: Colour,
    /// The values in the order of measurement.
    pub values: Vec<f64>,
    /// A value computed from the others, drawn as a triangle. The [`StripPanel::title`] explains
    /// it. `None` if there is no such value.
    pub mark: Option<f64>,
}

const WIDTH: i32 = 1000;
const LEFT: i32 = 250;
const RIGHT: i32 = 40;
const TITLE: i32 = 40;
const PANEL_TITLE: i32 = 30;
const LEGEND_LINE: i32 = 22;
const ROW: i32 = 46;
const AXIS: i32 = 64;
const BOX: i32 = 13;

impl Strips {
    /// Returns the picture as a self-contained SVG file.
    ///
    /// # Errors
    /// Fails if a panel has no values, or a value that is not finite.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        let mut svg = String::new();
        self.draw(&mut svg)
            .map_err(|error| PlotError::new(&self.title, error.as_ref()))?;
        Ok(marked(&svg))
    }

    fn draw(&self, svg: &mut String) -> Drawn<()> {
        let heights = self
            .panels
            .iter()
            .map(StripPanel::height)
            .collect::<Drawn<Vec<i32>>>()?;
        let height = TITLE + heights.iter().sum::<i32>();
        let size = (WIDTH.unsigned_abs(), height.unsigned_abs());
        let area = SVGBackend::with_string(svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        text(
            &area,
            &self.title,
            (WIDTH / 2, 10),
            20,
            (HPos::Center, VPos::Top),
        )?;
        let mut top = TITLE;
        for (panel, height) in self.panels.iter().zip(heights) {
            panel.draw(&area, top)?;
            top += height;
        }
        area.present()?;
        Ok(())
    }
}

impl StripPanel {
    fn height(&self) -> Drawn<i32> {
        let (rows, lines) = (
            i32::try_from(self.rows.len())?,
            i32::try_from(self.lines.len())?,
        );
        Ok(PANEL_TITLE + lines * LEGEND_LINE + rows * ROW + AXIS)
    }

    fn draw(&self, area: &Area, top: i32) -> Drawn<()> {
        let scale = Scale::new(self)?;
        text(
            area,
            &self.title,
            (LEFT, top + 4),
            16,
            (HPos::Left, VPos::Top),
        )?;
        let mut y = top + PANEL_TITLE + LEGEND_LINE / 2;
        for (label, _, colour, dashes) in &self.lines {
            stroke(
                area,
                (LEFT + 16, y - 9),
                (LEFT + 16, y + 9),
                *colour,
                *dashes,
            )?;
            text(
                area,
                label,
                (LEFT + 34, y),
                TEXT,
                (HPos::Left, VPos::Center),
            )?;
            y += LEGEND_LINE;
        }
        let begin = y - LEGEND_LINE / 2;
        let end = begin + ROW * i32::try_from(self.rows.len())?;
        scale.draw(area, begin..end)?;
        text(
            area,
            &self.x,
            ((LEFT + WIDTH - RIGHT) / 2, end + 30),
            TEXT,
            (HPos::Center, VPos::Top),
        )?;
        for (_, at, colour, dashes) in &self.lines {
            let x = scale.place(*at);
            stroke(area, (x, begin), (x, end), *colour, *dashes)?;
        }
        for (row, y) in self
            .rows
            .iter()
            .zip((begin + ROW / 2..).step_by(ROW.unsigned_abs() as usize))
        {
            text(
                area,
                &row.label,
                (LEFT - 12, y),
                TEXT,
                (HPos::Right, VPos::Center),
            )?;
            row.draw(area, &scale, y)?;
        }
        Ok(())
    }
}

impl Strip {
    fn draw(&self, area: &Area, scale: &Scale, y: i32) -> Drawn<()> {
        let colour = self.colour.rgb();
        let [_, low, median, high, _] = Quartiles::new(&self.values).values();
        let [low, median, high] = [low, median, high].map(|value| scale.place(f64::from(value)));
        let frame = [(low, y - BOX), (high.max(low + 1), y + BOX)];
        area.draw(&Rectangle::new(frame, colour.mix(0.18).filled()))?;
        let tick = vec![(median, y - BOX - 3), (median, y + BOX + 3)];
        area.draw(&PathElement::new(tick, BLACK.stroke_width(2)))?;
        for (index, value) in self.values.iter().enumerate() {
            // Points are spread vertically within the box, so that equal values are visible. The
            // spread is deterministic.
            let spread = i32::try_from(index * 7 % 19)? - 9;
            area.draw(&Circle::new(
                (scale.place(*value), y + spread),
                2,
                colour.filled(),
            ))?;
        }
        if let Some(mark) = self.mark {
            let x = scale.place(mark);
            let corners = vec![(x, y - BOX), (x - 6, y - BOX - 10), (x + 6, y - BOX - 10)];
            area.draw(&Polygon::new(corners, BLACK))?;
        }
        Ok(())
    }
}

struct Scale(RangedCoordf64);

impl Scale {
    fn new(panel: &StripPanel) -> Drawn<Self> {
        if panel.rows.is_empty() || panel.rows.iter().any(|row| row.values.is_empty()) {
            return Err(format!("the panel `{}` has a row without values", panel.title).into());
        }
        let of_rows = panel
            .rows
            .iter()
            .flat_map(|row| row.values.iter().copied().chain(row.mark));
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in of_rows.chain(panel.lines.iter().map(|line| line.1)) {
            if !value.is_finite() {
                return Err(
                    format!("the panel `{}` has a value that is not finite", panel.title).into(),
                );
            }
            least = least.min(value);
            most = most.max(value);
        }
        // An axis of length zero would have no tick marks.
        let margin = if most > least {
            (most - least) * 0.05
        } else {
            0.5
        };
        Ok(Self((least - margin..most + margin).into()))
    }

    fn place(&self, value: f64) -> i32 {
        self.0.map(&value, (LEFT, WIDTH - RIGHT))
    }

    fn draw(&self, area: &Area, y: Range<i32>) -> Drawn<()> {
        let digits = |value: f64| {
            let whole = value.abs().max(1.0).log10().floor();
            // Formats with two decimals. The integer part of a finite number has at most about 311
            // digits.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 3 and 311, and saturating"
            )]
            let digits = (whole + 3.0) as u8;
            digits
        };
        for at in self.0.key_points(BoldPoints(10)) {
            let x = self.0.map(&at, (LEFT, WIDTH - RIGHT));
            let line = vec![(x, y.start), (x, y.end)];
            area.draw(&PathElement::new(line, BLACK.mix(0.15)))?;
            text(
                area,
                &significant(at, digits(at)),
                (x, y.end + 8),
                TEXT,
                (HPos::Center, VPos::Top),
            )?;
        }
        Ok(())
    }
}

fn text(area: &Area, words: &str, at: (i32, i32), size: i32, anchor: (HPos, VPos)) -> Drawn<()> {
    let style = (FONT, size).into_text_style(area);
    let style = style.pos(Pos::new(anchor.0, anchor.1));
    area.draw(&Text::new(words.to_owned(), at, style))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strips(values: Vec<f64>) -> Strips {
        Strips {
            title: "Fmax <&>".to_owned(),
            panels: vec![StripPanel {
                title: "by seed".to_owned(),
                x: "change, %".to_owned(),
                rows: vec![Strip {
                    label: "picorv32 on ice40".to_owned(),
                    colour: Colour::Blue,
                    values,
                    mark: Some(-0.5),
                }],
                lines: vec![("goal".to_owned(), -1.0, Colour::Vermilion, Stroke::Dashed)],
            }],
        }
    }

    #[test]
    fn every_value_is_a_point_beside_its_lines() {
        let svg = strips(vec![-2.0, 0.5, 0.5, 3.0]).to_svg().unwrap();
        assert!(svg.trim_start().starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in [
            "Fmax &lt;&amp;&gt;",
            "by seed",
            "change, %",
            "picorv32 on ice40",
            "goal",
        ] {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert_eq!(svg.matches("<circle").count(), 4);
        assert_eq!(svg.matches("<polygon").count(), 1, "the mark");
    }

    #[test]
    fn larger_values_stand_further_right() {
        let strips = strips(vec![-2.0, 3.0]);
        let scale = Scale::new(&strips.panels[0]).unwrap();
        let places = [-2.0, -1.0, 0.0, 3.0].map(|at| scale.place(at));
        assert!(
            places.is_sorted() && places[0] > LEFT && places[3] < WIDTH - RIGHT,
            "{places:?}"
        );
    }

    #[test]
    fn values_that_have_no_place_are_refused() {
        let error = strips(Vec::new()).to_svg().unwrap_err().to_string();
        assert!(error.contains("without values"), "{error}");
        let error = strips(vec![f64::NAN]).to_svg().unwrap_err().to_string();
        assert!(error.contains("not finite"), "{error}");
    }

    #[test]
    fn equal_values_are_drawn() {
        let mut equal = strips(vec![7.0; 3]);
        equal.panels[0].lines.clear();
        equal.panels[0].rows[0].mark = None;
        equal.to_svg().unwrap();
    }
}
