// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of the state: journals, locks, and the files of runs. No other user may read or
//! change its content, and no operation waits for another process without a limit.
//!
//! The content of the folder is acted on with all rights of this process: settings are restored,
//! and processes are asked to end. So nobody else may be able to write to the folder, or to replace
//! it by changing one of the folders above it.
//!
//! Whoever can open a file can lock it, and so keep a run from its own journal. That is why only
//! this user can read the files. Closing the folder to others would not be enough, since a process
//! that opened it before still has access. Weir does not change the permissions of an existing
//! folder, either. That folder may have nothing to do with Weir, if the user has mistyped its name.
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;

use super::elsewhere;
use super::trust::is_ours;

/// Longest time for which another process may lock the folder. A run that ends restores some tens
/// of settings, and drivers take their time.
pub(super) const PATIENCE: Duration = if cfg!(test) {
    Duration::from_millis(300)
} else {
    Duration::from_secs(10)
};

/// Name of the file that a process locks while it reads or changes the folder.
pub(super) const ALONE: &str = "weir.alone";

const OTHERS_WRITE: u32 = 0o022;
/// With this bit, other users may create files in a folder, but not rename or remove the files of
/// this user.
const STICKY: u32 = 0o1000;

fn untrusted(message: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, message)
}

/// Creates the folder, accessible only to its owner, if it does not exist.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AlreadyExists => "it is no folder".to_owned(),
            _ => format!("it does not exist, and cannot be created: {error}"),
        };
        io::Error::new(error.kind(), format!("{why}; --state takes another one"))
    })
}

/// Opens the folder if its content can be trusted. Changes nothing.
///
/// # Errors
/// Fails with `NotFound` when the folder does not exist. Fails with `PermissionDenied` when
/// somebody else could have written its content, or can replace the folder.
pub fn open(folder: &Path) -> io::Result<File> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(folder)?;
    let about = opened.metadata()?;
    if about.uid() != geteuid().as_raw() {
        return Err(untrusted(format!(
            "the folder belongs to user {}, and this is user {}: take a folder of your own, or run it as that user",
            about.uid(),
            geteuid()
        )));
    }
    if about.mode() & OTHERS_WRITE != 0 {
        return Err(untrusted(format!(
            "others may write to the folder (its mode is {:04o}), so what stands there may be theirs: look at it, remove what is not Weir's, and `chmod 700` it",
            about.mode() & 0o7777
        )));
    }
    is_in_place(folder)?;
    Ok(opened)
}

/// Fails if somebody else can replace `folder`, through a folder above it or through a link on the
/// path.
fn is_in_place(folder: &Path) -> io::Result<()> {
    let stated = std::path::absolute(folder)?;
    let real = fs::canonicalize(folder)?;
    let above: Vec<&Path> = stated
        .ancestors()
        .skip(1)
        .chain(real.ancestors().skip(1))
        .collect();
    for above in above {
        let (link, target) = (fs::symlink_metadata(above)?, fs::metadata(above)?);
        let owner = [link.uid(), target.uid()]
            .into_iter()
            .find(|user| !is_ours(*user));
        if let Some(owner) = owner {
            return Err(untrusted(format!(
                "{} above it belongs to user {owner}, who could put another folder in its place: take one below folders of root or of your own",
                above.display()
            )));
        }
        if target.mode() & OTHERS_WRITE != 0 && target.mode() & STICKY == 0 {
            return Err(untrusted(format!(
                "others may write to {} above it (its mode is {:04o}), and could put another folder in its place: take one elsewhere, or `chmod go-w` that",
                above.display(),
                target.mode() & 0o7777
            )));
        }
    }
    Ok(())
}

/// Options with which files of the folder are created, accessible only to their owner.
pub fn file() -> OpenOptions {
    let mut options = OpenOptions::new();
    // Opening a path that is not a regular file must not block.
    options
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

/// Opens a file of the folder with `options`, if it is a regular file and belongs to this user or
/// to root.
///
/// # Errors
/// Fails with `PermissionDenied` for anything else.
pub fn open_file(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let opened = options.open(path)?;
    let about = opened.metadata()?;
    if about.is_file() && is_ours(about.uid()) && about.mode() & OTHERS_WRITE == 0 {
        return Ok(opened);
    }
    Err(untrusted(format!(
        "it is no file that only this user may write to (user {}, mode {:04o}), so it is left alone: look at it, and remove it if it is not yours",
        about.uid(),
        about.mode() & 0o7777
    )))
}

/// Reads a file of the folder.
///
/// # Errors
/// Fails as [`open_file`] does, or when the file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut open_file(path, file().read(true))?, &mut bytes)?;
    Ok(bytes)
}

/// Paths of the files in the folder with this ending, in the order of their names.
pub(super) fn files(folder: &Path, ending: &str) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == ending)
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The exclusive right to use the folder. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Alone {
    folder: File,
    path: PathBuf,
    _lock: Flock<File>,
}

impl Alone {
    /// Waits until the directory entries of the folder's files are on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.folder.sync_all()
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        // The lock file stays while there are journals. When they are restored, the disk may have
        // no room to create it again.
        let is_last = self
            .path
            .parent()
            .is_some_and(|folder| files(folder, "journal").is_ok_and(|all| all.is_empty()));
        if is_last {
            // A process that waits for the lock notices that the file is gone, and creates another.
            // If the file cannot be removed, it does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Waits until no other run uses the folder, and locks it.
///
/// # Errors
/// Fails as [`open`] does. Fails with `TimedOut` when another process has locked the folder for
/// longer than any run needs.
pub(super) fn alone(folder: &Path) -> io::Result<Alone> {
    let opened = open(folder)?;
    let path = folder.join(ALONE);
    let mut options = file();
    options.read(true).write(true).create(true);
    let until = Instant::now() + PATIENCE;
    loop {
        let file = open_file(&path, &options)
            .map_err(|error| io::Error::new(error.kind(), format!("{ALONE} there: {error}")))?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) if lock.metadata()?.nlink() > 0 => {
                return Ok(Alone {
                    folder: opened,
                    path,
                    _lock: lock,
                });
            }
            // The previous holder of the lock has removed the file meanwhile.
            Ok(_) => continue,
            Err((_, Errno::EWOULDBLOCK)) if Instant::now() < until => {}
            Err((back, Errno::EWOULDBLOCK)) => {
                let holder = elsewhere::holder(&back).map_or_else(
                    || "a process".to_owned(),
                    |holder| format!("the process {holder}"),
                );
                return Err(io::Error::new(
                    ErrorKind::TimedOut,
                    format!(
                        "{holder} has locked {ALONE} there for {} s, which no run of Weir does: end it, and try again",
                        PATIENCE.as_secs_f64()
                    ),
                ));
            }
            Err((_, error)) => return Err(error.into()),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Locks `file`. The lock ends when the file is closed, or when the process ends.
///
/// # Errors
/// Fails with `WouldBlock` when a living process has the lock.
pub(super) fn lock(file: File) -> io::Result<Flock<File>> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| match error {
        Errno::EWOULDBLOCK => ErrorKind::WouldBlock.into(),
        error => error.into(),
    })
}
