// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings. A file is read twice: first completely, so that errors are reported before the run,
//! and then packet by packet during the run. Only one record and the names of the flows are in
//! memory.
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod csv;
mod error;
mod pcap;

use self::csv::CsvRows;
use self::pcap::Packets;
use crate::arrivals::{Arrival, LATEST};

pub use self::error::TraceError;

/// A recording that was read once and is valid: `trace:FILE[:speed=N][:repeat]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    path: PathBuf,
    speed: f64,
    repeats: bool,
    count: u64,
    /// The recorded times of the first and the last arrival, in cycles at the recorded speed.
    first: u64,
    last: u64,
    flows: Arc<[String]>,
}

impl Recording {
    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a complete recording in one of the formats CSV, pcap and pcapng. Times are scaled by
    /// `1 / speed`. With `repeats` the recording starts again after its last arrival, with the mean
    /// time between two arrivals in between.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is cut off, damaged, empty or out of order, or was not
    /// recorded on Ethernet. Fails if `speed` is not greater than zero.
    pub fn read(path: &Path, speed: f64, repeats: bool, clock_hz: u64) -> Result<Self, TraceError> {
        let play = |what: &str| {
            Err(TraceError::Play {
                path: path.to_owned(),
                what: what.to_owned(),
            })
        };
        if !(speed > 0.0 && speed.is_finite()) {
            return play("the speed must be a number more than zero, for example speed=2");
        }
        let mut records = Records::open(path, clock_hz)?;
        let mut recording = Self {
            path: path.to_owned(),
            speed,
            repeats,
            count: 0,
            first: 0,
            last: 0,
            flows: Arc::new([]),
        };
        while let Some(arrival) = records.next()? {
            if recording.count == 0 {
                recording.first = arrival.at;
            }
            recording.last = arrival.at;
            recording.count += 1;
        }
        if recording.count == 0 {
            return Err(TraceError::Empty {
                path: path.to_owned(),
                what: records.what(),
            });
        }
        if recording.played(recording.last) >= LATEST / 2 {
            return play("at this speed it would last more than 2^62 cycles: play it faster");
        }
        if repeats && recording.period() == 0 {
            return play(
                "all arrivals come in one cycle, which cannot be repeated: leave `:repeat` out",
            );
        }
        recording.flows = records.flows().into();
        Ok(recording)
    }

    /// Returns the names in the column `flow`. [`Packet::flow`](crate::Packet::flow) is an index
    /// into them.
    #[must_use]
    pub fn flows(&self) -> &[String] {
        &self.flows
    }

    /// Returns the number of arrivals in the file.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the cycles from the first arrival to the last.
    pub(crate) fn length(&self) -> u64 {
        self.played(self.last) - self.played(self.first)
    }

    /// Returns the cycles from an arrival to the same arrival of the next repetition: the length of
    /// the recording plus the mean time between two arrivals.
    fn period(&self) -> u64 {
        let length = self.length();
        length + length.div_ceil((self.count - 1).max(1))
    }

    /// Converts a recorded time to a cycle of the playback.
    #[expect(
        clippy::float_cmp,
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the recorded speed is exact; others to 16 digits; not negative, saturates and is checked"
    )]
    fn played(&self, at: u64) -> u64 {
        if self.speed == 1.0 {
            at
        } else {
            (at as f64 / self.speed).round() as u64
        }
    }

    /// Opens the file for playback.
    pub(crate) fn play(&self, clock_hz: u64) -> Result<Playback, TraceError> {
        Ok(Playback {
            records: Some(Records::open(&self.path, clock_hz)?),
            recording: self.clone(),
            clock_hz,
            begin: 0,
            played: 0,
            error: None,
        })
    }
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.speed != 1.0 {
            write!(f, ":speed={}", self.speed)?;
        }
        f.write_str(if self.repeats { ":repeat" } else { "" })
    }
}

/// The playback of a recording.
pub(crate) struct Playback {
    recording: Recording,
    clock_hz: u64,
    /// The open file. `None` after the end.
    records: Option<Records>,
    /// The cycle at which the current repetition begins.
    begin: u64,
    /// The number of arrivals so far in the current repetition.
    played: u64,
    error: Option<TraceError>,
}

impl Playback {
    pub fn next(&mut self) -> Option<Arrival> {
        match self.read() {
            Ok(arrival) => arrival,
            Err(error) => {
                self.records = None;
                self.error = Some(error);
                None
            }
        }
    }

    pub fn error(&self) -> Option<&TraceError> {
        self.error.as_ref()
    }

    fn read(&mut self) -> Result<Option<Arrival>, TraceError> {
        let Some(records) = &mut self.records else {
            return Ok(None);
        };
        let mut next = records.next()?;
        if next.is_none() && self.played != self.recording.count {
            return Err(TraceError::Changed {
                path: self.recording.path.clone(),
                had: self.recording.count,
                has: self.played,
            });
        }
        if next.is_none() && self.recording.repeats {
            *records = Records::open(&self.recording.path, self.clock_hz)?;
            self.begin = self.begin.saturating_add(self.recording.period());
            self.played = 0;
            next = records.next()?;
        }
        match next {
            Some(_) => self.played += 1,
            None => self.records = None,
        }
        Ok(next.map(|arrival| Arrival {
            at: self.begin.saturating_add(self.recording.played(arrival.at)),
            ..arrival
        }))
    }
}

/// A reader of the records of a file, by format.
enum Records {
    Csv(CsvRows),
    Capture(Packets),
}

impl Records {
    fn open(path: &Path, clock_hz: u64) -> Result<Self, TraceError> {
        let io = |cause| TraceError::Io {
            path: path.to_owned(),
            cause,
        };
        // The file type is checked before the file is opened, because opening a pipe blocks until
        // there is a writer.
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(TraceError::NotAFile {
                path: path.to_owned(),
            });
        }
        let mut file = File::open(path).map_err(io)?;
        let mut begin = Vec::new();
        (&file).take(4).read_to_end(&mut begin).map_err(io)?;
        file.rewind().map_err(io)?;
        if pcap::is_capture(&begin) {
            return Packets::new(path, file, &begin, clock_hz).map(Self::Capture);
        }
        if begin.starts_with(&[0x1f, 0x8b]) || begin == [0x28, 0xb5, 0x2f, 0xfd] {
            return Err(TraceError::Compressed {
                path: path.to_owned(),
            });
        }
        let is_named_capture = path.extension().is_some_and(|name| {
            ["pcap", "pcapng", "cap"]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
        });
        if is_named_capture {
            let begin: Vec<String> = begin.iter().map(|byte| format!("{byte:02x}")).collect();
            return Err(TraceError::NotACapture {
                path: path.to_owned(),
                begin: if begin.is_empty() {
                    "missing".to_owned()
                } else {
                    begin.join(" ")
                },
            });
        }
        CsvRows::new(path, file, clock_hz).map(Self::Csv)
    }

    fn next(&mut self) -> Result<Option<Arrival>, TraceError> {
        match self {
            Self::Csv(rows) => rows.next(),
            Self::Capture(packets) => packets.next(),
        }
    }

    fn what(&self) -> &'static str {
        match self {
            Self::Csv(_) => "edges below the header",
            Self::Capture(_) => "packets in it",
        }
    }

    fn flows(&self) -> Vec<String> {
        match self {
            Self::Csv(rows) => rows.flows(),
            Self::Capture(_) => Vec::new(),
        }
    }
}
