// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs whose state is in another folder (`--state`): they set the same machine. They are found by
//! the locks that they hold, which the kernel lists, and their journals are read through their
//! descriptors; so no place has to be agreed upon, and other mount namespaces hide none.
//!
//! A process is believed only what stands in a file that belongs to this user or to root, and that
//! nobody else may open.
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process;

use super::state;

/// A file that another process has locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockedFile {
    pub pid: u32,
    /// Its name, where that process has it.
    pub name: String,
    /// Where it can be opened.
    pub path: PathBuf,
}

impl LockedFile {
    /// Opens it, if the process still has there what is believed: another file would be read, and
    /// a pipe be waited for.
    pub(super) fn open(&self) -> io::Result<File> {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&self.path)?;
        if is_believed(&opened.metadata()?) {
            Ok(opened)
        } else {
            Err(ErrorKind::PermissionDenied.into())
        }
    }
}

fn is_believed(file: &Metadata) -> bool {
    file.is_file() && state::is_ours(file.uid()) && file.mode() & state::OTHERS == 0
}

/// The files that are locked as a whole (flock), by their numbers, and by whom; only of processes
/// that this one's /proc shows.
fn locked() -> BTreeMap<u32, BTreeSet<u64>> {
    let mut locked: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    // Without such a list no others are known.
    let text = fs::read_to_string("/proc/locks").unwrap_or_default();
    for line in text.lines() {
        let Some((pid, inode)) = lock_of(line) else {
            continue;
        };
        locked.entry(pid).or_default().insert(inode);
    }
    locked
}

/// Of a line as `1: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF`: the process and the file's
/// number.
fn lock_of(line: &str) -> Option<(u32, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    // One that waits has an arrow before its kind.
    let ["FLOCK", "ADVISORY", "WRITE", pid, file] = words.get(1..6)? else {
        return None;
    };
    Some((pid.parse().ok()?, file.rsplit(':').next()?.parse().ok()?))
}

/// A process that has locked `file`; none if /proc does not show it.
///
/// That is who has it open so, and not whom the kernel's list names: the program that locked it for
/// others may have ended.
pub(super) fn holder(file: &File) -> Option<u32> {
    let about = file.metadata().ok()?;
    let has_it = |descriptor: PathBuf| {
        let is_it = fs::metadata(&descriptor)
            .is_ok_and(|its| (its.dev(), its.ino()) == (about.dev(), about.ino()));
        is_it && locks(&descriptor)
    };
    let entries = fs::read_dir("/proc").ok()?;
    let mut processes =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    processes.find(|pid| descriptors(*pid).any(has_it))
}

/// Whether a file is locked as a whole by this descriptor (/proc/PID/fd/N).
fn locks(descriptor: &Path) -> bool {
    let of_it = || {
        let folder = descriptor.parent()?.with_file_name("fdinfo");
        let text = fs::read_to_string(folder.join(descriptor.file_name()?)).ok()?;
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("lock:"));
        lines.find_map(lock_of)
    };
    of_it().is_some()
}

/// What a process has open; nothing if that may not be looked at: then it is another user's.
fn descriptors(pid: u32) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path()))
}

/// The files with this ending that other processes have locked, but for those in `folder`.
pub(super) fn held(folder: &Path, ending: &str) -> Vec<LockedFile> {
    let here: BTreeSet<(u64, u64)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .map(|about| (about.dev(), about.ino()))
        .collect();
    let mut held = Vec::new();
    for (pid, files) in locked() {
        if pid == process::id() {
            continue;
        }
        for path in descriptors(pid) {
            let Some(name) = name_of(&path, ending) else {
                continue;
            };
            let is_one = fs::metadata(&path).is_ok_and(|about| {
                files.contains(&about.ino())
                    && !here.contains(&(about.dev(), about.ino()))
                    && is_believed(&about)
            });
            if is_one {
                held.push(LockedFile { pid, name, path });
            }
        }
    }
    held
}

/// The name of the file that this descriptor is of, if it has that ending.
fn name_of(descriptor: &Path, ending: &str) -> Option<String> {
    let target = fs::read_link(descriptor).ok()?;
    let is_it = target.extension().is_some_and(|its| its == ending);
    let name = target.file_name()?.to_str()?;
    is_it.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_read_as_the_kernel_lists_them() {
        for (line, found) in [
            (
                "1: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF",
                Some((4711, 1234)),
            ),
            ("1: -> FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF", None),
            ("2: POSIX  ADVISORY  WRITE 4711 fe:01:99 0 EOF", None),
            ("3: FLOCK  ADVISORY  READ 4711 fe:01:99 0 EOF", None),
            ("", None),
        ] {
            assert_eq!(lock_of(line), found, "{line}");
        }
    }

    #[test]
    fn the_holder_of_a_lock_is_found() {
        let file = tempfile::tempfile().unwrap();
        let held = super::super::state::lock(file.try_clone().unwrap()).unwrap();
        // A sandbox may list none.
        if let Some(pid) = holder(&file) {
            assert_eq!(pid, process::id());
        }
        drop(held);
    }
}
