// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must not stay behind when the program is interrupted.
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// What exists now.
static EXISTING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Read by what must be done whole; written by an interruption, which so waits for it and lets no
/// more begin.
static WHOLE: RwLock<()> = RwLock::new(());

/// Set as soon as an interruption is known of.
static INTERRUPTION: AtomicBool = AtomicBool::new(false);

/// Within this time an interruption is known of, also on a busy machine.
const GRACE: Duration = Duration::from_millis(500);

/// How often a folder is removed into which somebody still writes.
const ATTEMPTS: usize = 10;

/// The exit code of a program that Ctrl-C ended, as shells know it.
const INTERRUPTED: i32 = 130;

/// Does something that an interruption comes before or after, not between: putting results in
/// place, or filling a [`Temporary`] folder, which would else be made again behind the back of who
/// removes it. Should be short, and must not be nested.
pub fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let _whole = WHOLE.read().unwrap_or_else(PoisonError::into_inner);
    work()
}

fn existing() -> MutexGuard<'static, Vec<PathBuf>> {
    // A list of paths is as good after a panic elsewhere as before.
    EXISTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// To be called when another program has failed: a terminal sends Ctrl-C to that program too, and
/// its failure is then no error to report. Returns after half a second; never, if this program is
/// being interrupted.
pub fn give_way_to_interruption() {
    std::thread::sleep(GRACE);
    while INTERRUPTION.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// A file or folder that is removed when this value is dropped, and also when the program is
/// interrupted, if [`clean_up_when_interrupted`] was called.
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
    if !path.is_dir() {
        let _ = std::fs::remove_file(path);
        return;
    }
    // Another program that is being interrupted, too, may put a last file there meanwhile.
    for _ in 0..ATTEMPTS {
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            _ => break,
        }
    }
}

/// From now on Ctrl-C and a request to terminate remove every [`Temporary`] and end the program
/// with exit code 130.
///
/// # Errors
/// The system's, or that the program handles these signals already.
pub fn clean_up_when_interrupted() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        INTERRUPTION.store(true, Ordering::SeqCst);
        // Both kept until the end: whoever is about to make another one, or to put a result in
        // place, waits for ever.
        let _whole = WHOLE.write().unwrap_or_else(PoisonError::into_inner);
        let existing = existing();
        existing.iter().for_each(|path| remove(path));
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
