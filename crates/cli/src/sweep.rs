// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir sweep`: simulates a system for all combinations of parameters, on all cores, and writes a
//! table.
mod edit;
mod grid;
mod partial;
mod row;
mod values;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::ValueHint;
use miette::{IntoDiagnostic, WrapErr};
use rayon::prelude::*;
use weir_report::terminal::{Outcome, print, wrapped};
use weir_report::{Outputs, count, plural};

use self::grid::{Grid, Vary};
use self::partial::{IDENTITY, Partial};
use crate::output::Patience;
use crate::simulate::how::How;

/// Simulate a system over every combination of parameters, into a table
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Args {
    /// The description of the system
    #[arg(value_name = "SYSTEM.toml", value_hint = ValueHint::FilePath)]
    system: PathBuf,

    /// A parameter and its values: source.eth.limit.rate=1kHz,2kHz or flood.eth=1kHz..20kHz:1kHz.
    /// May be given several times; the last one changes fastest
    #[arg(long, value_name = "KEY=VALUES")]
    vary: Vec<Vary>,

    /// Seeds, for each combination: 1..5
    #[arg(long, value_name = "VALUES", value_parser = seeds)]
    seeds: Option<Vary>,

    /// Where to write the table, in CSV
    #[arg(long, value_name = "FILE.csv", value_hint = ValueHint::FilePath)]
    out: PathBuf,

    /// Replace files that Weir did not write
    #[arg(long)]
    force: bool,

    /// Only this part of the rows. The parts' files one after the other are the whole file
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    shard: Shard,

    /// How many combinations are simulated at the same time; without it, as many as there are cores
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    #[command(flatten)]
    how: How,
}

const AFTER: &str = "\
A parameter is a key of the system file (cpu.clock, source.NAME.limit.rate, receiver.NAME.wcet), an \
option of weir simulate (flood.TARGET, seed, duration, costs, costs-of.KIND, defer, ties, tick, \
compensation, closed-loop.RECEIVER), or run, which is `with` or `without` what Weir does. Values are \
separated by commas; A..B:STEP is a range, also in braces within a value.

A sweep that was ended, also by kill -9, goes on where it stopped when it is started again.

Examples:
  weir sweep system.toml --vary flood.eth=1kHz..20kHz:1kHz --vary run=with,without --out eth.csv
  weir sweep system.toml --vary source.eth.limit.rate=1kHz..8kHz:500Hz --flood eth --seeds 1..5 \\
      --costs uniform:50% --out limits.csv
  weir sweep system.toml --vary flood.eth=poisson:{1kHz..20kHz:10Hz} --shard 3/64 --out part3.csv

The exit code is 0 if the table is written, and 2 if it cannot be. docs/sweep.md names its columns.";

fn seeds(text: &str) -> Result<Vary, String> {
    Ok(Vary {
        key: "seed".to_owned(),
        values: values::Values::read(text)?,
    })
}

/// Part `index` of `of` parts, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shard {
    index: u32,
    of: u32,
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let parts = text.split_once('/').and_then(|(index, of)| {
            let (index, of) = (index.trim().parse().ok()?, of.trim().parse().ok()?);
            (1 <= index && index <= of).then_some(Self { index, of })
        });
        parts.ok_or("write which part of how many, from 1: 3/64")
    }
}

impl Shard {
    /// Returns the range of the part's rows, of `rows` in all. The sizes of the parts differ by at
    /// most one row.
    fn rows(self, rows: u64) -> (u64, u64) {
        let begin = |part: u32| {
            let part = u128::from(rows) * u128::from(part) / u128::from(self.of);
            u64::try_from(part).unwrap_or(rows)
        };
        (begin(self.index - 1), begin(self.index))
    }
}

/// The number of rows that a thread simulates before they are written. It is large enough that
/// threads seldom wait for each other.
const CHUNK: u64 = 8;

/// Executes the command.
///
/// # Errors
/// Fails if a file cannot be read or does not contain a valid system, if a parameter or an option
/// is not valid, or if the table cannot be written.
pub(crate) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let system = weir_model::load(&arguments.system)?;
    let name = arguments.system.to_string_lossy();
    let text = std::fs::read_to_string(&arguments.system)
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot read {name}"))?;
    let vary = arguments.vary.iter().chain(&arguments.seeds);
    let vary = vary.cloned().collect();
    let grid = Grid::new(&name, &text, &arguments.how, vary)?;
    let (begin, end) = arguments.shard.rows(grid.rows());
    let columns = row::columns(&grid, &system);
    let header = match arguments.shard.index {
        1 => row::line(&columns)?,
        _ => Vec::new(),
    };
    let identity = identity(&grid, arguments.shard);
    let mut outputs = Outputs::new(arguments.force);
    outputs.reads(&arguments.system);
    let files = grid.files(&system, &(begin..end))?;
    files.iter().for_each(|file| outputs.reads(file));
    // Only the first part has a header with the column names.
    let mark = (!header.is_empty()).then(row::mark);
    let (mut partial, lines) =
        Partial::open(&mut outputs, &arguments.out, mark.as_deref(), &identity)?;
    if lines == 0 {
        partial.add(&header)?;
    }
    let done = lines.saturating_sub(u64::from(!header.is_empty()));
    let first = begin.saturating_add(done).min(end);

    let threads = arguments.jobs.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.into_diagnostic()?;
    let chunk = CHUNK * pool.current_num_threads() as u64;
    let patience = Patience::with_lines(end - first, true);
    patience.begins("combinations");
    let mut failed = 0;
    let mut next = first;
    while next < end {
        let until = next.saturating_add(chunk).min(end);
        let rows: miette::Result<Vec<row::Row>> = pool.install(|| {
            let rows = (next..until).into_par_iter().map(|index| {
                let row = row::row(&grid, index, columns.len());
                patience.advances(1);
                row
            });
            rows.collect()
        });
        let rows = rows?;
        failed += rows.iter().filter(|row| row.failed).count();
        let lines: Vec<u8> = rows.into_iter().flat_map(|row| row.line).collect();
        partial.add(&lines)?;
        next = until;
    }
    partial.finish()?;
    drop(patience);
    print(&wrapped(
        &summary(&arguments.out, end - begin, first - begin, failed),
        "",
        "  ",
    ))?;
    Ok(Outcome::Good)
}

/// Returns a text that identifies this part of this sweep.
fn identity(grid: &Grid, shard: Shard) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "{IDENTITY}{version}, part {} of {}\n{}",
        shard.index,
        shard.of,
        grid.identity()
    )
}

fn summary(out: &Path, rows: u64, resumed: u64, failed: usize) -> String {
    let are = if rows == 1 { "is" } else { "are" };
    let mut text = format!("{} {are} in {}", plural(rows, "row"), out.display());
    if resumed > 0 {
        let were = if resumed == 1 { "was" } else { "were" };
        text += &format!("; {} {were} there already", count(resumed));
    }
    if failed > 0 {
        let are = if failed == 1 {
            "is no system"
        } else {
            "are no systems"
        };
        text += &format!(
            "; {} of those that were run now {are}: the column `error` says why",
            count(failed as u64)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Shard;

    #[test]
    fn the_parts_are_the_whole() {
        for rows in [0, 1, 5, 64, 1000, u64::MAX] {
            for of in [1, 2, 3, 7, 64] {
                let mut next = 0;
                for index in 1..=of {
                    let (begin, end) = Shard { index, of }.rows(rows);
                    assert_eq!(begin, next);
                    assert!(end - begin <= rows.div_ceil(of.into()));
                    next = end;
                }
                assert_eq!(next, rows);
            }
        }
    }

    #[test]
    fn a_part_is_one_of_so_many() {
        assert_eq!("3/64".parse(), Ok(Shard { index: 3, of: 64 }));
        for bad in ["", "3", "0/4", "5/4", "a/4", "1/0"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}
