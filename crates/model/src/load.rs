// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads systems from files and texts.
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::diagnostics::{Diagnostics, LoadError, Problems};
use crate::file::sections::Root;
use crate::{System, file, resolve};

/// The most bytes of a system file. A thousand sources with as many tasks need less than half of
/// it.
pub const FILE_BYTES_MOST: u64 = 1 << 20;

/// Reads the system file at `path`.
///
/// # Errors
/// Returns the errors of [`read_text`] and of [`parse`].
pub fn load(path: &Path) -> Result<System, LoadError> {
    Ok(parse(&path.to_string_lossy(), &read_text(path)?)?)
}

/// Reads the text of the system file at `path`.
///
/// # Errors
/// Fails if the file cannot be read, is larger than [`FILE_BYTES_MOST`], or is not UTF-8. A file
/// that is too large is not read to its end.
pub fn read_text(path: &Path) -> Result<String, LoadError> {
    let unreadable = |cause| LoadError::Read {
        path: path.to_owned(),
        cause,
    };
    let file = File::open(path).map_err(unreadable)?;
    let bytes = read_at_most(file, FILE_BYTES_MOST).map_err(unreadable)?;
    let Some(bytes) = bytes else {
        return Err(LoadError::TooLarge {
            path: path.to_owned(),
            most: FILE_BYTES_MOST,
        });
    };
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let before = error.as_bytes().iter().take(offset);
        LoadError::NotText {
            path: path.to_owned(),
            offset,
            line: before.filter(|&&byte| byte == b'\n').count() + 1,
        }
    })
}

/// All bytes of a file; `None` if there are more than `most`. The size of a pipe or a device is not
/// known before it is read.
fn read_at_most(from: impl Read, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let read = from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(u64::try_from(read)
        .is_ok_and(|read| read <= most)
        .then_some(bytes))
}

/// Reads a system from the text of the file called `name`.
///
/// # Errors
/// Returns every error of the text, each with its place and what would be right.
pub fn parse(name: &str, text: &str) -> Result<System, Diagnostics> {
    read(name, text, |root, system, problems| {
        resolve::check_rates(root, system, &|_| false, problems);
    })
}

/// Reads a system whose limits will be chosen later, so that they may let through less than its
/// flows bring. [`Hardware::check_rates`](crate::Hardware::check_rates) checks the flows.
///
/// # Errors
/// Returns the errors of [`parse`], except those for limits that let through less than flows bring.
pub fn parse_to_be_limited(name: &str, text: &str) -> Result<System, Diagnostics> {
    read(name, text, |_, _, _| ())
}

fn read(
    name: &str,
    text: &str,
    check: impl FnOnce(&Root, &System, &mut Problems<'_>),
) -> Result<System, Diagnostics> {
    let mut problems = Problems::of(text);
    let stem = Path::new(name).file_stem().map_or_else(
        || name.to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    );
    let hash = Sha256::digest(text.as_bytes());
    let system = file::read(text, &mut problems).and_then(|root| {
        let system = resolve::system(&root, &stem, format!("{hash:x}"), &mut problems)?;
        check(&root, &system, &mut problems);
        Some(system)
    });
    match system {
        Some(system) if problems.is_empty() => Ok(system),
        _ => Err(problems.into_diagnostics(name)),
    }
}
