// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded times in CSV. The first column is `time_us` or `cycle`, in ascending order. Further
//! columns may state the port or the flow of each packet.
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use csv::{Reader, StringRecord};

use super::error::TraceError;
use crate::arrivals::{Arrival, Packet, What};

/// The most flow names. All names are kept in memory, so their number is limited.
const FLOWS_MOST: u16 = u16::MAX;
/// Times must be below this limit, so that the sum of two times does not overflow.
const CYCLES_MOST: u64 = 1 << 62;

/// The meaning of a column.
#[derive(Clone, Copy, PartialEq)]
enum Column {
    Microseconds,
    Cycle,
    Port,
    Flow,
}

impl Column {
    fn named(name: &str) -> Option<Self> {
        match name {
            "time_us" => Some(Self::Microseconds),
            "cycle" => Some(Self::Cycle),
            "port" => Some(Self::Port),
            "flow" => Some(Self::Flow),
            _ => None,
        }
    }

    fn is_time(self) -> bool {
        matches!(self, Self::Microseconds | Self::Cycle)
    }
}

/// Reads a CSV file row by row.
pub(super) struct CsvRows {
    path: PathBuf,
    clock_hz: u64,
    columns: Vec<Column>,
    reader: Reader<File>,
    row: StringRecord,
    /// The time of the previous row, in cycles and as text.
    previous: (u64, String),
    /// The index of each flow name, in the order in which the names appear.
    flows: HashMap<String, u16>,
}

impl CsvRows {
    /// Opens the file and reads its header.
    ///
    /// # Errors
    /// Fails if the header does not name the columns, or cannot be read.
    pub fn new(path: &Path, file: File, clock_hz: u64) -> Result<Self, TraceError> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_reader(file);
        let header = reader.headers().map_err(|cause| TraceError::Csv {
            path: path.to_owned(),
            cause,
        })?;
        let columns: Option<Vec<Column>> = header.iter().map(Column::named).collect();
        let Some(columns) = columns.filter(|columns| are_columns(columns)) else {
            return Err(TraceError::Header {
                path: path.to_owned(),
                found: header.iter().collect::<Vec<_>>().join(","),
            });
        };
        Ok(Self {
            path: path.to_owned(),
            clock_hz,
            columns,
            reader,
            row: StringRecord::new(),
            previous: (0, String::new()),
            flows: HashMap::new(),
        })
    }

    /// Returns the flow names read so far, by index.
    pub fn flows(&self) -> Vec<String> {
        let mut flows: Vec<(&String, u16)> =
            self.flows.iter().map(|(name, n)| (name, *n)).collect();
        flows.sort_by_key(|(_, number)| *number);
        flows.into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// Reads the next row. `None` at the end of the file.
    ///
    /// # Errors
    /// Fails if a field is not what the header says, or if the time is before that of the previous
    /// row.
    pub fn next(&mut self) -> Result<Option<Arrival>, TraceError> {
        let more = self
            .reader
            .read_record(&mut self.row)
            .map_err(|cause| TraceError::Csv {
                path: self.path.clone(),
                cause,
            })?;
        if !more {
            return Ok(None);
        }
        let mut at = 0;
        let mut packet = Packet::default();
        for (index, &column) in self.columns.iter().enumerate() {
            let field = self.row.get(index).unwrap_or_default();
            match column {
                Column::Microseconds | Column::Cycle => at = self.time(column, field)?,
                Column::Port if !field.is_empty() => {
                    let port = field.parse();
                    packet.port = Some(port.map_err(|_| {
                        self.wrong(field, "port: a whole number from 0 to 65535, or nothing")
                    })?);
                }
                Column::Flow if !field.is_empty() => {
                    let number = number(&mut self.flows, field);
                    packet.flow =
                        Some(number.ok_or_else(|| {
                            self.wrong(field, "flow: a file can name 65535 of them")
                        })?);
                }
                Column::Port | Column::Flow => {}
            }
        }
        let written = self.row.get(0).unwrap_or_default();
        if at < self.previous.0 {
            return Err(TraceError::Order {
                path: self.path.clone(),
                line: self.line(),
                found: written.to_owned(),
                previous: self.previous.1.clone(),
            });
        }
        self.previous.0 = at;
        self.previous.1.clear();
        self.previous.1.push_str(written);
        let what = if self.columns.len() > 1 {
            What::Packet(packet)
        } else {
            What::Request
        };
        Ok(Some(Arrival { at, what }))
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least zero, and refused where it is not below 2^62"
    )]
    fn time(&self, column: Column, field: &str) -> Result<u64, TraceError> {
        let (time, what) = if column == Column::Cycle {
            (field.parse().ok(), "cycle: a whole number from 0")
        } else {
            let microseconds = field.parse::<f64>().ok().filter(|us| *us >= 0.0);
            (
                microseconds.map(|us| (us * self.clock_hz as f64 / 1e6).round() as u64),
                "time in microseconds: a number from 0",
            )
        };
        time.filter(|time| *time < CYCLES_MOST)
            .ok_or_else(|| self.wrong(field, what))
    }

    fn wrong(&self, found: &str, what: &'static str) -> TraceError {
        TraceError::Row {
            path: self.path.clone(),
            line: self.line(),
            found: found.to_owned(),
            what,
        }
    }

    fn line(&self) -> u64 {
        self.row.position().map_or(0, csv::Position::line)
    }
}

/// Returns the index of the flow name, which is added if it is new. `None` if there are too many
/// names.
fn number(flows: &mut HashMap<String, u16>, name: &str) -> Option<u16> {
    if let Some(number) = flows.get(name) {
        return Some(*number);
    }
    let number = u16::try_from(flows.len())
        .ok()
        .filter(|number| *number < FLOWS_MOST)?;
    flows.insert(name.to_owned(), number);
    Some(number)
}

/// Returns whether the time is the first column and no column is repeated.
fn are_columns(columns: &[Column]) -> bool {
    match columns {
        [time] => time.is_time(),
        [time, other] => time.is_time() && !other.is_time(),
        [time, other, another] => {
            time.is_time() && !other.is_time() && !another.is_time() && other != another
        }
        _ => false,
    }
}
