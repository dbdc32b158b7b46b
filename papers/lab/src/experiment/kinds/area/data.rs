// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads the committed measurements `runs.csv` and `counts.csv`. The README beside them documents
//! their columns.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::experiment::error::ExperimentError;

/// A row of runs.csv: one place-and-route run.
#[derive(Debug, Deserialize)]
struct PlacementRun {
    cpu: String,
    device: String,
    sources: u32,
    seed: u32,
    cells: u32,
    fmax_mhz: f64,
}

/// A row of counts.csv: the resources of a design, which do not depend on a seed.
#[derive(Debug, Deserialize)]
struct Count {
    design: String,
    device: String,
    pins: u32,
    sources: u32,
    clock_mhz: Option<f64>,
    luts: u32,
}

/// Two runs with the same seed, without a limiter and with one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    pub seed: u32,
    pub without: Placement,
    pub with: Placement,
}

/// The result of one place-and-route run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Placement {
    pub cells: u32,
    pub fmax_mhz: f64,
}

/// All committed measurements.
#[derive(Debug)]
pub struct Data {
    runs: Vec<PlacementRun>,
    counts: Vec<Count>,
    folder: PathBuf,
}

impl Data {
    /// Reads runs.csv and counts.csv of a folder.
    pub fn read(folder: &Path) -> Result<Self, ExperimentError> {
        let runs_path = folder.join("runs.csv");
        let runs: Vec<PlacementRun> = read(&runs_path)?;
        for run in &runs {
            if !(run.fmax_mhz.is_finite() && run.fmax_mhz > 0.0) {
                let what = format!(
                    "{} MHz of {} on {} with seed {} is no frequency",
                    run.fmax_mhz, run.cpu, run.device, run.seed
                );
                return Err(wrong(&runs_path, what));
            }
        }
        Ok(Self {
            runs,
            counts: read(&folder.join("counts.csv"))?,
            folder: folder.to_owned(),
        })
    }

    /// The pairs of a processor on a device, ordered by seed. A seed gives a pair if there is a run
    /// without a limiter and a run with a limiter for one source.
    pub fn pairs(&self, cpu: &str, device: &str) -> Result<Vec<Pair>, ExperimentError> {
        let path = self.folder.join("runs.csv");
        let placed = |sources: u32| {
            let mut by_seed = BTreeMap::new();
            let of_both = self
                .runs
                .iter()
                .filter(|run| run.cpu == cpu && run.device == device);
            for run in of_both.filter(|run| run.sources == sources) {
                let placed = Placement {
                    cells: run.cells,
                    fmax_mhz: run.fmax_mhz,
                };
                if by_seed.insert(run.seed, placed).is_some() {
                    let what = format!(
                        "{cpu} on {device} has two runs of seed {} with {sources} sources",
                        run.seed
                    );
                    return Err(wrong(&path, what));
                }
            }
            Ok(by_seed)
        };
        let (without, with) = (placed(0)?, placed(1)?);
        let pairs: Vec<Pair> = without
            .into_iter()
            .filter_map(|(seed, without)| {
                Some(Pair {
                    seed,
                    without,
                    with: *with.get(&seed)?,
                })
            })
            .collect();
        if pairs.len() < 2 {
            let what = format!(
                "{cpu} on {device} has {} seeds with and without a limiter: a bound needs 2",
                pairs.len()
            );
            return Err(wrong(&path, what));
        }
        Ok(pairs)
    }

    /// The number of look-up tables of a design. If the design was placed at several clocks, the
    /// clock of the systems counts.
    pub fn luts(
        &self,
        design: &str,
        device: &str,
        pins: u32,
        sources: u32,
    ) -> Result<u32, ExperimentError> {
        let system = self.clock_of_systems(device);
        self.counts
            .iter()
            .filter(|count| count.design == design && count.device == device)
            .filter(|count| count.clock_mhz.is_none() || system.is_none() || count.clock_mhz == system)
            .find(|count| count.pins == pins && count.sources == sources)
            .map(|count| count.luts)
            .ok_or_else(|| {
                let what = format!("there is no line of {design} on {device} with {pins} pins and {sources} sources");
                wrong(&self.folder.join("counts.csv"), what)
            })
    }

    fn clock_of_systems(&self, device: &str) -> Option<f64> {
        let limited = self
            .counts
            .iter()
            .filter(|count| count.device == device && count.sources == 1);
        limited
            .filter(|count| count.design != "source")
            .find_map(|count| count.clock_mhz)
    }
}

fn wrong(path: &Path, what: String) -> ExperimentError {
    ExperimentError::Data {
        path: path.to_owned(),
        what,
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, ExperimentError> {
    let mut reader =
        csv::Reader::from_path(path).map_err(|error| wrong(path, error.to_string()))?;
    reader
        .deserialize()
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(path, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: &str = "\
design,device,pins,sources,clock_mhz,phase_bits,rate_bits,luts,carries,flip_flops,memories,cells
picorv32,ice40,1,1,12,15,10,900,1,1,1,1000
source,ice40,1,1,4,13,9,30,1,1,,
source,ice40,1,1,12,15,10,35,1,1,,
source,ice40,1,0,,,,3,1,1,,
";
    const RUNS: &str = "\
cpu,device,sources,seed,cells,flip_flops,fmax_mhz,netlist
picorv32,ice40,0,1,1000,,50.0,a
picorv32,ice40,0,2,1000,,51.0,a
picorv32,ice40,0,3,1000,,52.0,a
picorv32,ice40,1,2,1030,,50.5,b
picorv32,ice40,1,1,1030,,50.0,b
";

    fn data(runs: &str) -> Result<Data, ExperimentError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("runs.csv"), runs).unwrap();
        std::fs::write(folder.path().join("counts.csv"), COUNTS).unwrap();
        Data::read(folder.path())
    }

    #[test]
    fn a_pair_is_one_seed_with_and_without_a_limiter() {
        let pairs = data(RUNS).unwrap().pairs("picorv32", "ice40").unwrap();
        let seeds: Vec<(u32, f64, f64)> = pairs
            .iter()
            .map(|pair| (pair.seed, pair.without.fmax_mhz, pair.with.fmax_mhz))
            .collect();
        assert_eq!(
            seeds,
            [(1, 50.0, 50.0), (2, 51.0, 50.5)],
            "seed 3 was not placed with a limiter"
        );
    }

    #[test]
    fn the_source_of_the_systems_clock_is_counted() {
        let data = data(RUNS).unwrap();
        assert_eq!(data.luts("source", "ice40", 1, 1).unwrap(), 35);
        assert_eq!(data.luts("source", "ice40", 1, 0).unwrap(), 3);
        assert!(data.luts("source", "ecp5", 1, 1).is_err());
    }

    #[test]
    fn what_cannot_be_judged_is_refused() {
        let twice = format!("{RUNS}picorv32,ice40,1,1,1030,,50.0,b\n");
        let refused = data(&twice)
            .unwrap()
            .pairs("picorv32", "ice40")
            .unwrap_err();
        assert!(
            refused.to_string().contains("two runs of seed 1"),
            "{refused}"
        );
        let refused = data(RUNS).unwrap().pairs("vexriscv", "ice40").unwrap_err();
        assert!(refused.to_string().contains("a bound needs 2"), "{refused}");
        for (bad, says) in [
            ("0", "no frequency"),
            ("NaN", "no frequency"),
            ("fast", "invalid float"),
        ] {
            let refused = data(&RUNS.replace("51.0", bad)).unwrap_err();
            assert!(refused.to_string().contains(says), "{refused}");
        }
    }
}
