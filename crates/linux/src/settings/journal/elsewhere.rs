// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds runs that change the same machine but keep their state in another folder (`--state`). The
//! kernel lists the locks on their journals, and the journals are read through the descriptors of
//! their processes. So the runs need no common folder, and no mount namespace hides a run.
//!
//! A file of another process is trusted only if it belongs to this user or to root, and if nobody
//! else may open it.
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
    /// Name that the file has in that process.
    pub name: String,
    /// Path in /proc at which the file can be opened.
    pub path: PathBuf,
}

impl LockedFile {
    /// Opens the file, but only if the descriptor still belongs to the same file. Opening a pipe,
    /// for example, would block.
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

/// Numbers (inodes) of the files that are locked as a whole (flock), by process. Only processes
/// that this one's /proc shows are included.
fn locked() -> BTreeMap<u32, BTreeSet<u64>> {
    let mut locked: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    // If the list cannot be read, no other runs are known.
    let text = fs::read_to_string("/proc/locks").unwrap_or_default();
    for line in text.lines() {
        let Some((pid, inode)) = lock_of(line) else {
            continue;
        };
        locked.entry(pid).or_default().insert(inode);
    }
    locked
}

/// Parses a line such as `1: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF`. Returns the process and
/// the file's inode.
fn lock_of(line: &str) -> Option<(u32, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    // A line with an arrow before `FLOCK` is about a process that waits for the lock, and does not
    // match.
    let ["FLOCK", "ADVISORY", "WRITE", pid, file] = words.get(1..6)? else {
        return None;
    };
    Some((pid.parse().ok()?, file.rsplit(':').next()?.parse().ok()?))
}

/// Finds the process that holds the lock on `file`. `None` if /proc does not show such a process.
///
/// The holder is the process with the descriptor that has the lock. The kernel's list names the
/// process that took the lock, and that process may have ended meanwhile.
pub(super) fn holder(file: &File) -> Option<u32> {
    let about = file.metadata().ok()?;
    let has_it = |descriptor: PathBuf| {
        let is_it = fs::metadata(&descriptor)
            .is_ok_and(|other| (other.dev(), other.ino()) == (about.dev(), about.ino()));
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

/// Paths of the descriptors of a process. There are none if this process may not examine them,
/// since they belong to another user.
fn descriptors(pid: u32) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path()))
}

/// Finds the files with this ending that other processes have locked. Files in `folder` are left
/// out.
pub(super) fn locked_files(folder: &Path, ending: &str) -> Vec<LockedFile> {
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

/// Name of the descriptor's file. `None` if the name does not have this ending.
fn name_of(descriptor: &Path, ending: &str) -> Option<String> {
    let target = fs::read_link(descriptor).ok()?;
    let is_it = target
        .extension()
        .is_some_and(|extension| extension == ending);
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
        // A sandbox may hide the locks.
        if let Some(pid) = holder(&file) {
            assert_eq!(pid, process::id());
        }
        drop(held);
    }
}
