// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads JSON files. A UTF-8 byte order mark at the start is skipped, as by the readers of TOML and
//! CSV.
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use miette::{IntoDiagnostic, miette};

/// The size in bytes of the largest file that is read.
const MOST_BYTES: u64 = 256 << 20;

const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads the file at `path`. `-` stands for standard input.
///
/// # Errors
/// Fails if the file cannot be read or is too large.
pub(crate) fn read(path: &Path) -> miette::Result<Vec<u8>> {
    let mut text = Vec::new();
    let from: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).into_diagnostic()?)
    };
    // One byte more than the limit is read, to distinguish a file that is too large from one that
    // just fits.
    from.take(MOST_BYTES + 1)
        .read_to_end(&mut text)
        .into_diagnostic()?;
    if text.len() as u64 > MOST_BYTES {
        return Err(miette!("it is larger than {} MiB", MOST_BYTES >> 20));
    }
    if text.starts_with(MARK) {
        text.drain(..MARK.len());
    }
    Ok(text)
}
