// SPDX-License-Identifier: GPL-3.0-or-later
//! `weir-lab reproduce`: measures a figure or table of a paper and compares the result with its
//! claims.
use std::path::PathBuf;

use clap::ValueHint;
use miette::{IntoDiagnostic, miette};
use weir_report::terminal::{Outcome, is_coloured, print, print_json};
use weir_report::{
    Align, ClaimVerdict, Emphasis, Grid, Outputs, PICTURE_MARK, Place, RESULTS_MARK, claims_table,
    write_all,
};

use crate::experiment::{
    Checkout, Detail, Experiment, ExtraName, Findings, Picture, place_threads,
};

/// Reproduce a figure or table of a paper, beside the paper's values
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The experiment: regehr2005/fig1
    #[arg(required_unless_present = "list")]
    name: Option<String>,

    /// List the experiments
    #[arg(long)]
    list: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    /// Measure only the quick part that the experiment's file states, which takes seconds
    #[arg(long)]
    quick: bool,

    /// First repeat the measurements that the repository keeps, which can take hours; an
    /// interrupted measurement is resumed
    #[arg(long, conflicts_with = "quick")]
    measure: bool,

    /// The folder for results; it is made if it is missing
    #[arg(long, value_name = "DIR", default_value = "results", value_hint = ValueHint::DirPath)]
    out: PathBuf,

    /// Replace files that Weir did not write
    #[arg(long)]
    force: bool,

    /// Weir's repository, with the experiments and their firmware; if not given, the current folder
    /// or the nearest one above that has them
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    root: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  weir reproduce --list
  weir reproduce regehr2005/fig1
  weir reproduce regehr2005/table2 --json

Writes results/regehr2005/fig1.json and .svg. The exit code is 0 if every claim is met, 1 if one is \
not, and 2 if the experiment could not be carried out.";

/// Executes the command.
///
/// # Errors
/// Returns an error if the experiment is unknown, if a compiler is missing, or if the results
/// cannot be written.
pub fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let place = match &arguments.root {
        Some(root) => Checkout::find(root)?,
        None => Checkout::find(&std::env::current_dir().into_diagnostic()?)?,
    };
    let Some(name) = arguments.name.as_ref().filter(|_| !arguments.list) else {
        print(&list(&place)?)?;
        return Ok(Outcome::Good);
    };
    place_threads();
    let mut experiment = Experiment::load(&place, name)?;
    let left_out = if arguments.quick {
        experiment.shorten()?
    } else {
        Vec::new()
    };
    // Report an output file that must not be overwritten before the measurements, which can take
    // long.
    let places = places(arguments, name, &experiment.extras())?;
    if arguments.measure {
        experiment.measure_anew(&place)?;
    }
    let mut findings = experiment.run(&place)?;
    if arguments.quick {
        // The part that the quick form leaves out may be the one that misses the goal.
        let claims = findings.report.claims.iter_mut();
        claims
            .filter(|claim| claim.verdict() == ClaimVerdict::Met)
            .for_each(|claim| claim.today = None);
    }
    let written = write(&place, places, &findings)?;
    if arguments.json {
        print_json(&findings.report.to_json())?;
    } else {
        let coloured = is_coloured();
        let mut text = experiment.title().to_owned();
        if let Some(detail) = &findings.detail {
            text = format!("{text}\n{}\n", detail_grid(detail, coloured));
        }
        let table = claims_table(&findings.report.claims, coloured);
        print(&format!("{text}\n{table}"))?;
    }
    if !left_out.is_empty() {
        eprintln!(
            "not judged, since they are about all points and seeds: {}",
            left_out.join(", ")
        );
    }
    for path in written {
        eprintln!("written: {}", path.display());
    }
    Ok(Outcome::good_if(findings.report.is_met()))
}

fn detail_grid(detail: &Detail, coloured: bool) -> String {
    let last = detail.columns.len().saturating_sub(1);
    let columns: Vec<(&str, Align)> = detail
        .columns
        .iter()
        .enumerate()
        .map(|(index, title)| {
            let is_text = index == 0 || index == last;
            (
                title.as_str(),
                if is_text { Align::Left } else { Align::Right },
            )
        })
        .collect();
    let mut grid = Grid::new(&columns, coloured);
    for row in &detail.rows {
        grid.row(row.iter().map(|cell| (cell.clone(), Emphasis::Plain)));
    }
    grid.text()
}

fn list(place: &Checkout) -> miette::Result<String> {
    let lines = place
        .names()
        .into_iter()
        .map(|name| {
            let experiment = Experiment::load(place, &name)?;
            Ok(format!("{name}  {}", experiment.title()))
        })
        .collect::<miette::Result<Vec<String>>>()?;
    Ok(lines.join("\n"))
}

/// The paths of the result files (JSON, SVG and any further files) in the paper's folder below the
/// folder for results.
fn places(
    arguments: &Args,
    name: &str,
    extras: &[ExtraName],
) -> miette::Result<([Place; 2], Vec<Place>)> {
    let (paper, name) = name
        .rsplit_once('/')
        .ok_or_else(|| miette!("the name `{name}` is not of the form PAPER/NAME"))?;
    let folder = arguments.out.join(paper);
    let mut outputs = Outputs::new(arguments.force);
    outputs.folder(&arguments.out)?;
    outputs.folder(&folder)?;
    let mut place =
        |ending: &str, mark| outputs.file(&folder.join(format!("{name}{ending}")), mark);
    let usual = [
        place(".json", Some(RESULTS_MARK))?,
        place(".svg", Some(PICTURE_MARK))?,
    ];
    let further = extras
        .iter()
        .map(|extra| place(&format!("-{}", extra.ending), Some(extra.mark)));
    Ok((usual, further.collect::<Result<_, _>>()?))
}

/// Writes the results. Also writes measured costs into the board's file, where they replace earlier
/// ones.
fn write(
    checkout: &Checkout,
    ([json_place, svg_place], extra_places): ([Place; 2], Vec<Place>),
    findings: &Findings,
) -> miette::Result<Vec<PathBuf>> {
    let mut json = serde_json::to_string_pretty(&findings.report.to_json()).into_diagnostic()?;
    json.push('\n');
    let svg = findings
        .picture
        .as_ref()
        .map(Picture::to_svg)
        .transpose()
        .into_diagnostic()?;
    let svg = svg.as_ref().map(|svg| (svg_place, svg.as_bytes()));
    let extras = findings.extras.iter().map(Vec::as_slice);
    let files = std::iter::once((json_place, json.as_bytes()))
        .chain(svg)
        .chain(extra_places.into_iter().zip(extras));
    let mut written = write_all(files).into_diagnostic()?;
    if let Some(costs) = &findings.costs {
        let place = Outputs::update(&checkout.costs_file());
        written.extend(write_all([(place, costs.as_bytes())]).into_diagnostic()?);
    }
    Ok(written)
}
