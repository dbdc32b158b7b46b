// SPDX-License-Identifier: MIT OR Apache-2.0
//! Temporary files and folders, which are removed when the program is interrupted.
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// Paths of the files and folders that exist now.
static EXISTING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Lock around work that must not be interrupted. Such work holds it for reading. An interruption
/// takes it for writing, so it waits for that work and lets no other begin.
static WHOLE: RwLock<()> = RwLock::new(());

/// Set as soon as the program has been told of an interruption.
static INTERRUPTION: AtomicBool = AtomicBool::new(false);

/// Time within which the program knows of an interruption, also on a busy machine.
const GRACE: Duration = Duration::from_millis(500);

/// Attempts to remove a folder into which another program still writes.
const ATTEMPTS: usize = 10;

/// The exit code of a program that Ctrl-C ended, as shells know it.
const INTERRUPTED: i32 = 130;

/// Does work that must be complete or not begun when an interruption ends the program: putting
/// results in place, or starting a program that writes into a [`Temporary`] folder, which would
/// otherwise be created again after its removal. The work should be short and must not be nested.
pub fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let _whole = WHOLE.read().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Runs a program to its end, and returns what it prints; its messages go to this program's
/// standard error. It is interrupted with this one.
///
/// # Errors
/// It cannot be started.
pub fn run_to_end(command: &mut Command) -> std::io::Result<Output> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    uninterrupted(|| command.spawn())?.wait_with_output()
}

fn existing() -> MutexGuard<'static, Vec<PathBuf>> {
    // A list of paths is as good after a panic elsewhere as before.
    EXISTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits half a second after another program has failed. If this program is being interrupted, it
/// never returns: the terminal has sent Ctrl-C to both programs, and the other's failure is then no
/// error to report.
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
    /// Fails if the system refuses.
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
            .tempfile_in(folder)
            .map_err(without_path)?
            .keep()
            .map_err(|error| error.error)?;
        existing.push(path.clone());
        Ok((file, Self { path }))
    }

    /// Path of the file or folder.
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

/// An error of the crate tempfile without the temporary file's path, which says nothing to a user
/// and with which its words end.
fn without_path(error: std::io::Error) -> std::io::Error {
    let words = error.to_string();
    match words.split_once(" at path ") {
        Some((cause, _)) => std::io::Error::new(error.kind(), cause),
        None => error,
    }
}

/// Removes a file or folder. Errors are ignored: there is nobody to report them to.
fn remove(path: &Path) {
    if !path.is_dir() {
        let _ = std::fs::remove_file(path);
        return;
    }
    // Another program that is being interrupted, too, may write a last file there meanwhile.
    for _ in 0..ATTEMPTS {
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            _ => break,
        }
    }
}

/// Makes Ctrl-C and a request to terminate remove every [`Temporary`] and end the program with exit
/// code 130.
///
/// # Errors
/// Fails if the system refuses, or if the program handles these signals already.
pub fn clean_up_when_interrupted() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        INTERRUPTION.store(true, Ordering::SeqCst);
        // Both locks are kept until the end: whoever is about to create another file, or to put a
        // result in place, waits for ever.
        let _whole = WHOLE.write().unwrap_or_else(PoisonError::into_inner);
        let existing = existing();
        // Ctrl-C has reached those that ran when it was typed, and nothing those that have been
        // started since.
        #[cfg(target_os = "linux")]
        interrupt_descendants(nix::unistd::Pid::this());
        existing.iter().for_each(|path| remove(path));
        std::process::exit(INTERRUPTED);
    })
}

/// Interrupts the programs that a process has started, and theirs.
#[cfg(target_os = "linux")]
fn interrupt_descendants(of: nix::unistd::Pid) {
    use nix::sys::signal::{Signal, kill};
    let threads = std::fs::read_dir(format!("/proc/{of}/task"));
    for thread in threads.into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().flat_map(str::parse) {
            let child = nix::unistd::Pid::from_raw(child);
            interrupt_descendants(child);
            // It may have ended meanwhile.
            let _ = kill(child, Signal::SIGINT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_no_file_can_be_made_is_told_without_its_path() {
        let root = tempfile::tempdir().unwrap();
        let error = Temporary::file_in(&root.path().join("none"), ".x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(!error.to_string().contains(".tmp"), "{error}");
    }

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
