// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of the state: nobody else may read or change what stands in it, and nobody is waited
//! for without an end.
//!
//! What stands there is carried out with all rights of this process: settings are put back,
//! processes are told to end. So nobody else may write to the folder, and none of the folders above
//! lets others put another in its place.
//!
//! And who may open a file may lock it, and so keep a run from its own journal: the files are this
//! user's alone. That the folder is, too, would not be enough for it to be locked itself: who has
//! opened it before it was closed to others goes on to have it. Nor is a folder that is there
//! already closed to others: it need not be Weir's, since anybody may mistype its name.
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;

use super::elsewhere;

/// For so long another process may have the folder: one that ends puts back some tens of settings,
/// for which drivers take their time.
pub(super) const PATIENCE: Duration = if cfg!(test) {
    Duration::from_millis(300)
} else {
    Duration::from_secs(10)
};

/// The file that whoever looks at the folder or changes it has locked meanwhile.
pub(super) const ALONE: &str = "weir.alone";

pub(super) const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;
/// Who may write to such a folder may not rename or remove what belongs to others there.
const STICKY: u32 = 0o1000;

fn untrusted(message: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, message)
}

/// Whether files of this user can be trusted: they are this process's own, or root's.
pub(super) fn is_ours(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

/// Makes the folder, for its owner alone, if it is not there.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AlreadyExists => "it is there, and is no folder".to_owned(),
            _ => format!("it is not there, and no such folder can be made: {error}"),
        };
        io::Error::new(error.kind(), format!("{why}; --state takes another one"))
    })
}

/// Opens the folder, if what stands there can be trusted. Nothing of it is changed.
///
/// # Errors
/// `NotFound` when it is not there; `PermissionDenied` when somebody else could have written what
/// stands there, or can put another folder in its place.
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

/// Whether nobody else can put another folder in the place of `folder`: neither in a folder above
/// it nor by a link on the way.
fn is_in_place(folder: &Path) -> io::Result<()> {
    let stated = std::path::absolute(folder)?;
    let real = fs::canonicalize(folder)?;
    let above: Vec<&Path> = stated
        .ancestors()
        .skip(1)
        .chain(real.ancestors().skip(1))
        .collect();
    for above in above {
        let (link, there) = (fs::symlink_metadata(above)?, fs::metadata(above)?);
        let owner = [link.uid(), there.uid()]
            .into_iter()
            .find(|user| !is_ours(*user));
        if let Some(owner) = owner {
            return Err(untrusted(format!(
                "{} above it belongs to user {owner}, who could put another folder in its place: take one below folders of root or of your own",
                above.display()
            )));
        }
        if there.mode() & OTHERS_WRITE != 0 && there.mode() & STICKY == 0 {
            return Err(untrusted(format!(
                "others may write to {} above it (its mode is {:04o}), and could put another folder in its place: take one elsewhere, or `chmod go-w` that",
                above.display(),
                there.mode() & 0o7777
            )));
        }
    }
    Ok(())
}

/// How a file of the folder is made: for its owner alone.
pub fn file() -> OpenOptions {
    let mut options = OpenOptions::new();
    // What is no file of ours is not waited for.
    options
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

/// Opens a file of the folder as `options` say, if it is a file and this user's or root's.
///
/// # Errors
/// `PermissionDenied` for anything else.
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
/// As [`open_file`], and when it cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut open_file(path, file().read(true))?, &mut bytes)?;
    Ok(bytes)
}

/// The files of the folder with this ending, in the order of their names.
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

/// That no other run looks at the folder or changes it, until this is dropped.
#[derive(Debug)]
pub(super) struct Alone {
    folder: File,
    path: PathBuf,
    _lock: Flock<File>,
}

impl Alone {
    /// Waits until the names of the folder's files are on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.folder.sync_all()
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        // Not while there are journals: a disk may have no room for it when these are put back.
        let is_last = self
            .path
            .parent()
            .is_some_and(|folder| files(folder, "journal").is_ok_and(|all| all.is_empty()));
        if is_last {
            // Whoever waits for it sees that it has gone, and makes another. One that stays is in
            // nobody's way.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Waits until no other run looks at the folder or changes it.
///
/// # Errors
/// As [`open`]; `TimedOut` when another process has it for longer than a run ever does.
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
            // The last one has removed it meanwhile.
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

/// Locks `file` until it is closed, which the end of the process does too.
///
/// # Errors
/// `WouldBlock` when a living process has it.
pub(super) fn lock(file: File) -> io::Result<Flock<File>> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| match error {
        Errno::EWOULDBLOCK => ErrorKind::WouldBlock.into(),
        error => error.into(),
    })
}
