// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs whose state is in another folder (`--state`) and that change the same machine. They are
//! found by their locks, which the kernel lists, and their journals are read through their
//! descriptors. So no common folder is needed, and other mount namespaces hide no run.
//!
//! A file of another process is trusted only if it belongs to this user or to root, and nobody else
//! may open it.
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process;

use super::trust::{OTHERS, is_ours};

/// A file that another process has locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockedFile {
    pub pid: u32,
    /// Name of the file in that process.
    pub name: String,
    /// Path at which it can be opened.
    pub path: PathBuf,
}

impl LockedFile {
    /// Opens the file, if the process still has the same file there: opening a pipe would block.
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
    file.is_file() && is_ours(file.uid()) && file.mode() & OTHERS == 0
}

/// Files that are locked as a whole (flock), by process. Only processes in this one's /proc are
/// included.
fn locked() -> BTreeMap<u32, BTreeSet<u64>> {
    let mut locked: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    // Without the list no other runs are known.
    let text = fs::read_to_string("/proc/locks").unwrap_or_default();
    for line in text.lines() {
        let Some((pid, inode)) = lock_of(line) else {
            continue;
        };
        locked.entry(pid).or_default().insert(inode);
    }
    locked
}

/// Parses a line such as `1: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF`: the process, and the
/// number of the file.
fn lock_of(line: &str) -> Option<(u32, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    // The line of a process that waits has an arrow before its kind.
    let ["FLOCK", "ADVISORY", "WRITE", pid, file] = words.get(1..6)? else {
        return None;
    };
    Some((pid.parse().ok()?, file.rsplit(':').next()?.parse().ok()?))
}

/// A process that holds the lock on `file`; none if /proc does not show it.
///
/// The holder is the process that has the file open with the lock. The kernel's list names the
/// process that locked it, which may have ended meanwhile.
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

/// Whether the descriptor (/proc/PID/fd/N) holds a lock on its whole file.
fn locks(descriptor: &Path) -> bool {
    let of_it = || {
        let folder = descriptor.parent()?.with_file_name("fdinfo");
        let text = fs::read_to_string(folder.join(descriptor.file_name()?)).ok()?;
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("lock:"));
        lines.find_map(lock_of)
    };
    of_it().is_some()
}

/// Descriptors of a process; empty if they may not be examined, since they are another user's.
fn descriptors(pid: u32) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path()))
}

/// Files with this ending that other processes have locked, except for those in `folder`.
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

/// Name of the descriptor's file, if it has that ending.
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
        // A sandbox may show no locks.
        if let Some(pid) = holder(&file) {
            assert_eq!(pid, process::id());
        }
        drop(held);
    }
}
