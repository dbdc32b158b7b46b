// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a recording cannot be used.
use std::io;
use std::path::PathBuf;

/// Why a recording cannot be used: the file, the line or the packet, what is wrong and what would
/// be right.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened or read.
    #[error("cannot read the trace {}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// The file changed between the check and the run.
    #[error("the trace {} had {had} arrivals when it was checked and {has} when it was played: leave it alone during a run", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// The number of arrivals when it was checked.
        had: u64,
        /// The number of arrivals when it was played.
        has: u64,
    },
    /// The path leads to a pipe or a folder.
    #[error("the trace {} is not a file: it is read more than once, so save it as one first", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file is compressed.
    #[error("the trace {} is compressed: unpack it first, for example with gunzip", path.display())]
    Compressed {
        /// The file.
        path: PathBuf,
    },
    /// The file does not begin as its name suggests.
    #[error("{} is neither pcap nor pcapng: the first bytes are {begin}; record with tcpdump -w or Wireshark, or give times as FILE.csv", path.display())]
    NotACapture {
        /// The file.
        path: PathBuf,
        /// The bytes, for the message.
        begin: String,
    },
    /// The file is not CSV.
    #[error("cannot read the trace {}: {cause}", path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// Where, and what is wrong.
        #[source]
        cause: csv::Error,
    },
    /// The header does not name the columns.
    #[error("{}, line 1: the header is `{found}`: it must be `time_us` or `cycle`, and `port` or `flow` may follow", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The header.
        found: String,
    },
    /// A field is not what its column says.
    #[error("{}, line {line}: `{found}` is not a {what}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The field.
        found: String,
        /// What it should be.
        what: &'static str,
    },
    /// A row goes back in time.
    #[error("{}, line {line}: {found} comes after {previous}: sort the rows by time", path.display())]
    Order {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The row.
        found: String,
        /// The row before.
        previous: String,
    },
    /// A capture is damaged, is cut off, or was not made on an Ethernet.
    #[error("{}, {place}: {what}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// Which packet, counted from 1 as other programs do.
        place: String,
        /// What is wrong and what would be right.
        what: String,
    },
    /// The recording is empty.
    #[error("{}: there are no {what}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// The arrivals that it should have.
        what: &'static str,
    },
    /// The file can be read, but not played as asked.
    #[error("{}: {what}", path.display())]
    Play {
        /// The file.
        path: PathBuf,
        /// What is wrong and what would be right.
        what: String,
    },
}
