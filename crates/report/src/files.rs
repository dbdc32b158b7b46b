// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes results whole or not at all.
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::temporary::{Temporary, uninterrupted};
use crate::terminal::printable;

/// A file cannot be written. Then no file of its group has changed, unless the error came when the
/// finished files took their names.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}", printable(path))]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// What the system says.
    pub cause: io::Error,
}

impl WriteError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self { path, cause }
    }
}

/// A file that is written in pieces and takes its name when it is complete. If it is dropped
/// before, it is removed, and the earlier file of that name is still there.
///
/// A device or a pipe is written as it is.
#[derive(Debug)]
pub struct UnfinishedFile {
    file: File,
    target: PathBuf,
    /// The file that is written; none: the target itself is written.
    temporary: Option<Temporary>,
}

impl UnfinishedFile {
    /// Creates the file, and its folder if that is missing.
    ///
    /// # Errors
    /// Fails if the folder cannot be created or written to, or if the target is a folder.
    pub fn create(target: &Path) -> Result<Self, WriteError> {
        std::fs::create_dir_all(folder_of(target))
            .and_then(|()| Self::create_in_folder(target))
            .map_err(WriteError::at(target))
    }

    fn create_in_folder(target: &Path) -> io::Result<Self> {
        let unnamed = || io::Error::new(io::ErrorKind::InvalidInput, "it is no name of a file");
        let name = target.file_name().ok_or_else(unnamed)?;
        let (file, temporary) = match std::fs::metadata(target) {
            Ok(is) if is.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(is) if !is.is_file() => (File::options().write(true).open(target)?, None),
            _ => {
                let prefix = format!(".{}.", name.to_string_lossy());
                let (file, temporary) = Temporary::file_in(folder_of(target), &prefix)?;
                (file, Some(temporary))
            }
        };
        Ok(Self {
            file,
            target: target.to_owned(),
            temporary,
        })
    }

    /// Path that the complete file will have.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Flushes the complete file to the disk and gives it its name.
    ///
    /// # Errors
    /// Fails if the disk is full, for example. Then nothing has changed.
    pub fn finish(self) -> Result<(), WriteError> {
        finish_all(&[self])
    }

    fn seal(&self) -> io::Result<()> {
        if self.temporary.is_none() {
            return Ok(());
        }
        // A temporary file is its owner's alone; a result is as readable as any other file.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let readable = std::fs::Permissions::from_mode(0o644);
            self.file.set_permissions(readable)?;
        }
        self.file.sync_all()
    }
}

impl Write for UnfinishedFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.file.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Gives the complete files of a folder their names, one after the other.
fn finish_all(files: &[UnfinishedFile]) -> Result<(), WriteError> {
    for file in files {
        file.seal().map_err(WriteError::at(&file.target))?;
    }
    uninterrupted(|| {
        for file in files {
            if let Some(temporary) = &file.temporary {
                std::fs::rename(temporary.path(), &file.target)
                    .map_err(WriteError::at(&file.target))?;
            }
        }
        Ok(())
    })?;
    // The names are safe only once the folder itself is on the disk. Not every file system can do
    // that.
    let folder = files
        .first()
        .map(|file| File::open(folder_of(&file.target)));
    if let Some(Ok(folder)) = folder {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Writes a group of files of one folder, which is made if it is missing. Each is written beside
/// its place, flushed to the disk, and takes its name only when all of the group are complete.
///
/// # Errors
/// Fails if the folder cannot be created or the disk is full. Then no file has changed, and nothing
/// else is left behind.
pub fn write_all(folder: &Path, files: &[(&str, &[u8])]) -> Result<Vec<PathBuf>, WriteError> {
    std::fs::create_dir_all(folder).map_err(WriteError::at(folder))?;
    let mut written = Vec::with_capacity(files.len());
    for (name, content) in files {
        let target = folder.join(name);
        let mut file =
            UnfinishedFile::create_in_folder(&target).map_err(WriteError::at(&target))?;
        file.write_all(content).map_err(WriteError::at(&target))?;
        written.push(file);
    }
    finish_all(&written)?;
    Ok(written.into_iter().map(|file| file.target).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_group_is_written_into_a_new_folder_and_over_old_files() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("results/regehr2005");
        write_all(&folder, &[("fig1.json", b"old"), ("fig1.svg", b"old")]).unwrap();
        let places = write_all(&folder, &[("fig1.json", b"{}"), ("fig1.svg", b"<svg/>")]).unwrap();
        assert_eq!(names(&folder), ["fig1.json", "fig1.svg"]);
        assert_eq!(std::fs::read(&places[0]).unwrap(), b"{}");
        assert_eq!(std::fs::read(&places[1]).unwrap(), b"<svg/>");
    }

    #[test]
    fn if_one_of_a_group_cannot_be_written_none_is_changed() {
        let root = tempfile::tempdir().unwrap();
        write_all(root.path(), &[("a", b"old")]).unwrap();
        let error = write_all(root.path(), &[("a", b"new"), ("missing/b", b"new")]).unwrap_err();
        assert!(error.to_string().contains("missing/b"), "{error}");
        assert_eq!(names(root.path()), ["a"]);
        assert_eq!(std::fs::read(root.path().join("a")).unwrap(), b"old");
    }

    #[test]
    fn what_is_not_finished_leaves_no_trace() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("new/out.perfetto");
        let mut file = UnfinishedFile::create(&target).unwrap();
        file.write_all(b"half").unwrap();
        assert!(!target.exists());
        drop(file);
        assert_eq!(names(target.parent().unwrap()).len(), 0);
        let mut file = UnfinishedFile::create(&target).unwrap();
        file.write_all(b"all of it").unwrap();
        file.finish().unwrap();
        assert_eq!(names(target.parent().unwrap()), ["out.perfetto"]);
        assert_eq!(std::fs::read(&target).unwrap(), b"all of it");
    }

    #[test]
    fn a_folder_is_no_file_to_be_written() {
        let root = tempfile::tempdir().unwrap();
        let error = UnfinishedFile::create(root.path()).unwrap_err().to_string();
        assert!(error.starts_with("cannot write"), "{error}");
        assert_eq!(names(root.path()).len(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_stays_one_and_says_that_it_is_full() {
        let full = Path::new("/dev/full");
        let mut file = UnfinishedFile::create(full).unwrap();
        assert!(file.write_all(b"x").is_err());
        assert!(!std::fs::metadata(full).unwrap().is_file());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let root = tempfile::tempdir().unwrap();
        let blocked = root.path().join("blocked");
        std::fs::write(&blocked, "a file").unwrap();
        let error = write_all(&blocked.join("results"), &[("a", b"new")]).unwrap_err();
        assert!(error.to_string().contains("blocked"), "{error}");
    }
}
