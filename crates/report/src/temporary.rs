// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must not stay behind when the program is interrupted.
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What exists now. The lock is also held while results are put in place, so that an interruption comes before or
/// after, not between.
static EXISTING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The exit code of a program that Ctrl-C ended, as shells know it.
const INTERRUPTED: i32 = 130;

pub(crate) fn existing() -> MutexGuard<'static, Vec<PathBuf>> {
    // A list of paths is as good after a panic elsewhere as before.
    EXISTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file or folder that is removed when this value is dropped, and also when the program is interrupted, if
/// [`clean_up_when_interrupted`] was called.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// Makes an empty folder in the system's place for temporary files.
    ///
    /// # Errors
    /// What the system says.
    pub fn folder(prefix: &str) -> std::io::Result<Self> {
        let mut existing = existing();
        let path = tempfile::Builder::new().prefix(prefix).tempdir()?.keep();
        existing.push(path.clone());
        Ok(Self { path })
    }

    /// Makes an empty file in `folder`.
    pub(crate) fn file_in(folder: &Path, prefix: &str) -> std::io::Result<(std::fs::File, Self)> {
        let mut existing = existing();
        let (file, path) = tempfile::Builder::new()
            .prefix(prefix)
            .suffix(".tmp")
            .tempfile_in(folder)?
            .keep()
            .map_err(|error| error.error)?;
        existing.push(path.clone());
        Ok((file, Self { path }))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut existing = existing();
        remove(&self.path);
        existing.retain(|path| path != &self.path);
    }
}

/// What is gone already, or cannot be removed, is left: there is nobody to tell.
fn remove(path: &Path) {
    if path.is_dir() {
        let _ = std::fs::remove_dir_all(path);
    } else {
        let _ = std::fs::remove_file(path);
    }
}

/// From now on Ctrl-C and a request to terminate remove every [`Temporary`] and end the program with exit code 130.
///
/// # Errors
/// The system's, or that the program handles these signals already.
pub fn clean_up_when_interrupted() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        // Kept until the end: whoever is about to make another one, or to put a result in place, waits for ever.
        let existing = existing();
        // Newest first; a folder may be filled while it is removed, so a few times.
        for path in existing.iter().rev() {
            for _ in 0..20 {
                remove(path);
                if !path.exists() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
        std::process::exit(INTERRUPTED);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_content_when_it_is_dropped() {
        let folder = Temporary::folder("weir-test-").unwrap();
        let path = folder.path().to_owned();
        std::fs::write(path.join("firmware.elf"), "x").unwrap();
        assert!(existing().contains(&path));
        drop(folder);
        assert!(!path.exists() && !existing().contains(&path));
    }
}
