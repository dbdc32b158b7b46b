// SPDX-License-Identifier: MIT OR Apache-2.0
//! Temporary files and folders that are removed when the program is interrupted.
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// The paths of all existing temporary files and folders.
static EXISTING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A lock around work that must not be interrupted. The work holds a read lock. The interruption
/// handler takes the write lock, so that it waits for running work and blocks new work.
static WHOLE: RwLock<()> = RwLock::new(());

/// Set as soon as an interruption has been signalled.
static INTERRUPTION: AtomicBool = AtomicBool::new(false);

/// The time within which the program notices an interruption, even on a busy machine.
const GRACE: Duration = Duration::from_millis(500);

/// The number of attempts to remove a folder into which another program still writes.
const ATTEMPTS: usize = 10;

/// The exit code of a program that Ctrl-C ended, by the convention of shells.
const INTERRUPTED: i32 = 130;

/// Does work that must be either complete or not begun when an interruption ends the program.
/// Examples are renaming results, and starting a program that writes into a [`Temporary`] folder
/// and would create the folder again after its removal. The work should be short and must not be
/// nested.
pub fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let _whole = WHOLE.read().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Runs a program until it ends, and returns its output. Its error messages go to this program's
/// standard error. The program is interrupted together with this one.
///
/// # Errors
/// Fails if the program cannot be started.
pub fn run_to_end(command: &mut Command) -> std::io::Result<Output> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    uninterrupted(|| command.spawn())?.wait_with_output()
}

fn existing() -> MutexGuard<'static, Vec<PathBuf>> {
    // A list of paths stays valid if another thread panics.
    EXISTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits half a second after another program has failed. If this program is being interrupted, the
/// function never returns: the terminal has sent Ctrl-C to both programs, so the failure of the
/// other one is not an error to report.
pub fn give_way_to_interruption() {
    std::thread::sleep(GRACE);
    while INTERRUPTION.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// A file or folder that is removed when this value is dropped. It is also removed when the program
/// is interrupted, if [`clean_up_when_interrupted`] was called.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// Creates an empty folder in the system's folder for temporary files.
    ///
    /// # Errors
    /// Fails if the operating system returns an error.
    pub fn folder(prefix: &str) -> std::io::Result<Self> {
        let mut existing = existing();
        let path = tempfile::Builder::new().prefix(prefix).tempdir()?.keep();
        existing.push(path.clone());
        Ok(Self { path })
    }

    /// Creates an empty file in `folder`.
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

    /// Returns the path of the file or folder.
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

/// Removes the path of the temporary file, which tells the user nothing, from the end of an error
/// of the crate tempfile.
fn without_path(error: std::io::Error) -> std::io::Error {
    let words = error.to_string();
    match words.split_once(" at path ") {
        Some((cause, _)) => std::io::Error::new(error.kind(), cause),
        None => error,
    }
}

/// Removes a file or folder. Errors are ignored, because nobody could act on them.
fn remove(path: &Path) {
    if !path.is_dir() {
        let _ = std::fs::remove_file(path);
        return;
    }
    // Another program that is being interrupted, too, may meanwhile write a last file into the
    // folder.
    for _ in 0..ATTEMPTS {
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            _ => break,
        }
    }
}

/// Installs a handler for Ctrl-C and SIGTERM that removes every [`Temporary`] and ends the program
/// with exit code 130.
///
/// # Errors
/// Fails if the operating system returns an error, or if the program already handles these signals.
pub fn clean_up_when_interrupted() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        INTERRUPTION.store(true, Ordering::SeqCst);
        // The handler keeps both locks until the program ends. A thread that is about to create a
        // file or to rename a result waits for ever.
        let _whole = WHOLE.write().unwrap_or_else(PoisonError::into_inner);
        let existing = existing();
        // The terminal has sent Ctrl-C to programs that ran at that time. Programs started since
        // then have received no signal.
        #[cfg(target_os = "linux")]
        interrupt_descendants(nix::unistd::Pid::this());
        existing.iter().for_each(|path| remove(path));
        std::process::exit(INTERRUPTED);
    })
}

/// Sends SIGINT to the child processes of a process, and to their children.
#[cfg(target_os = "linux")]
fn interrupt_descendants(of: nix::unistd::Pid) {
    use nix::sys::signal::{Signal, kill};
    let threads = std::fs::read_dir(format!("/proc/{of}/task"));
    for thread in threads.into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().flat_map(str::parse) {
            let child = nix::unistd::Pid::from_raw(child);
            interrupt_descendants(child);
            // The process may have ended meanwhile.
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
