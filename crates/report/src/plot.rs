// SPDX-License-Identifier: MIT OR Apache-2.0
//! Line plots as SVG: panels below each other, the legend beside the curves.
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use serde::Deserialize;

use crate::number::short;

/// Colours that readers with any colour vision tell apart (Okabe and Ito 2008), and a grey for
/// values that are only quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Colour {
    /// Colour of the reference of a plot.
    Black,
    /// Colour of values that were not measured here.
    Grey,
    /// Okabe and Ito's.
    Orange,
    /// Okabe and Ito's.
    SkyBlue,
    /// Okabe and Ito's.
    Green,
    /// Okabe and Ito's.
    Blue,
    /// Okabe and Ito's.
    Vermilion,
    /// Okabe and Ito's.
    Purple,
}

impl Colour {
    pub(crate) fn rgb(self) -> RGBColor {
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

/// How a line is drawn, so that curves differ in print too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stroke {
    /// Without gaps.
    #[default]
    Solid,
    /// Long dashes.
    Dashed,
    /// Short dashes.
    Dotted,
}

impl Stroke {
    /// Length of a dash and of the gap after it, in pixels.
    fn dash(self) -> Option<(u32, u32)> {
        match self {
            Self::Solid => None,
            Self::Dashed => Some((9, 5)),
            Self::Dotted => Some((3, 4)),
        }
    }
}

/// One line of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Text in the legend.
    pub label: String,
    /// Colour of the line.
    pub colour: Colour,
    /// Stroke of the line.
    pub stroke: Stroke,
    /// Points in ascending order of x.
    pub points: Vec<(f64, f64)>,
}

/// Division of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Begins at 0; equal lengths are equal differences.
    #[default]
    Linear,
    /// Equal lengths are equal ratios; only for values above 0.
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
    /// Curves in the order of the legend; the first is drawn first.
    pub curves: Vec<Curve>,
}

/// Panels that share a title.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Title of the picture.
    pub title: String,
    /// Panels from top to bottom.
    pub panels: Vec<Panel>,
}

/// A plot that cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw `{title}`: {cause}")]
pub struct PlotError {
    title: String,
    cause: String,
}

impl PlotError {
    pub(crate) fn new(title: &str, cause: &dyn std::error::Error) -> Self {
        Self {
            title: title.to_owned(),
            cause: cause.to_string(),
        }
    }
}

const WIDTH: u32 = 1000;
const TITLE_HEIGHT: u32 = 44;
const PANEL_HEIGHT: u32 = 400;
const LEGEND_WIDTH: u32 = 290;
const LEGEND_LINE: i32 = 24;
/// Curves of at most this many points have a marker at each: what is between them is not measured.
const FEW: usize = 12;
/// Begin and end of a curve's sample in the legend.
const LEGEND_STROKE: (i32, i32) = (8, 44);
pub(crate) const FONT: &str = "sans-serif";
pub(crate) const TEXT: i32 = 14;

pub(crate) type Drawn<T> = Result<T, Box<dyn std::error::Error>>;

impl Plot {
    /// The picture, complete and self-contained.
    ///
    /// # Errors
    /// Fails if a panel has no points, or one that is not finite.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        let mut svg = String::new();
        self.draw(&mut svg)
            .map_err(|error| PlotError::new(&self.title, error.as_ref()))?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String) -> Drawn<()> {
        let panels = u32::try_from(self.panels.len())?;
        let size = (WIDTH, TITLE_HEIGHT + PANEL_HEIGHT * panels);
        let all = SVGBackend::with_string(svg, size).into_drawing_area();
        all.fill(&WHITE)?;
        let rest = all.titled(&self.title, (FONT, 20))?;
        for (area, panel) in rest
            .split_evenly((self.panels.len(), 1))
            .iter()
            .zip(&self.panels)
        {
            let (chart, legend) = area.split_horizontally(WIDTH - LEGEND_WIDTH);
            draw_panel(&chart, panel)?;
            draw_legend(&legend, panel)?;
        }
        all.present()?;
        Ok(())
    }
}

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

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
    for curve in &panel.curves {
        let points = curve.points.iter().copied();
        let style = curve.colour.rgb().stroke_width(2);
        match curve.stroke.dash() {
            None => chart.draw_series(LineSeries::new(points, style))?,
            Some((dash, gap)) => {
                chart.draw_series(DashedLineSeries::new(points, dash, gap, style))?
            }
        };
        if curve.points.len() <= FEW {
            let marks = curve.points.iter();
            chart.draw_series(marks.map(|point| Circle::new(*point, 3, style.filled())))?;
        }
    }
    Ok(())
}

/// Formats the number at a tick mark; empty for 6 to 9 on a logarithmic axis, which are too close
/// together.
fn mark(x: f64, scale: Scale) -> String {
    let leading = x / 10_f64.powf(x.log10().floor());
    match scale {
        Scale::Logarithmic if (5.5..9.5).contains(&leading) => String::new(),
        Scale::Linear | Scale::Logarithmic => short(x),
    }
}

/// A line from left to right, or from top to bottom.
pub(crate) fn stroke(
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

fn draw_legend(area: &Area, panel: &Panel) -> Drawn<()> {
    let mut y = 48;
    for curve in &panel.curves {
        let (begin, end) = LEGEND_STROKE;
        stroke(area, (begin, y), (end, y), curve.colour, curve.stroke)?;
        area.draw(&Text::new(
            curve.label.clone(),
            (52, y - TEXT / 2),
            (FONT, TEXT),
        ))?;
        y += LEGEND_LINE;
    }
    Ok(())
}

/// Linear axes begin at 0, so that a curve's height is its value.
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
    // An axis of zero length has no marks.
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
    fn few_points_are_seen_beside_the_lines_between_them() {
        let circles = |points| {
            let svg = plot(points).to_svg().unwrap();
            svg.matches("<circle").count()
        };
        assert_eq!(circles(vec![(4.0, 9.5)]), 3);
        assert_eq!(circles(vec![(0.26, 1.0), (4.0, 9.5)]), 6);
        let many = vec![(4.0, 9.5); FEW + 1];
        assert_eq!(circles(many), 0);
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
