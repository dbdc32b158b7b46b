// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs on this machine. Each run has a file beside its journal, which describes the run and
//! its status to other commands.
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use procfs::process::Process;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_report::terminal::printable;

use crate::sched::Tid;
use crate::settings::journal::state;
use crate::threads::{self, Thread};

/// Ending of the name of a run's file. Journals and locks have other endings.
const ENDING: &str = "run.json";

/// A run of a system, as its file describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the system.
    pub system: String,
    /// Path of the system file.
    pub file: PathBuf,
    /// Name of the mode, by which bottom halves get the urgency of their receivers.
    pub mode: String,
    /// Names of the run's network interfaces.
    pub interfaces: Vec<String>,
    /// The process of the run. Its start distinguishes it from a later process with the same
    /// number.
    pub process: Thread,
    /// The latest status of the run.
    pub status: Value,
}

/// Reason why runs cannot be read, or why a run cannot be ended.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum InstanceError {
    /// The folder cannot be used.
    #[error("cannot use {}: {cause}", printable(path))]
    #[diagnostic(help(
        "Weir records there which systems run and which settings it changes, readable by this user only; --state takes another folder"
    ))]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A process cannot be asked to end.
    #[error("process {pid} cannot be asked to end: {cause}")]
    NotAsked {
        /// Number of the process.
        pid: Tid,
        /// The system's error.
        cause: io::Error,
    },
    /// A process does not end in time.
    #[error("process {pid} does not end, so the system `{system}` is not stopped")]
    #[diagnostic(help("`kill -9 {pid}`, and then `weir linux stop` puts everything back"))]
    Stuck {
        /// Name of the system.
        system: String,
        /// Number of the process.
        pid: Tid,
    },
}

fn failed(path: &Path) -> impl Fn(io::Error) -> InstanceError + use<> {
    let path = path.to_owned();
    move |cause| InstanceError::Folder {
        path: path.clone(),
        cause,
    }
}

/// Reads all runs in `folder`, including those of crashed processes, in the order of their files'
/// names. The list is empty if there is no such folder.
///
/// # Errors
/// Fails when the folder or a file in it cannot be read, or when somebody else may have written it.
/// The content must be trusted, since the processes that it names are asked to end.
pub fn all(folder: &Path) -> Result<Vec<Run>, InstanceError> {
    let entries = match state::open(folder).and_then(|_| fs::read_dir(folder)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(folder)(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed(folder))?.path();
        if path.to_string_lossy().ends_with(ENDING) {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    let mut runs = Vec::new();
    for path in paths {
        match state::read(&path) {
            // A file is complete, since it is written under another name first. What cannot be
            // parsed is no run and is left out.
            Ok(text) => runs.extend(serde_json::from_slice::<Run>(&text)),
            // The run has ended meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path)(error)),
        }
    }
    Ok(runs)
}

impl Run {
    /// Describes the run in words.
    #[must_use]
    pub fn about(&self) -> String {
        if self.interfaces.is_empty() {
            "an account, and no interface".to_owned()
        } else {
            format!("mode {} on {}", self.mode, self.interfaces.join(", "))
        }
    }

    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.{ENDING}", self.process.tid))
    }

    /// Writes the file of the run. A reader sees either the old content or the new one.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub fn tell(&self, folder: &Path) -> Result<(), InstanceError> {
        let path = self.path(folder);
        let new = path.with_extension("new");
        let text = serde_json::to_vec(self).map_err(io::Error::from);
        let written = text.and_then(|text| {
            let options = state::file()
                .write(true)
                .create(true)
                .truncate(true)
                .clone();
            state::open_file(&new, &options)?.write_all(&text)?;
            fs::rename(&new, &path)
        });
        written.map_err(|error| {
            // The incomplete file is removed, since nothing reads it.
            let _ = fs::remove_file(&new);
            failed(&path)(error)
        })
    }

    /// Removes the file of the run.
    ///
    /// # Errors
    /// Fails when the file cannot be removed.
    pub fn forget(&self, folder: &Path) -> Result<(), InstanceError> {
        let path = self.path(folder);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(&path)(error)),
            _ => Ok(()),
        }
    }

    /// Whether the process of the run lives. A zombie, which has ended but has not been waited for,
    /// does not.
    #[must_use]
    pub fn lives(&self) -> bool {
        let stat = Process::new(self.process.tid).and_then(|process| process.stat());
        stat.is_ok_and(|stat| {
            stat.starttime == self.process.started && !matches!(stat.state, 'Z' | 'X')
        })
    }

    /// Whether `wanted` is the name of the run's system, or the path of its file.
    #[must_use]
    pub fn is_called(&self, wanted: &str) -> bool {
        let file = Path::new(wanted).canonicalize();
        self.system == wanted || file.is_ok_and(|file| file == self.file)
    }

    /// Asks the process of the run to end, and waits until it has ended, for at most `most`. A
    /// process that has ended already is no error.
    ///
    /// # Errors
    /// Fails when the process may not be asked, or does not end in time.
    pub fn end(&self, most: Duration) -> Result<(), InstanceError> {
        let pid = self.process.tid;
        let not_asked = |cause| InstanceError::NotAsked { pid, cause };
        // The signal is sent through a descriptor, since another process may get the same number as
        // soon as this one has ended.
        let process = threads::descriptor(pid).map_err(not_asked)?;
        if !self.lives() {
            return Ok(());
        }
        if let Some(process) = process {
            ask_to_end(&process).map_err(not_asked)?;
        }
        let until = Instant::now() + most;
        while self.lives() {
            if Instant::now() >= until {
                return Err(InstanceError::Stuck {
                    system: self.system.clone(),
                    pid,
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

fn ask_to_end(process: &OwnedFd) -> io::Result<()> {
    let nothing_more = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open, and the call gets no pointer to further data.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            libc::SIGTERM,
            nothing_more,
            0,
        )
    };
    if sent == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // The process has ended meanwhile.
        error if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn run(process: Thread) -> Run {
        Run {
            system: "a node".to_owned(),
            file: PathBuf::from("/etc/weir/node.toml"),
            mode: "native".to_owned(),
            interfaces: vec!["eth0".to_owned()],
            process,
            status: Value::Null,
        }
    }

    fn thread(pid: u32) -> Thread {
        Thread::find(i32::try_from(pid).unwrap()).unwrap().unwrap()
    }

    #[test]
    fn others_are_told_of_a_run_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(all(&folder.path().join("missing")).unwrap(), []);
        let mut run = run(thread(std::process::id()));
        run.tell(folder.path()).unwrap();
        run.status = serde_json::json!({ "packets": 3 });
        run.tell(folder.path()).unwrap();
        // Files of other programs, and incomplete files that a crash has left, are no runs.
        fs::write(folder.path().join("9.run.json"), "{\"system\":").unwrap();
        fs::write(folder.path().join("9.0.journal"), "{}").unwrap();
        assert_eq!(all(folder.path()).unwrap(), [run.clone()]);
        assert!(run.lives() && run.is_called("a node") && !run.is_called("node"));
        run.forget(folder.path()).unwrap();
        run.forget(folder.path()).unwrap();
        assert_eq!(all(folder.path()).unwrap(), []);
    }

    #[test]
    fn a_run_is_called_by_its_file_too() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut run = run(thread(std::process::id()));
        run.file = file.path().canonicalize().unwrap();
        assert!(run.is_called(&file.path().to_string_lossy()));
    }

    #[test]
    fn it_ends_when_it_is_asked_to() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let run = run(thread(child.id()));
        assert!(run.lives());
        run.end(Duration::from_secs(10)).unwrap();
        // The process has ended, but nobody has waited for it yet.
        assert!(!run.lives());
        child.wait().unwrap();
        run.end(Duration::ZERO).unwrap();
    }

    #[test]
    fn a_later_process_of_the_same_number_is_left_alone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut earlier = thread(child.id());
        earlier.started -= 1;
        run(earlier).end(Duration::ZERO).unwrap();
        assert!(run(thread(child.id())).lives());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
