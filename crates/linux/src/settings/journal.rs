// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journal. The value of each setting is on the disk before it changes. So it can be restored
//! however the process ends, even after kill -9.
//!
//! Each run has a file of its own in a folder that all runs share. The run holds a lock on its
//! file, which ends with the process. So a file without a lock belongs to a run that ended without
//! restoring. The first line names the boot, since no setting outlives one. Each other line is a
//! change:
//!
//! ```json
//! {"journal":{"version":1,"boot":"…","pid":4711}}
//! {"change":{"setting":{…},"before":…,"after":[…]}}
//! ```
//!
//! A setting is restored only if its value is one that a run has recorded as its own. If it has any
//! other value, somebody else has changed it, and it is left alone. If two runs change the same
//! setting, the one that ends last restores the first value. That holds even if their journals are
//! in different folders.
//!
//! Restoring never waits without an end. Another process may hold the lock of the folder, and the
//! folder itself may be gone or full.
use std::error::Error;
use std::fmt::{Debug, Display};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::slice;

use nix::fcntl::Flock;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_report::terminal::printable;

mod elsewhere;
mod restore;
pub mod state;
#[cfg(test)]
mod tests;
mod trust;

pub use restore::{Outcome, Restoration};

/// A kind of settings that a journal can record.
pub trait Adjustable: Clone + PartialEq + Debug + Display + Serialize + DeserializeOwned {
    /// Value of a setting. Reading a setting returns the value that was applied last.
    type Value: Clone + PartialEq + Debug + Display + Serialize + DeserializeOwned;
    /// Error of reading or applying a setting.
    type Error: Error + 'static;

    /// Whether the settings belong to the whole machine. If so, runs with journals in other folders
    /// may change them, too.
    const OF_MACHINE: bool = true;

    /// Reads the present value of the setting.
    ///
    /// # Errors
    /// Fails when the setting cannot be read.
    fn read(&self) -> Result<Self::Value, Self::Error>;

    /// Applies `value` to the setting.
    ///
    /// # Errors
    /// Fails when the value cannot be applied. The setting is unchanged then.
    fn apply(&self, value: &Self::Value) -> Result<(), Self::Error>;

    /// Whether `error` means that the object of the setting no longer exists.
    fn vanished(error: &Self::Error) -> bool;
}

/// Result of [`Log::apply`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyOutcome {
    /// The setting has changed.
    Changed,
    /// The setting had that value already.
    Already,
}

/// Reason why a setting was not changed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError<S: Adjustable> {
    /// The journal cannot be written. Without a journal nothing is changed.
    #[error("the journal {} cannot be used: {error}", printable(path))]
    Unkept {
        /// The file or folder.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// Another run has the lock.
    #[error("another run of Weir, process {pid}, has {what} already")]
    Locked {
        /// Name of the lock.
        what: String,
        /// Number of the other run's process, as that process has written it.
        pid: String,
    },
    /// Somebody else has changed the setting since this run did.
    #[error("{setting} was changed to {found} by somebody else, and stays so")]
    Foreign {
        /// The setting.
        setting: Box<S>,
        /// The value that the setting has now.
        found: S::Value,
    },
    /// The setting cannot be read or set.
    #[error(transparent)]
    Setting(S::Error),
}

/// A line of a journal.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JournalLine<S, V> {
    Journal {
        version: u32,
        boot: String,
        pid: u32,
    },
    Change {
        setting: S,
        before: V,
        after: Vec<V>,
    },
}

/// A setting in a journal, with its values.
#[derive(Debug, Clone)]
struct Entry<S: Adjustable> {
    setting: S,
    before: S::Value,
    /// Values that the run has applied, in their order.
    ours: Vec<S::Value>,
}

/// The journal of this run. Dropping it restores everything in it.
#[derive(Debug)]
pub struct Log<S: Adjustable> {
    folder: PathBuf,
    path: PathBuf,
    file: Flock<File>,
    /// Length of the file up to the end of its last complete line, in bytes.
    length: u64,
    entries: Vec<Entry<S>>,
    locks: Vec<(PathBuf, Flock<File>)>,
    ended: bool,
}

/// Default folder of the journals.
pub const FOLDER: &str = "/run/weir";

const VERSION: u32 = 1;

/// Number of bytes that the journal of some tens of settings needs.
const ROOM: usize = 16_384;

impl<S: Adjustable> Log<S> {
    /// Restores what ended runs have left changed, and creates the journal of this run. `folder` is
    /// created if it does not exist.
    ///
    /// # Errors
    /// Fails when the folder or the file cannot be created.
    pub fn open(folder: &Path) -> Result<(Self, Vec<Restoration<S>>), JournalError<S>> {
        state::make(folder).map_err(unkept(folder))?;
        let alone = state::alone(folder).map_err(unkept(folder))?;
        let restored = restore::dead(folder).map_err(unkept(folder))?;
        let boot = boot().map_err(unkept(folder))?;
        let pid = process::id();
        let mut number = 0_u32;
        let (path, file) = loop {
            let path = folder.join(format!("{pid}.{number}.journal"));
            match state::file().append(true).create_new(true).open(&path) {
                Ok(file) => break (path, file),
                // The name is taken by a journal with settings that could not be restored, or by
                // another journal of this process. The next number is tried.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(unkept(&path)(error)),
            }
        };
        let version = VERSION;
        let head: JournalLine<S, S::Value> = JournalLine::Journal { version, boot, pid };
        let begun = state::lock(file).and_then(|mut file| {
            let length = append(&mut file, &head)?;
            // The file's name must be on the disk, too, and not only its content.
            alone.sync()?;
            Ok((file, length))
        });
        match begun {
            Ok((file, length)) => Ok((
                Self {
                    folder: folder.to_owned(),
                    path,
                    file,
                    length,
                    entries: Vec::new(),
                    locks: Vec::new(),
                    ended: false,
                },
                restored,
            )),
            Err(error) => {
                // The file is removed, since nothing has been changed yet.
                let _ = fs::remove_file(&path);
                Err(unkept(&path)(error))
            }
        }
    }

    /// Restores what ended runs have left changed. Runs that are alive are not touched.
    ///
    /// # Errors
    /// Fails when the folder or a file in it cannot be read. A missing folder is no error, since it
    /// means that there was no run.
    pub fn recover(folder: &Path) -> Result<Vec<Restoration<S>>, JournalError<S>> {
        match state::alone(folder) {
            Ok(_alone) => restore::dead(folder).map_err(unkept(folder)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(unkept(folder)(error)),
        }
    }

    /// Process numbers of the runs in this folder that are alive.
    ///
    /// # Errors
    /// Fails when the folder or a file in it cannot be read.
    pub fn running(folder: &Path) -> Result<Vec<u32>, JournalError<S>> {
        match state::alone(folder) {
            Ok(_alone) => Ok(restore::here::<S>(folder, None, false)
                .map_err(unkept(folder))?
                .into_iter()
                .filter_map(|journal| journal.pid)
                .collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(unkept(folder)(error)),
        }
    }

    /// Checks that the disk has room for a journal of some tens of settings.
    ///
    /// # Errors
    /// Fails when the folder has no room for the journal.
    pub fn has_room(folder: &Path) -> Result<(), JournalError<S>> {
        let path = folder.join(format!("{}.room", process::id()));
        let mut options = state::file();
        options.write(true).create(true).truncate(true);
        let written = state::open_file(&path, &options)
            .and_then(|mut file| file.write_all(&[0; ROOM]).and_then(|()| file.sync_all()));
        // This frees the room for the real journal.
        let _ = fs::remove_file(&path);
        written.map_err(unkept(&path))
    }

    /// Takes the lock `what` (letters, digits, `-`, `_` and `.`) for this run, until the run ends.
    ///
    /// # Errors
    /// Fails when another run has the lock.
    pub fn lock(&mut self, what: &str) -> Result<(), JournalError<S>> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let path = self.folder.join(format!("{what}.lock"));
        if !what.bytes().all(plain) {
            return Err(unkept(&path)(ErrorKind::InvalidInput.into()));
        }
        if self.locks.iter().any(|(held, _)| *held == path) {
            return Ok(());
        }
        let _alone = state::alone(&self.folder).map_err(unkept(&self.folder))?;
        let locked = |pid: String| JournalError::Locked {
            what: what.to_owned(),
            pid,
        };
        let options = state::file()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .clone();
        let file = state::open_file(&path, &options).map_err(unkept(&path))?;
        let mut file = match state::lock(file) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let text = state::read(&path).unwrap_or_default();
                return Err(locked(String::from_utf8_lossy(&text).into_owned()));
            }
            Err(error) => return Err(unkept(&path)(error)),
        };
        // The other folders are searched after the lock is taken. So if two runs begin at once,
        // each finds the other.
        let other = S::OF_MACHINE
            .then(|| elsewhere::locked_files(&self.folder, "lock"))
            .into_iter()
            .flatten()
            .find(|held| {
                Some(held.name.as_str()) == path.file_name().and_then(|name| name.to_str())
            });
        let written = match other {
            Some(other) => Err(locked(other.pid.to_string())),
            None => file
                .set_len(0)
                .and_then(|()| write!(&mut *file, "{}", process::id()))
                .map_err(unkept(&path)),
        };
        match written {
            Ok(()) => {
                self.locks.push((path, file));
                Ok(())
            }
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Settings that this run has changed, in the order of the first changes.
    pub fn settings(&self) -> impl Iterator<Item = &S> {
        self.entries.iter().map(|entry| &entry.setting)
    }

    /// Applies `value` to `setting`, after recording the present value on the disk.
    ///
    /// It can be called any number of times. It writes to the disk only for values that the run has
    /// not applied to this setting before.
    ///
    /// # Errors
    /// Fails when the value cannot be recorded, read or applied. Also fails when somebody else has
    /// changed the setting since this run did. The setting is unchanged then.
    pub fn apply(
        &mut self,
        setting: &S,
        value: &S::Value,
    ) -> Result<ApplyOutcome, JournalError<S>> {
        let current = setting.read().map_err(JournalError::Setting)?;
        let is_known = self.settings().any(|known| known == setting);
        if is_known && current == *value {
            return Ok(ApplyOutcome::Already);
        }
        self.claim(setting, &current, slice::from_ref(value))?;
        if current == *value {
            return Ok(ApplyOutcome::Already);
        }
        setting.apply(value).map_err(JournalError::Setting)?;
        Ok(ApplyOutcome::Changed)
    }

    /// Records that this run may apply any of `values` (at least one) to `setting` without calling
    /// the journal, any number of times. At the end the present value is restored. But if another
    /// run changes the setting, too, this run leaves the last of `values`.
    ///
    /// # Errors
    /// Fails when the values cannot be recorded or the setting cannot be read. Also fails when
    /// somebody else has changed the setting since this run did.
    pub fn announce(&mut self, setting: &S, values: &[S::Value]) -> Result<(), JournalError<S>> {
        let current = setting.read().map_err(JournalError::Setting)?;
        self.claim(setting, &current, values)
    }

    /// Records `values` as this run's own. Nothing is recorded if there is only one value, the
    /// setting has that value already (`current`), and no other run will restore another value.
    fn claim(
        &mut self,
        setting: &S,
        current: &S::Value,
        values: &[S::Value],
    ) -> Result<(), JournalError<S>> {
        let known = self.entries.iter().find(|entry| entry.setting == *setting);
        if let Some(entry) = known {
            if *current == entry.before || entry.ours.contains(current) {
                let before = entry.before.clone();
                let is_new = |value: &&S::Value| !entry.ours.contains(value);
                let new: Vec<S::Value> = values.iter().filter(is_new).cloned().collect();
                return if new.is_empty() {
                    Ok(())
                } else {
                    self.record(setting, before, new)
                };
            }
        }
        let is_known = known.is_some();
        let _alone = state::alone(&self.folder).map_err(unkept(&self.folder))?;
        // Journals of ended runs count, too, if they could not restore the first value.
        let other = restore::others::<S>(&self.folder, Some(&self.path), true)
            .map_err(unkept(&self.folder))?
            .into_iter()
            .flat_map(|journal| journal.entries)
            .find(|entry| entry.setting == *setting);
        let (before, mut after) = match other {
            Some(other) if other.before == *current || other.ours.contains(current) => {
                (other.before, other.ours)
            }
            _ if is_known => {
                return Err(JournalError::Foreign {
                    setting: Box::new(setting.clone()),
                    found: current.clone(),
                });
            }
            // The setting has the only wanted value already, and no other run will restore another
            // value.
            _ if values.iter().all(|value| value == current) => return Ok(()),
            _ => (current.clone(), Vec::new()),
        };
        after.extend_from_slice(values);
        self.record(setting, before, after)
    }

    /// Restores all settings, the last change first, and removes the journal. Settings that could
    /// not be restored stay in the journal for the next start.
    #[must_use]
    pub fn restore(mut self) -> Restoration<S> {
        self.end()
    }

    fn end(&mut self) -> Restoration<S> {
        self.ended = true;
        let mut trouble = Vec::new();
        // The settings are restored even if another process has locked the folder, or if the folder
        // is gone.
        let alone = state::alone(&self.folder);
        if let Err(error) = &alone {
            trouble.push(format!("{}: {error}", printable(&self.folder)));
        }
        let living = restore::living(&self.folder, Some(&self.path)).unwrap_or_else(|error| {
            if alone.is_ok() {
                trouble.push(format!("{}: {error}", printable(&self.folder)));
            }
            restore::of_others(&self.folder)
        });
        let mut outcomes = restore::all(&self.entries, &[], &living);
        if alone.is_err() {
            // If two runs end at the same time, each may have left the setting to the other one.
            for (_, outcome) in &mut outcomes {
                if *outcome == Outcome::Shared {
                    *outcome = Outcome::Failed(
                        "another run has it, too, and which of the two ends last cannot be told"
                            .to_owned(),
                    );
                }
            }
        }
        let mut restoration = Restoration {
            pid: Some(process::id()),
            outcomes,
            unreadable: 0,
            trouble,
        };
        if restoration.is_put_back() {
            restoration.trouble.extend(removed(&self.path).err());
        }
        for (path, _file) in self.locks.drain(..) {
            restoration.trouble.extend(removed(&path).err());
        }
        restoration
    }

    fn record(
        &mut self,
        setting: &S,
        before: S::Value,
        after: Vec<S::Value>,
    ) -> Result<(), JournalError<S>> {
        let setting = setting.clone();
        self.write(&JournalLine::Change {
            setting: setting.clone(),
            before: before.clone(),
            after: after.clone(),
        })?;
        restore::add(&mut self.entries, setting, before, after);
        Ok(())
    }

    /// Appends one line, completely or not at all, and waits until it is on the disk.
    fn write(&mut self, line: &JournalLine<S, S::Value>) -> Result<(), JournalError<S>> {
        match append(&mut self.file, line) {
            Ok(length) => {
                self.length += length;
                Ok(())
            }
            Err(error) => {
                // An incomplete line is removed, since it would spoil the next line. If that fails,
                // the next line cannot be written either.
                let _ = self.file.set_len(self.length);
                Err(unkept(&self.path)(error))
            }
        }
    }
}

/// Appends one line and waits until it is on the disk. Returns the length of the line.
fn append<S: Adjustable>(file: &mut File, line: &JournalLine<S, S::Value>) -> io::Result<u64> {
    #[cfg(test)]
    tests::disk()?;
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_data()?;
    Ok(text.len() as u64)
}

/// Removes a file. A missing file is no error.
fn removed(path: &Path) -> Result<(), String> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("{} cannot be removed: {error}", printable(path)))
        }
        _ => Ok(()),
    }
}

impl<S: Adjustable> Drop for Log<S> {
    fn drop(&mut self) {
        if !self.ended {
            // Settings that cannot be restored stay in the journal, and the next start restores
            // them.
            drop(self.end());
        }
    }
}

fn unkept<S: Adjustable>(path: &Path) -> impl Fn(io::Error) -> JournalError<S> + use<S> {
    let path = path.to_owned();
    move |error| JournalError::Unkept {
        path: path.clone(),
        error,
    }
}

/// Identifier of the present boot of the machine.
fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}
