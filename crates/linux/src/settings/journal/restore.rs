// SPDX-License-Identifier: MIT OR Apache-2.0
//! Journals read again, and what they hold put back.
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use nix::fcntl::Flock;

use super::{Adjustable, Entry, JournalLine, boot, elsewhere, removed, state};

/// What became of one setting when it was to be put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<V> {
    /// It has its first value again.
    Restored,
    /// It had it already.
    Unchanged,
    /// What it was a setting of is there no longer.
    Vanished,
    /// Somebody else has changed it meanwhile, and it is left at this value.
    Foreign(V),
    /// Another run that goes on has set it too, and will put it back.
    Shared,
    /// It cannot be put back, for this reason; the journal keeps it for the next start.
    Failed(String),
}

/// What became of the settings of one run.
#[derive(Debug, Clone)]
pub struct Restoration<S: Adjustable> {
    /// The run's process, `None` if its journal does not tell.
    pub pid: Option<u32>,
    /// Each setting, the last change first.
    pub outcomes: Vec<(S, Outcome<S::Value>)>,
    /// How many lines of the journal could not be read, besides one that was not written to its
    /// end: for such a one nothing was changed yet.
    pub unreadable: usize,
    /// What else went wrong, with the files that it is about.
    pub trouble: Vec<String>,
}

impl<S: Adjustable> Restoration<S> {
    /// Whether all is well: nothing is left to be put back, as far as the journal can be read, and
    /// nothing else went wrong.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_put_back() && self.trouble.is_empty()
    }

    /// Whether nothing is left to be put back, so that the journal is not needed any longer.
    pub(super) fn is_put_back(&self) -> bool {
        self.unreadable == 0
            && self
                .outcomes
                .iter()
                .all(|(_, outcome)| !matches!(outcome, Outcome::Failed(_)))
    }
}

/// A journal as it was read.
pub(super) struct SavedJournal<S: Adjustable> {
    path: PathBuf,
    pub(super) pid: Option<u32>,
    boot: Option<String>,
    pub(super) entries: Vec<Entry<S>>,
    unreadable: usize,
    /// Held while it is of no living run.
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

/// The largest journal: one has a line of some hundred bytes for each value of each setting.
const MOST: u64 = 64 << 20;

/// Reads a journal. One that is too large is no run's, and all of it cannot be read.
fn read<S: Adjustable>(path: PathBuf, file: File) -> io::Result<SavedJournal<S>> {
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    let is_too_large = bytes.len() as u64 > MOST;
    if is_too_large {
        bytes.clear();
    }
    // What follows the last line break was not written to its end.
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
        // Its lines may mean something else.
        journal.unreadable += 1 + journal.entries.len();
        journal.entries.clear();
    }
    Ok(journal)
}

/// Whether a living run holds `file`; else it is held by the returned lock.
fn held(path: &Path) -> io::Result<Option<Flock<File>>> {
    let options = state::file().read(true).append(true).clone();
    let file = state::open_file(path, &options)?;
    match state::lock(file) {
        Ok(held) => Ok(Some(held)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// The journals of runs that go on, but for the one at `except`. The folder is locked by the
/// caller.
pub(super) fn living<S: Adjustable>(
    folder: &Path,
    except: Option<&Path>,
) -> io::Result<Vec<SavedJournal<S>>> {
    others(folder, except, false)
}

/// The journals in the folder but for the one at `except`, those of runs that have ended only if
/// `dead` is true, and those of runs with other folders. The folder is locked by the caller.
pub(super) fn others<S: Adjustable>(
    folder: &Path,
    except: Option<&Path>,
    dead: bool,
) -> io::Result<Vec<SavedJournal<S>>> {
    let mut others = here(folder, except, dead)?;
    others.extend(of_others(folder));
    Ok(others)
}

/// The same without those of other folders. What is no file of this user's or root's is none of
/// them.
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
        let is_wanted = match held(&path) {
            Ok(held) => dead || held.is_none(),
            // Said by who puts back.
            Err(_) => continue,
        };
        if is_wanted {
            let file = state::open_file(&path, state::file().read(true))?;
            here.push(read(path, file)?);
        }
    }
    Ok(here)
}

/// The journals of runs that go on and have another folder than this. One that cannot be read is
/// none.
pub(super) fn of_others<S: Adjustable>(folder: &Path) -> Vec<SavedJournal<S>> {
    if !S::OF_MACHINE {
        return Vec::new();
    }
    let boot = boot().ok();
    let all = elsewhere::held(folder, "journal").into_iter();
    let all = all.filter_map(|held| read(held.path.clone(), held.open().ok()?).ok());
    // Others name their files so, too.
    all.filter(|journal: &SavedJournal<S>| journal.boot == boot)
        .collect()
}

/// Puts back what dead runs have left, and removes their journals and locks. The folder is locked
/// by the caller. What is wrong with one journal keeps none of the others from being put back.
pub(super) fn dead<S: Adjustable>(folder: &Path) -> io::Result<Vec<Restoration<S>>> {
    let boot = boot()?;
    // Before this one holds the dead ones' files itself.
    let living = living(folder, None)?;
    let mut dead: Vec<SavedJournal<S>> = Vec::new();
    let mut restorations = Vec::new();
    for path in state::files(folder, "journal")? {
        let opened = held(&path).and_then(|held| {
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
                trouble: vec![format!("the journal {}: {error}", path.display())],
            }),
        }
    }
    for journal in &dead {
        // Of an earlier boot nothing is left, and its threads' and interfaces' numbers may be
        // others' now.
        let earlier = journal.boot.as_ref().is_some_and(|its| *its != boot);
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
                "the journal {} has lines that cannot be read ({}), so that what they tell of is left as it is: look at it, and remove it when all is as it should be",
                journal.path.display(),
                restoration.unreadable
            ));
        }
        if restoration.is_put_back() {
            restoration.trouble.extend(removed(&journal.path).err());
        }
        restorations.push(restoration);
    }
    for path in state::files(folder, "lock")? {
        if matches!(held(&path), Ok(Some(_))) {
            // Nobody has it any longer, so nobody minds.
            let _ = removed(&path);
        }
    }
    Ok(restorations)
}

fn of<'a, S: Adjustable>(
    journals: &'a [SavedJournal<S>],
    setting: &'a S,
) -> impl Iterator<Item = &'a Entry<S>> {
    journals
        .iter()
        .flat_map(|journal| &journal.entries)
        .filter(move |entry| entry.setting == *setting)
}

/// Puts `entries` back, the last first. `dead` are the journals of other runs that have ended,
/// `living` of those that go on.
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
    let mine =
        ours.contains(&current) || of(dead, setting).any(|other| other.ours.contains(&current));
    if let Some(other) = of(living, setting).next() {
        // It knows the values that were recorded when it began, and would take a later one for
        // somebody else's.
        if let Some(its) = other
            .ours
            .last()
            .filter(|_| mine && !other.ours.contains(&current))
        {
            setting.apply(its)?;
        }
        if other.before != *before && ours.contains(&other.before) {
            // It began in another folder, and did not know of this one.
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
