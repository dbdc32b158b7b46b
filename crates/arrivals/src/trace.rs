// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded edges: a CSV file with one column, `time_us` or `cycle`, in ascending order.
use std::path::{Path, PathBuf};

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened or read.
    #[error("cannot read the trace {}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: csv::Error,
    },
    /// The header names neither unit.
    #[error("{}, line 1: the header is `{found}`: it must be `time_us` or `cycle`", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The header.
        found: String,
    },
    /// A row is no time.
    #[error("{}, line {line}: `{found}` is not a {what}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// The row.
        found: String,
        /// What it should be.
        what: &'static str,
    },
    /// A row goes back in time.
    #[error("{}, line {line}: {found} comes after {previous}: sort the rows by time", path.display())]
    Order {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// The row.
        found: String,
        /// The row before.
        previous: String,
    },
    /// There is no row.
    #[error("{}: there are no edges below the header", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Reads a recording: the edges in cycles of a clock of `clock_hz`, ascending.
///
/// # Errors
/// An unreadable file, another header, a row that is no time or goes back in time, no rows; with the line's number.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times are checked to be at least zero and below 2^62 cycles"
)]
pub fn read_trace(path: &Path, clock_hz: u64) -> Result<Vec<u64>, TraceError> {
    let io = |cause| TraceError::Io {
        path: path.to_owned(),
        cause,
    };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_path(path)
        .map_err(io)?;
    let header = reader
        .headers()
        .map_err(io)?
        .iter()
        .collect::<Vec<_>>()
        .join(",");
    let in_cycles = match header.as_str() {
        "cycle" => true,
        "time_us" => false,
        _ => {
            return Err(TraceError::Header {
                path: path.to_owned(),
                found: header,
            });
        }
    };
    let mut times: Vec<u64> = Vec::new();
    let mut previous = String::new();
    for record in reader.records() {
        let record = record.map_err(io)?;
        let line = record.position().map_or(0, csv::Position::line);
        let found = record.get(0).unwrap_or_default().to_owned();
        let time = if in_cycles {
            found.parse::<u64>().ok()
        } else {
            found
                .parse::<f64>()
                .ok()
                .filter(|us| *us >= 0.0)
                .map(|us| (us * clock_hz as f64 / 1e6).round() as u64)
        };
        let Some(time) = time.filter(|time| *time < 1 << 62) else {
            let what = if in_cycles {
                "cycle: a whole number from 0"
            } else {
                "time in microseconds: a number from 0"
            };
            return Err(TraceError::Row {
                path: path.to_owned(),
                line,
                found,
                what,
            });
        };
        if times.last().is_some_and(|last| time < *last) {
            return Err(TraceError::Order {
                path: path.to_owned(),
                line,
                found,
                previous,
            });
        }
        times.push(time);
        previous = found;
    }
    if times.is_empty() {
        return Err(TraceError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(content: &str) -> Result<Vec<u64>, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        read_trace(file.path(), 4_000_000).map_err(|error| error.to_string())
    }

    #[test]
    fn both_units_are_read() {
        assert_eq!(read("time_us\n0\n1.5\n10\n").unwrap(), [0, 6, 40]);
        assert_eq!(read("# a recording\ncycle\n7\n7\n9\n").unwrap(), [7, 7, 9]);
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_line() {
        for (content, says) in [
            ("seconds\n1\n", "line 1: the header is `seconds`"),
            ("time_us\n1\nx\n", "line 3: `x` is not a time"),
            ("time_us\n-1\n", "line 2: `-1` is not a time"),
            ("time_us\nNaN\n", "line 2"),
            ("time_us\n1e300\n", "line 2"),
            ("cycle\n1.5\n", "line 2: `1.5` is not a cycle"),
            ("cycle\n5\n4\n", "line 3: 4 comes after 5"),
            ("cycle\n1,2\n", "line: 2"),
            ("cycle\n", "no edges"),
            ("", "the header is ``"),
        ] {
            let message = read(content).unwrap_err();
            assert!(message.contains(says), "{content:?}: {message}");
        }
    }
}
