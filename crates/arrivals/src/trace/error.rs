// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a recording cannot be used.
use std::io;
use std::path::PathBuf;

/// Why a recording cannot be used. The message states the file, the line or the packet, what is
/// wrong, and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened or read.
    #[error("cannot read the trace {}: {cause}", path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The file changed between the check and the run.
    #[error("the trace {} had {had} arrivals when it was checked and {has} when it was played: leave it alone during a run", path.display())]
    Changed {
        /// The path of the file.
        path: PathBuf,
        /// The number of arrivals during the check.
        had: u64,
        /// The number of arrivals during the run.
        has: u64,
    },
    /// The path is that of a pipe or a folder.
    #[error("the trace {} is not a file: it is read more than once, so save it as one first", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file is compressed.
    #[error("the trace {} is compressed: unpack it first, for example with gunzip", path.display())]
    Compressed {
        /// The path of the file.
        path: PathBuf,
    },
    /// The first bytes of the file are not those of the format that its name suggests.
    #[error("{} is neither pcap nor pcapng: the first bytes are {begin}; record with tcpdump -w or Wireshark, or give times as FILE.csv", path.display())]
    NotACapture {
        /// The path of the file.
        path: PathBuf,
        /// The first bytes, formatted for the message.
        begin: String,
    },
    /// The file is not valid CSV.
    #[error("cannot read the trace {}: {cause}", path.display())]
    Csv {
        /// The path of the file.
        path: PathBuf,
        /// The position and the error.
        #[source]
        cause: csv::Error,
    },
    /// The header does not name the columns.
    #[error("{}, line 1: the header is `{found}`: it must be `time_us` or `cycle`, and `port` or `flow` may follow", path.display())]
    Header {
        /// The path of the file.
        path: PathBuf,
        /// The header as found in the file.
        found: String,
    },
    /// A field does not have the type of its column.
    #[error("{}, line {line}: `{found}` is not a {what}", path.display())]
    Row {
        /// The path of the file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The content of the field.
        found: String,
        /// The expected type.
        what: &'static str,
    },
    /// The time of a row is before that of the previous row.
    #[error("{}, line {line}: {found} comes after {previous}: sort the rows by time", path.display())]
    Order {
        /// The path of the file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The time of the row.
        found: String,
        /// The time of the previous row.
        previous: String,
    },
    /// A capture is damaged or cut off, or was not recorded on Ethernet.
    #[error("{}, {place}: {what}", path.display())]
    Capture {
        /// The path of the file.
        path: PathBuf,
        /// The packet, counted from 1 as other programs count.
        place: String,
        /// What is wrong and what would be right.
        what: String,
    },
    /// The recording contains no arrivals.
    #[error("{}: there are no {what}", path.display())]
    Empty {
        /// The path of the file.
        path: PathBuf,
        /// The kind of arrivals that the recording should contain.
        what: &'static str,
    },
    /// The file can be read, but it cannot be played with these options.
    #[error("{}: {what}", path.display())]
    Play {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong and what would be right.
        what: String,
    },
}
