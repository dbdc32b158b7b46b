// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws line plots as SVG: panels below each other, with the name of each curve at its end.
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use serde::Deserialize;

use crate::number::short;
use crate::output::marked;

/// Colours that readers with any colour vision can distinguish (Okabe and Ito 2008), and grey for
/// values that are only quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Colour {
    /// Black, for the reference curve of a plot.
    Black,
    /// Grey, for values that were not measured here.
    Grey,
    /// Orange of Okabe and Ito's palette.
    Orange,
    /// Sky blue of Okabe and Ito's palette.
    SkyBlue,
    /// Green of Okabe and Ito's palette.
    Green,
    /// Blue of Okabe and Ito's palette.
    Blue,
    /// Vermilion of Okabe and Ito's palette.
    Vermilion,
    /// Purple of Okabe and Ito's palette.
    Purple,
}

impl Colour {
    /// The colour for plotters.
    #[must_use]
    pub fn rgb(self) -> RGBColor {
        match self {
            Self::Black => RGBColor(0, 0, 0),
            Self::Grey => RGBColor(140, 140, 140),
            Self::Orange => RGBColor(230, 159, 0),
            Self::SkyBlue => RGBColor(86, 180, 233),
            Self::Green => RGBColor(0, 158, 115),
            Self::Blue => RGBColor(0, 114, 178),
            Self::Vermilion => RGBColor(213, 94, 0),
            Self::Purple => RGBColor(204, 121, 167),
        }
    }
}

/// The stroke of a line, which distinguishes curves in print, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stroke {
    /// A continuous line.
    #[default]
    Solid,
    /// A line of long dashes.
    Dashed,
    /// A line of short dashes.
    Dotted,
}

impl Stroke {
    /// Returns the length of a dash and of the gap after it, in pixels. `None` for a continuous
    /// line.
    fn dash(self) -> Option<(u32, u32)> {
        match self {
            Self::Solid => None,
            Self::Dashed => Some((9, 5)),
            Self::Dotted => Some((3, 4)),
        }
    }
}

/// Whether values between the points of a curve are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CurveKind {
    /// Only the points were measured, so they have markers. Few points are not connected by a line.
    #[default]
    Measured,
    /// All values are known: the curve is a line, and its points are only corners.
    Line,
}

/// One line of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The name, which is written at the curve's end.
    pub label: String,
    /// Whether values between the points are known.
    pub kind: CurveKind,
    /// Colour of the line.
    pub colour: Colour,
    /// Stroke of the line.
    pub stroke: Stroke,
    /// Points in ascending order of x.
    pub points: Vec<(f64, f64)>,
}

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// A linear axis, which begins at 0.
    #[default]
    Linear,
    /// A logarithmic axis, for values above 0 only.
    Logarithmic,
}

/// One pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Title above the panel.
    pub title: String,
    /// Name of the x axis, with its unit.
    pub x: String,
    /// Name of the y axis, with its unit.
    pub y: String,
    /// Scale of the x axis; the y axis is linear.
    pub x_scale: Scale,
    /// The curves in drawing order. If there are more than five colours, further curves are grey.
    pub curves: Vec<Curve>,
}

/// A picture: panels with a common title.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Title of the picture.
    pub title: String,
    /// Panels from top to bottom.
    pub panels: Vec<Panel>,
}

/// Why a plot cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw `{title}`: {cause}")]
pub struct PlotError {
    title: String,
    cause: String,
}

impl PlotError {
    /// The picture of this title cannot be drawn.
    #[must_use]
    pub fn new(title: &str, cause: &dyn std::error::Error) -> Self {
        Self {
            title: title.to_owned(),
            cause: cause.to_string(),
        }
    }
}

const WIDTH: u32 = 1000;
const TITLE_HEIGHT: u32 = 44;
const PANEL_HEIGHT: u32 = 400;
/// The width in pixels of the column of names to the right of the axes.
const NAMES_WIDTH: u32 = 290;
/// The least vertical distance of two names in pixels.
const NAME_LINE: i32 = 19;
/// The begin and the end of the line sample before each name, in pixels to the right of the axes.
const SAMPLE: (i32, i32) = (22, 50);
/// The distance between the line sample and the name in pixels.
const NAME_GAP: i32 = 6;
/// A curve of at most this many points is drawn without a line, which would suggest more
/// measurements.
const NO_LINE: usize = 3;
/// Curves of at most this many points get large markers.
const FEW: usize = 12;
/// Curves of at most this many points get markers. More markers would hide the line.
const MARKED: usize = 60;
/// The most colours that readers can distinguish and remember.
const MOST_COLOURS: usize = 5;
/// The font of all pictures.
pub const FONT: &str = "sans-serif";
/// The height of a picture's labels, in pixels.
pub const TEXT: i32 = 14;

/// What drawing a part of a picture gives.
pub type Drawn<T> = Result<T, Box<dyn std::error::Error>>;

impl Plot {
    /// Returns the picture as a self-contained SVG file.
    ///
    /// # Errors
    /// Fails if a panel has no points, or a point that is not finite.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        let mut svg = String::new();
        self.draw(&mut svg)
            .map_err(|error| PlotError::new(&self.title, error.as_ref()))?;
        Ok(marked(&svg))
    }

    fn draw(&self, svg: &mut String) -> Drawn<()> {
        let panels = u32::try_from(self.panels.len())?;
        let size = (WIDTH, TITLE_HEIGHT + PANEL_HEIGHT * panels);
        let all = SVGBackend::with_string(svg, size).into_drawing_area();
        all.fill(&WHITE)?;
        let rest = all.titled(
            &self.title,
            (FONT, fitting(&self.title, i32::try_from(WIDTH)?, 20)),
        )?;
        for (area, panel) in rest
            .split_evenly((self.panels.len(), 1))
            .iter()
            .zip(&self.panels)
        {
            draw_panel(area, panel)?;
        }
        all.present()?;
        Ok(())
    }
}

/// Returns the font size at which a text is at most `width` pixels wide, between 8 (the smallest
/// readable size) and `most`. The width of a letter is 0.43 times its height, on average.
fn fitting(text: &str, width: i32, most: i32) -> i32 {
    let letters = i32::try_from(text.chars().count()).unwrap_or(i32::MAX);
    (10 * width * 10 / 43 / letters.max(1)).clamp(8, most)
}

/// A picture, or a part of it, that is drawn on.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw_panel(area: &Area, panel: &Panel) -> Drawn<()> {
    let (x, y) = ranges(panel)?;
    match panel.x_scale {
        Scale::Linear => draw_axes(area, panel, x, y),
        Scale::Logarithmic => draw_axes(area, panel, x.log_scale(), y),
    }
}

fn draw_axes<X>(area: &Area, panel: &Panel, x: X, y: Range<f64>) -> Drawn<()>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, (FONT, 16))
        .margin(10)
        .margin_right(NAMES_WIDTH)
        .x_label_area_size(48)
        .y_label_area_size(60)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .x_desc(&panel.x)
        .y_desc(&panel.y)
        .x_label_formatter(&|x| mark(*x, panel.x_scale))
        .y_label_formatter(&|y| short(*y))
        .axis_desc_style((FONT, TEXT))
        .label_style((FONT, TEXT))
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .draw()?;
    let colours = colours(panel);
    let mut ends = Vec::new();
    for (curve, &colour) in panel.curves.iter().zip(&colours) {
        let points = curve.points.iter().copied();
        let style = colour.rgb().stroke_width(2);
        let is_line = curve.kind == CurveKind::Line;
        if is_line || curve.points.len() > NO_LINE {
            match curve.stroke.dash() {
                None => chart.draw_series(LineSeries::new(points, style))?,
                Some((dash, gap)) => {
                    chart.draw_series(DashedLineSeries::new(points, dash, gap, style))?
                }
            };
        }
        if !is_line && curve.points.len() <= MARKED {
            let radius = if curve.points.len() <= FEW { 3 } else { 2 };
            let marks = curve.points.iter();
            chart.draw_series(marks.map(|point| Circle::new(*point, radius, style.filled())))?;
        }
        // The highest point at the right end, so that a curve that ends with a vertical line is
        // labelled at its top.
        let end = curve.points.iter().copied().reduce(|end, point| {
            if point.0 > end.0 || (point.0 >= end.0 && point.1 > end.1) {
                point
            } else {
                end
            }
        });
        ends.extend(end.map(|end| (chart.backend_coord(&end), curve, colour)));
    }
    let right = chart.plotting_area().get_pixel_range().0.end;
    draw_names(area, right, ends)
}

/// Returns the colours of the curves: their own, or grey for curves beyond the most colours.
fn colours(panel: &Panel) -> Vec<Colour> {
    let mut kept = Vec::new();
    let of_curve = |curve: &Curve| {
        if curve.colour == Colour::Grey || kept.contains(&curve.colour) {
            return curve.colour;
        }
        if kept.len() == MOST_COLOURS {
            return Colour::Grey;
        }
        kept.push(curve.colour);
        curve.colour
    };
    panel.curves.iter().map(of_curve).collect()
}

/// Writes the name of each curve at `right`, at the height of the curve's end. If the end is near,
/// a thin line leads to it. Names that would overlap are moved apart.
fn draw_names(area: &Area, right: i32, mut ends: Vec<((i32, i32), &Curve, Colour)>) -> Drawn<()> {
    let (columns, rows) = area.get_pixel_range();
    let (left, top) = (columns.start, rows.start);
    ends.sort_by_key(|&((_, y), ..)| y);
    let wanted: Vec<i32> = ends.iter().map(|&((_, y), ..)| y - top).collect();
    let places = apart(&wanted, NAME_LINE, rows.end - top - NAME_LINE);
    for (((x, y), curve, colour), place) in ends.into_iter().zip(places) {
        let (begin, end) = (right - left + SAMPLE.0, right - left + SAMPLE.1);
        // A long line to a distant end would look like a part of the curve.
        if right - x < NAME_LINE * 4 {
            let leader = colour.rgb().mix(0.35).stroke_width(1);
            let ends = [(x - left, y - top), (begin, place)];
            area.draw(&PathElement::new(ends, leader))?;
        }
        stroke(area, (begin, place), (end, place), colour, curve.stroke)?;
        let at = end + NAME_GAP;
        let size = fitting(&curve.label, columns.end - left - at, TEXT);
        area.draw(&Text::new(
            curve.label.clone(),
            (at, place - size / 2),
            (FONT, size),
        ))?;
    }
    Ok(())
}

/// Returns positions that are at least `least` apart and at most `most`, as near as possible to the
/// `wanted` positions, which are in ascending order.
fn apart(wanted: &[i32], least: i32, most: i32) -> Vec<i32> {
    let mut places: Vec<i32> = Vec::with_capacity(wanted.len());
    for &place in wanted {
        let lowest = places.last().map_or(place, |before| before + least);
        places.push(place.max(lowest));
    }
    // Positions that were moved beyond the end move back and push the others.
    let mut limit = most;
    for place in places.iter_mut().rev() {
        *place = (*place).min(limit);
        limit = *place - least;
    }
    places
}

/// Formats the number at a tick mark. The text is empty for 6 to 9 on a logarithmic axis, where
/// marks are too close together.
fn mark(x: f64, scale: Scale) -> String {
    let leading = x / 10_f64.powf(x.log10().floor());
    match scale {
        Scale::Logarithmic if (5.5..9.5).contains(&leading) => String::new(),
        Scale::Linear | Scale::Logarithmic => short(x),
    }
}

/// Draws a line from left to right, or from top to bottom.
///
/// # Errors
/// Fails if the line leaves the picture.
pub fn stroke(
    area: &Area,
    from: (i32, i32),
    to: (i32, i32),
    colour: Colour,
    stroke: Stroke,
) -> Drawn<()> {
    let style = colour.rgb().stroke_width(3);
    let length = (to.0 - from.0).max(to.1 - from.1);
    let (dash, gap) = stroke.dash().unwrap_or((length.unsigned_abs(), 1));
    let step = usize::try_from(dash + gap)?;
    let point = |along: i32| (to.0.min(from.0 + along), to.1.min(from.1 + along));
    for begin in (0..length).step_by(step) {
        let dash = [begin, begin + i32::try_from(dash)?].map(point);
        area.draw(&PathElement::new(dash, style))?;
    }
    Ok(())
}

/// Returns the ranges of the axes. Linear axes begin at 0, so that the height of a curve shows its
/// value.
fn ranges(panel: &Panel) -> Drawn<(Range<f64>, Range<f64>)> {
    let points = || panel.curves.iter().flat_map(|curve| &curve.points);
    if points().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
        return Err(format!("the panel `{}` has a point that is not finite", panel.title).into());
    }
    if points().next().is_none() {
        return Err(format!("the panel `{}` has no points", panel.title).into());
    }
    let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(0.0_f64, f64::max);
    let least = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(0.0_f64, f64::min);
    // An axis of length zero would have no tick marks.
    let end = |most: f64| if most > 0.0 { most * 1.05 } else { 1.0 };
    let y = least(|p| p.1)..end(most(|p| p.1));
    let first = points().map(|p| p.0).fold(f64::INFINITY, f64::min);
    match panel.x_scale {
        Scale::Linear => Ok((least(|p| p.0)..end(most(|p| p.0)), y)),
        Scale::Logarithmic if first > 0.0 => Ok((first..end(most(|p| p.0)), y)),
        Scale::Logarithmic => Err(format!(
            "the panel `{}` has a logarithmic axis and a point at {first}",
            panel.title
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64)>) -> Plot {
        let curve = |label: &str, stroke| Curve {
            label: label.to_owned(),
            kind: CurveKind::Measured,
            colour: Colour::Vermilion,
            stroke,
            points: points.clone(),
        };
        Plot {
            title: "Figure 1 <&>".to_owned(),
            panels: vec![Panel {
                title: "plain C".to_owned(),
                x: "requests offered, kHz".to_owned(),
                y: "CPU lost, %".to_owned(),
                x_scale: Scale::Linear,
                curves: vec![
                    curve("strict", Stroke::Solid),
                    curve("bursty 4", Stroke::Dashed),
                    curve("bursty 16", Stroke::Dotted),
                ],
            }],
        }
    }

    #[test]
    fn long_texts_are_smaller() {
        assert_eq!(fitting("Figure 1", 1000, 20), 20);
        assert_eq!(fitting(&"x".repeat(115), 1000, 20), 20);
        assert_eq!(fitting(&"x".repeat(136), 1000, 20), 17);
        assert_eq!(fitting("", 1000, 20), 20);
        assert_eq!(fitting(&"x".repeat(1_000_000), 1000, 20), 8);
    }

    #[test]
    fn long_names_of_curves_stay_in_the_picture() {
        for letters in [10, 40, 64] {
            let mut plot = plot(vec![(1.0, 1.0), (2.0, 2.0)]);
            let name = "x".repeat(letters);
            plot.panels[0].curves[0].label.clone_from(&name);
            let svg = plot.to_svg().unwrap();
            let text = &svg[..svg.find(&name).unwrap()];
            let text = &text[text.rfind("<text").unwrap()..];
            let number = |name: &str| -> f64 {
                let value = text.split(&format!(" {name}=\"")).nth(1).unwrap();
                value.split('"').next().unwrap().parse().unwrap()
            };
            let wide = 0.43 * number("font-size") * letters as f64;
            assert!(number("x") + wide <= f64::from(WIDTH), "{letters}: {text}");
        }
    }

    #[test]
    fn measured_points_are_marked_and_a_few_have_no_line() {
        let of = |points: Vec<(f64, f64)>| {
            let mut plot = plot(points);
            plot.panels[0].curves.truncate(1);
            let circles = |svg: &str| svg.matches("<circle").count();
            let lines = |svg: &str| svg.matches("<polyline").count();
            let measured = plot.to_svg().unwrap();
            plot.panels[0].curves[0].kind = CurveKind::Line;
            let line = plot.to_svg().unwrap();
            (
                circles(&measured),
                circles(&line),
                lines(&line) - lines(&measured),
            )
        };
        let points = |number: usize| (0..number).map(|at| (at as f64, 1.0)).collect();
        assert_eq!(of(points(NO_LINE)), (NO_LINE, 0, 1));
        assert_eq!(of(points(NO_LINE + 1)), (NO_LINE + 1, 0, 0));
        assert_eq!(of(points(MARKED)), (MARKED, 0, 0));
        assert_eq!(of(points(MARKED + 1)), (0, 0, 0));
    }

    #[test]
    fn names_are_apart_and_in_the_picture() {
        assert_eq!(apart(&[10, 12, 50], 19, 300), [10, 29, 50]);
        assert_eq!(apart(&[290, 295, 299], 19, 300), [262, 281, 300]);
        assert!(apart(&[], 19, 300).is_empty());
    }

    #[test]
    fn curves_beyond_five_colours_are_grey() {
        let mut plot = plot(vec![(0.0, 1.0)]);
        let colours_of = [
            Colour::Grey,
            Colour::Black,
            Colour::Orange,
            Colour::SkyBlue,
            Colour::Green,
            Colour::Black,
            Colour::Blue,
            Colour::Purple,
        ];
        let curve = plot.panels[0].curves[0].clone();
        let of = |colour| Curve {
            colour,
            ..curve.clone()
        };
        plot.panels[0].curves = colours_of.map(of).to_vec();
        let mut expected = colours_of;
        expected[7] = Colour::Grey;
        assert_eq!(colours(&plot.panels[0]), expected);
    }

    #[test]
    fn a_plot_has_its_texts_and_its_curves() {
        let svg = plot(vec![(0.26, 1.0), (4.0, 9.5), (16.0, 10.0)])
            .to_svg()
            .unwrap();
        assert!(svg.trim_start().starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in [
            "Figure 1 &lt;&amp;&gt;",
            "plain C",
            "requests offered, kHz",
            "CPU lost, %",
            "bursty 16",
        ] {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert!(svg.matches("#D55E00").count() > 3);
    }

    #[test]
    fn the_same_plot_gives_the_same_picture() {
        let plot = plot(vec![(0.0, 0.0), (1.0, 1.0)]);
        assert_eq!(plot.to_svg().unwrap(), plot.to_svg().unwrap());
    }

    #[test]
    fn a_panel_without_a_place_for_its_points_is_refused() {
        let error = plot(Vec::new()).to_svg().unwrap_err().to_string();
        assert!(error.contains("no points"), "{error}");
        let error = plot(vec![(0.0, f64::NAN)])
            .to_svg()
            .unwrap_err()
            .to_string();
        assert!(error.contains("not finite"), "{error}");
    }

    #[test]
    fn numbers_at_a_logarithmic_axis_do_not_overlap() {
        let marks =
            |scale| [10_000.0, 50_000.0, 60_000.0, 90_000.0, 100_000.0].map(|x| mark(x, scale));
        assert_eq!(
            marks(Scale::Logarithmic),
            ["10000", "50000", "", "", "100000"]
        );
        assert_eq!(marks(Scale::Linear)[2..4], ["60000", "90000"]);
        assert_eq!(mark(0.0, Scale::Linear), "0");
    }

    #[test]
    fn a_logarithmic_axis_has_no_place_for_zero() {
        let mut plot = plot(vec![(333.0, 1.0), (1_488_000.0, 100.0)]);
        plot.panels[0].x_scale = Scale::Logarithmic;
        assert!(plot.to_svg().unwrap().contains("100000"));
        plot.panels[0].curves[0].points[0].0 = 0.0;
        let error = plot.to_svg().unwrap_err().to_string();
        assert!(error.contains("logarithmic"), "{error}");
    }

    #[test]
    fn a_flat_curve_at_zero_is_drawn() {
        plot(vec![(0.0, 0.0)]).to_svg().unwrap();
    }
}
