// SPDX-License-Identifier: GPL-3.0-or-later
//! Table 3 of regehr2005: the cost of the limiter in silicon, in cells and in clock frequency. The
//! place-and-route runs take hours, so their results are committed, and this kind judges the
//! committed results. `weir reproduce --measure` resumes or repeats the runs.
mod bound;
mod data;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde::Deserialize;
use weir_report::{Colour, Stroke};

use self::bound::{Difference, fmax_difference};
use self::data::{Data, Pair};
use crate::experiment::bench::as_f64;
use crate::experiment::error::ExperimentError;
use crate::experiment::findings::{Detail, Measurements, Picture};
use crate::experiment::kind::{Ids, Kind, KindEntry};
use crate::experiment::place::Checkout;
use crate::experiment::report::Series;
use crate::experiment::setup::Setup;
use crate::experiment::strips::{Strip, StripPanel, Strips};

pub(super) const KIND: KindEntry = KindEntry::of::<Area>("area");

/// The table `[area]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Area {
    /// The folder of the measurements, relative to the repository's root.
    data: String,
    /// The program that makes the measurements, relative to the repository's root.
    flow: String,
    /// The names of the processors whose systems get a limiter.
    processors: Vec<String>,
    /// The FPGAs that the systems are placed on.
    devices: Vec<String>,
    /// The numbers of sources for which a limiter in the memory form is counted alone, without a
    /// system.
    memory: Vec<u32>,
    /// The largest number of strict sources for which a limiter is counted alone, without a system.
    sources: u32,
    /// The non-inferiority margin: the least acceptable change of Fmax, in percent, such as -1.
    margin: f64,
    /// The change of Fmax that the paper found in one run, in percent.
    paper: f64,
}

/// The claims about each processor on each device. Their ids begin with PROCESSOR.DEVICE.
const OF_SYSTEM: [&str; 4] = ["cells", "cells_percent", "fmax_bound", "pairs"];

fn system(processor: &str, device: &str) -> String {
    format!("{processor}.{device}")
}

fn further(device: &str) -> String {
    format!("source.{device}.further_luts")
}

fn memory(device: &str, sources: u32) -> String {
    format!("memory.{device}.luts_per_source_{sources}")
}

impl Area {
    fn systems(&self) -> impl Iterator<Item = (&str, &str)> {
        self.processors.iter().flat_map(|processor| {
            self.devices
                .iter()
                .map(move |device| (processor.as_str(), device.as_str()))
        })
    }
}

impl Kind for Area {
    fn known(&self, _: &Setup) -> Ids {
        let of_systems = self.systems().flat_map(|(processor, device)| {
            OF_SYSTEM.map(|suffix| format!("{}.{suffix}", system(processor, device)))
        });
        let of_devices = self.devices.iter().flat_map(|device| {
            let memories = self.memory.iter().map(|sources| memory(device, *sources));
            memories.chain([further(device)])
        });
        Ids {
            claims: of_systems.chain(of_devices).collect(),
            ..Ids::default()
        }
    }

    /// Starts the program that measures. The program reports its progress on stderr.
    fn measure_anew(&self, place: &Checkout) -> Option<Result<(), ExperimentError>> {
        Some(self.start_flow(place))
    }

    fn measure(&self, place: &Checkout, _: &Setup) -> Result<Measurements, ExperimentError> {
        let data = Data::read(&place.path(&self.data))?;
        let systems = self
            .systems()
            .map(|(processor, device)| PlacedSystem::new(&data, processor, device))
            .collect::<Result<Vec<PlacedSystem>, _>>()?;
        let mut values = BTreeMap::new();
        for system in &systems {
            let (cells, share) = (system.cells.1, system.share());
            let pairs = as_f64(system.pairs.len() as u64);
            for (suffix, value) in
                OF_SYSTEM
                    .into_iter()
                    .zip([cells, share, system.fmax.bound, pairs])
            {
                values.insert(format!("{}.{suffix}", system.name), value);
            }
        }
        for device in &self.devices {
            values.insert(
                further(device),
                most_of_a_further_source(&data, device, self.sources)?,
            );
            for &sources in &self.memory {
                let luts = f64::from(data.luts("memory", device, sources, sources)?);
                values.insert(memory(device, sources), luts / f64::from(sources));
            }
        }
        Ok(Measurements {
            values,
            series: systems.iter().flat_map(PlacedSystem::series).collect(),
            detail: Some(detail(&systems)),
            picture: Some(Picture::Strips(strips(self, &systems))),
            ..Measurements::default()
        })
    }
}

impl Area {
    fn start_flow(&self, place: &Checkout) -> Result<(), ExperimentError> {
        let failed = |what: String| ExperimentError::Flow {
            program: self.flow.clone(),
            what,
        };
        let status = Command::new(place.path(&self.flow))
            .current_dir(place.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .map_err(|error| failed(format!("does not start: {error}")))?;
        if status.success() {
            Ok(())
        } else {
            Err(failed(format!("ended with {status}")))
        }
    }
}

/// One processor placed on one device.
struct PlacedSystem {
    name: String,
    pairs: Vec<Pair>,
    fmax: Difference,
    /// The mean number of cells without a limiter, and the mean number that a limiter adds, over
    /// the pairs.
    cells: (f64, f64),
}

impl PlacedSystem {
    fn new(data: &Data, processor: &str, device: &str) -> Result<Self, ExperimentError> {
        let pairs = data.pairs(processor, device)?;
        let fmax = fmax_difference(&pairs).ok_or_else(|| {
            ExperimentError::Evaluation(format!(
                "{processor} on {device} has too few pairs for a bound"
            ))
        })?;
        let mean =
            |of: fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>() / as_f64(pairs.len() as u64);
        let without = mean(|pair| f64::from(pair.without.cells));
        Ok(Self {
            name: system(processor, device),
            cells: (without, mean(|pair| f64::from(pair.with.cells)) - without),
            fmax,
            pairs,
        })
    }

    fn share(&self) -> f64 {
        100.0 * self.cells.1 / self.cells.0
    }

    fn strip(&self, label: String, colour: Colour, value: fn(&Pair) -> f64) -> Strip {
        Strip {
            label,
            colour,
            values: self.pairs.iter().map(value).collect(),
            mark: None,
        }
    }

    fn series(&self) -> [Series; 3] {
        let series = |what: &str, y: &str, value: fn(&Pair) -> f64| Series {
            id: format!("{}.{what}", self.name),
            x: "seed".to_owned(),
            y: y.to_owned(),
            points: self
                .pairs
                .iter()
                .map(|pair| (f64::from(pair.seed), value(pair)))
                .collect(),
        };
        [
            series("fmax_without", "Fmax, MHz", |pair| pair.without.fmax_mhz),
            series("fmax_with", "Fmax, MHz", |pair| pair.with.fmax_mhz),
            series("fmax_difference", "change of Fmax, %", Pair::change_percent),
        ]
    }
}

/// The largest number of look-up tables that one more strict source adds to a limiter that already
/// has one.
fn most_of_a_further_source(
    data: &Data,
    device: &str,
    sources: u32,
) -> Result<f64, ExperimentError> {
    let added = (1..=sources)
        .map(|count| {
            let limited = data.luts("source", device, count, count)?;
            Ok(f64::from(limited) - f64::from(data.luts("source", device, count, 0)?))
        })
        .collect::<Result<Vec<f64>, ExperimentError>>()?;
    let most = added
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .reduce(f64::max);
    most.ok_or_else(|| {
        ExperimentError::Evaluation("`sources` of a table [area] is at least 2".to_owned())
    })
}

fn detail(systems: &[PlacedSystem]) -> Detail {
    let columns = [
        "system",
        "cells",
        "limiter",
        "limiter, %",
        "pairs",
        "Fmax, %",
        "deviation",
        "bound, %",
        "seeds, %",
    ];
    let rows = systems.iter().map(|system| {
        let fmax = &system.fmax;
        vec![
            system.name.clone(),
            format!("{:.0}", system.cells.0),
            format!("{:.1}", system.cells.1),
            format!("{:.2}", system.share()),
            system.pairs.len().to_string(),
            format!("{:+.2}", fmax.mean),
            format!("{:.2}", fmax.deviation),
            format!("{:+.2}", fmax.bound),
            format!("{:+.1} to {:+.1}", fmax.least, fmax.most),
        ]
    });
    Detail::new(&columns, rows)
}

fn strips(spec: &Area, systems: &[PlacedSystem]) -> Strips {
    let change = systems.iter().map(|system| Strip {
        mark: Some(system.fmax.bound),
        ..system.strip(system.name.clone(), Colour::Blue, Pair::change_percent)
    });
    let frequencies = systems.iter().flat_map(|system| {
        [
            system.strip(format!("{}, none", system.name), Colour::Grey, |pair| {
                pair.without.fmax_mhz
            }),
            system.strip("limiter".to_owned(), Colour::Vermilion, |pair| {
                pair.with.fmax_mhz
            }),
        ]
    });
    let line = |label: String, at, colour, stroke| (label, at, colour, stroke);
    Strips {
        title: "The limiter in silicon: every placement".to_owned(),
        panels: vec![
            StripPanel {
                title: "Fmax with a limiter beside without, same seed; triangle: lower 95 % bound of the mean".to_owned(),
                x: "change of Fmax, %".to_owned(),
                rows: change.collect(),
                lines: vec![
                    line(format!("not to be exceeded: {} %", spec.margin), spec.margin, Colour::Vermilion, Stroke::Dashed),
                    line(format!("the paper, from one run: {} %", spec.paper), spec.paper, Colour::Black, Stroke::Dotted),
                ],
            },
            StripPanel {
                title: "Fmax".to_owned(),
                x: "MHz".to_owned(),
                rows: frequencies.collect(),
                lines: Vec::new(),
            },
        ],
    }
}
