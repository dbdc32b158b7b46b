// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads journals, and restores the settings in them.
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use nix::fcntl::Flock;
use weir_report::terminal::printable;

use super::{Adjustable, Entry, JournalLine, boot, elsewhere, removed, state};

/// Result of restoring one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<V> {
    /// The setting had another value, and has its first value again.
    Restored,
    /// The setting had its first value already.
    Unchanged,
    /// The object of the setting no longer exists.
    Vanished,
    /// Somebody else has changed the setting to this value, which is left alone.
    Foreign(V),
    /// Another run that is alive has changed the setting, too. That run will restore it.
    Shared,
    /// The setting cannot be restored, for this reason. The journal keeps it for the next start.
    Failed(String),
}

/// Results of restoring all settings of one run.
#[derive(Debug, Clone)]
pub struct Restoration<S: Adjustable> {
    /// Number of the run's process. `None` if the journal does not name it.
    pub pid: Option<u32>,
    /// All settings of the journal, the last change first.
    pub outcomes: Vec<(S, Outcome<S::Value>)>,
    /// Number of lines that could not be read. An incomplete last line is not counted, since its
    /// setting had not been changed yet.
    pub unreadable: usize,
    /// Other errors, each with the file that it is about.
    pub trouble: Vec<String>,
}

impl<S: Adjustable> Restoration<S> {
    /// Whether every line of the journal was read and its setting restored, and there was no other
    /// error.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_put_back() && self.trouble.is_empty()
    }

    /// Whether nothing is left to restore. The journal is no longer needed then.
    pub(super) fn is_put_back(&self) -> bool {
        self.unreadable == 0
            && self
                .outcomes
                .iter()
                .all(|(_, outcome)| !matches!(outcome, Outcome::Failed(_)))
    }
}

/// The content of a journal file.
pub(super) struct SavedJournal<S: Adjustable> {
    path: PathBuf,
    pub(super) pid: Option<u32>,
    boot: Option<String>,
    pub(super) entries: Vec<Entry<S>>,
    unreadable: usize,
    /// The lock on the file. `None` if a living run holds it.
    _held: Option<Flock<File>>,
}

/// Adds a change to `entries`.
pub(super) fn add<S: Adjustable>(
    entries: &mut Vec<Entry<S>>,
    setting: S,
    before: S::Value,
    after: Vec<S::Value>,
) {
    match entries.iter_mut().find(|entry| entry.setting == setting) {
        Some(entry) => entry.ours.extend(after),
        None => entries.push(Entry {
            setting,
            before,
            ours: after,
        }),
    }
}

/// Largest size of a journal in bytes. A journal needs some hundred bytes for each value of each
/// setting.
const MOST: u64 = 64 << 20;

/// Reads a journal. A file that is larger than [`MOST`] cannot come from a run, and counts as
/// unreadable.
fn read<S: Adjustable>(path: PathBuf, file: File) -> io::Result<SavedJournal<S>> {
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    let is_too_large = bytes.len() as u64 > MOST;
    if is_too_large {
        bytes.clear();
    }
    // The bytes after the last line break are an incomplete line.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let mut journal = SavedJournal {
        path,
        pid: None,
        boot: None,
        entries: Vec::new(),
        unreadable: usize::from(is_too_large),
        _held: None,
    };
    let mut is_another = false;
    for line in bytes[..whole].split(|byte| *byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(JournalLine::Journal {
                version: super::VERSION,
                boot,
                pid,
            }) => {
                journal.boot = Some(boot);
                journal.pid = Some(pid);
            }
            Ok(JournalLine::Change {
                setting,
                before,
                after,
            }) => add(&mut journal.entries, setting, before, after),
            Ok(JournalLine::Journal { .. }) => is_another = true,
            Err(_) => journal.unreadable += 1,
        }
    }
    if is_another {
        // The lines of another version may have another meaning, so they all count as unreadable.
        journal.unreadable += 1 + journal.entries.len();
        journal.entries.clear();
    }
    Ok(journal)
}

/// Locks the journal at `path` and returns the lock. `None` if a living run has locked it.
fn lock(path: &Path) -> io::Result<Option<Flock<File>>> {
    let options = state::file().read(true).append(true).clone();
    let file = state::open_file(path, &options)?;
    match state::lock(file) {
        Ok(held) => Ok(Some(held)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the journals of living runs, except for the one at `except`. The caller must have locked
/// the folder.
pub(super) fn living<S: Adjustable>(
    folder: &Path,
    except: Option<&Path>,
) -> io::Result<Vec<SavedJournal<S>>> {
    others(folder, except, false)
}

/// Reads the journals in the folder, except for the one at `except`, and those of living runs with
/// other folders. Journals of ended runs are included only if `dead` is true. The caller must have
/// locked the folder.
pub(super) fn others<S: Adjustable>(
    folder: &Path,
    except: Option<&Path>,
    dead: bool,
) -> io::Result<Vec<SavedJournal<S>>> {
    let mut others = here(folder, except, dead)?;
    others.extend(of_others(folder));
    Ok(others)
}

/// Reads the journals in the folder, except for the one at `except`. Files that belong neither to
/// this user nor to root are left out.
pub(super) fn here<S: Adjustable>(
    folder: &Path,
    except: Option<&Path>,
    dead: bool,
) -> io::Result<Vec<SavedJournal<S>>> {
    let mut here = Vec::new();
    for path in state::files(folder, "journal")? {
        if Some(path.as_path()) == except {
            continue;
        }
        let is_wanted = match lock(&path) {
            Ok(held) => dead || held.is_none(),
            // Restoring this journal reports the error.
            Err(_) => continue,
        };
        if is_wanted {
            let file = state::open_file(&path, state::file().read(true))?;
            here.push(read(path, file)?);
        }
    }
    Ok(here)
}

/// Reads the journals of living runs with other folders. Unreadable ones are left out.
pub(super) fn of_others<S: Adjustable>(folder: &Path) -> Vec<SavedJournal<S>> {
    if !S::OF_MACHINE {
        return Vec::new();
    }
    let boot = boot().ok();
    let all = elsewhere::locked_files(folder, "journal").into_iter();
    let all = all.filter_map(|held| read(held.path.clone(), held.open().ok()?).ok());
    // Other programs may have files with such names, so the boot is checked.
    all.filter(|journal: &SavedJournal<S>| journal.boot == boot)
        .collect()
}

/// Restores the settings of ended runs, and removes their journals and locks. An error in one
/// journal does not keep the others from being restored. The caller must have locked the folder.
pub(super) fn dead<S: Adjustable>(folder: &Path) -> io::Result<Vec<Restoration<S>>> {
    let boot = boot()?;
    // Living runs are found first, before this process locks the files of ended runs.
    let living = living(folder, None)?;
    let mut dead: Vec<SavedJournal<S>> = Vec::new();
    let mut restorations = Vec::new();
    for path in state::files(folder, "journal")? {
        let opened = lock(&path).and_then(|held| {
            let Some(held) = held else { return Ok(None) };
            let file = state::open_file(&path, state::file().read(true))?;
            Ok(Some(SavedJournal {
                _held: Some(held),
                ..read(path.clone(), file)?
            }))
        });
        match opened {
            Ok(journal) => dead.extend(journal),
            Err(error) => restorations.push(Restoration {
                pid: None,
                outcomes: Vec::new(),
                unreadable: 0,
                trouble: vec![format!("the journal {}: {error}", printable(&path))],
            }),
        }
    }
    for journal in &dead {
        // The settings of an earlier boot no longer exist. Other threads and interfaces may have
        // the same numbers now.
        let earlier = journal
            .boot
            .as_ref()
            .is_some_and(|recorded| *recorded != boot);
        let mut restoration = Restoration {
            pid: journal.pid,
            outcomes: Vec::new(),
            unreadable: 0,
            trouble: Vec::new(),
        };
        if !earlier {
            restoration.outcomes = all(&journal.entries, &dead, &living);
            restoration.unreadable = journal.unreadable;
        }
        if restoration.unreadable > 0 {
            restoration.trouble.push(format!(
                "the journal {} has lines that cannot be read ({}), so their settings stay as they are: check them, and then remove the journal",
                printable(&journal.path),
                restoration.unreadable
            ));
        }
        if restoration.is_put_back() {
            restoration.trouble.extend(removed(&journal.path).err());
        }
        restorations.push(restoration);
    }
    for path in state::files(folder, "lock")? {
        if matches!(lock(&path), Ok(Some(_))) {
            // An error is ignored, since an unused lock does no harm.
            let _ = removed(&path);
        }
    }
    Ok(restorations)
}

fn entries<'a, S: Adjustable>(
    journals: &'a [SavedJournal<S>],
    setting: &'a S,
) -> impl Iterator<Item = &'a Entry<S>> {
    journals
        .iter()
        .flat_map(|journal| &journal.entries)
        .filter(move |entry| entry.setting == *setting)
}

/// Restores `entries`, the last one first. `dead` are the journals of other runs that have ended,
/// `living` those of other runs that are alive.
pub(super) fn all<S: Adjustable>(
    entries: &[Entry<S>],
    dead: &[SavedJournal<S>],
    living: &[SavedJournal<S>],
) -> Vec<(S, Outcome<S::Value>)> {
    entries
        .iter()
        .rev()
        .map(|entry| {
            let outcome = one(entry, dead, living).unwrap_or_else(|error| {
                if S::vanished(&error) {
                    Outcome::Vanished
                } else {
                    Outcome::Failed(error.to_string())
                }
            });
            (entry.setting.clone(), outcome)
        })
        .collect()
}

fn one<S: Adjustable>(
    entry: &Entry<S>,
    dead: &[SavedJournal<S>],
    living: &[SavedJournal<S>],
) -> Result<Outcome<S::Value>, S::Error> {
    let Entry {
        setting,
        before,
        ours,
    } = entry;
    let current = setting.read()?;
    let mine = ours.contains(&current)
        || entries(dead, setting).any(|other| other.ours.contains(&current));
    if let Some(other) = entries(living, setting).next() {
        // The other run knows only the values that were recorded before it began. It would take any
        // later value for a change by somebody else.
        if let Some(first_value) = other
            .ours
            .last()
            .filter(|_| mine && !other.ours.contains(&current))
        {
            setting.apply(first_value)?;
        }
        if other.before != *before && ours.contains(&other.before) {
            // The other run has its journal in another folder, and did not know of this run.
            return Ok(Outcome::Failed(format!(
                "another run has it, and would put it back to {}, which is this run's own: end that one first",
                other.before
            )));
        }
        return Ok(Outcome::Shared);
    }
    if current == *before {
        return Ok(Outcome::Unchanged);
    }
    if !mine {
        return Ok(Outcome::Foreign(current));
    }
    setting.apply(before)?;
    Ok(Outcome::Restored)
}
