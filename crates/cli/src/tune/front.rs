// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws overhead against the longest delay of a task.
use weir_report::{Colour, Curve, CurveKind, Panel, Plot, Scale, Stroke};

use super::summary::{Alternative, Summary};

/// Returns a picture of the front as a line, with lines from the chosen point to the axes.
pub(super) fn plot(summary: &Summary) -> Plot {
    let point = |of: &Alternative| {
        let delay = of.measure.longest_delay?;
        let milliseconds = delay as f64 * 1e3 / summary.clock_hz as f64;
        Some((milliseconds, of.measure.overhead * 100.0))
    };
    let front: Vec<(f64, f64)> = summary.front.iter().filter_map(point).collect();
    let chosen = summary.front.iter().find(|of| of.chosen).and_then(point);
    let before = summary.before.as_ref().filter(|_| summary.changed);
    let mut curves = vec![Curve {
        label: "none is cheaper and quicker".to_owned(),
        kind: CurveKind::Line,
        colour: Colour::Blue,
        stroke: Stroke::Solid,
        points: stairs(&front),
    }];
    curves.extend(chosen.map(|at| to_axes("chosen", Colour::Vermilion, Stroke::Dashed, at)));
    curves.extend(
        before
            .and_then(point)
            .map(|at| to_axes("the file's now", Colour::Grey, Stroke::Dotted, at)),
    );
    Plot {
        title: format!("{}: what limits cost", summary.system),
        panels: vec![Panel {
            title: if summary.scaled {
                format!(
                    "at {} % of the tolerated rates",
                    summary.measure.scale_percent
                )
            } else {
                "at the expected rates".to_owned()
            },
            x: "longest time for which interrupts hold the processor, ms".to_owned(),
            y: "overhead beyond limiters in hardware, % of the processor".to_owned(),
            x_scale: Scale::Linear,
            curves,
        }],
    }
}

/// Returns lines from a point to both axes.
fn to_axes(label: &str, colour: Colour, stroke: Stroke, (x, y): (f64, f64)) -> Curve {
    Curve {
        label: label.to_owned(),
        kind: CurveKind::Line,
        colour,
        stroke,
        points: vec![(0.0, y), (x, y), (x, 0.0)],
    }
}

/// Turns the front into a step function. No choice is known between two points of the front, so the
/// curve keeps the first point's y until the second point's x.
fn stairs(front: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for &(x, y) in front {
        if let Some(&(_, before)) = points.last() {
            points.push((x, before));
        }
        points.push((x, y));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::stairs;

    #[test]
    fn a_front_goes_down_in_steps() {
        assert_eq!(
            stairs(&[(1.0, 9.0), (2.0, 4.0)]),
            [(1.0, 9.0), (2.0, 9.0), (2.0, 4.0)]
        );
    }
}
