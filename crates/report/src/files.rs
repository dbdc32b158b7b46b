// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes result files completely or not at all.
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::temporary::{Temporary, uninterrupted};
use crate::terminal::printable;

/// A file cannot be written. No file of its group has changed, unless the error occurred while the
/// finished files were renamed.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}", printable(path))]
pub struct WriteError {
    /// The path of the file.
    pub path: PathBuf,
    /// The error of the operating system.
    pub cause: io::Error,
}

impl WriteError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self { path, cause }
    }
}

/// The path of a file that the command may write. [`Outputs`](crate::Outputs) has checked the path.
#[derive(Debug)]
pub struct Place {
    /// The path as the user wrote it.
    path: PathBuf,
    /// The path with symbolic links resolved, because renaming a file onto a link would replace the
    /// link.
    resolved: PathBuf,
    is_device: bool,
    is_program: bool,
    /// The metadata of the existing file when the path was checked. `None` if there was no file.
    found: Option<Metadata>,
}

impl Place {
    pub(crate) fn at(path: &Path, resolved: PathBuf) -> Self {
        Self {
            path: path.to_owned(),
            found: std::fs::metadata(&resolved).ok(),
            resolved,
            is_device: false,
            is_program: false,
        }
    }

    /// Makes a place for a device or a pipe, which is written directly.
    pub(crate) fn device(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            resolved: path.to_owned(),
            is_device: true,
            is_program: false,
            found: None,
        }
    }

    /// Marks the file as a program that every user may execute.
    #[must_use]
    pub fn for_program(mut self) -> Self {
        self.is_program = true;
        self
    }

    /// Returns the path of the file as the user wrote it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path with symbolic links resolved.
    #[must_use]
    pub fn resolved(&self) -> &Path {
        &self.resolved
    }

    /// Returns whether the place is a device or a pipe.
    #[must_use]
    pub fn is_device(&self) -> bool {
        self.is_device
    }

    /// Begins the file. Its folder is created if it is missing and the user asked for it.
    ///
    /// # Errors
    /// Fails if the folder cannot be created or written to.
    pub fn create(self) -> Result<UnfinishedFile, WriteError> {
        let begun = if self.is_device {
            let file = File::options().write(true).open(&self.resolved);
            file.map(|file| (file, None))
        } else {
            self.begin().map(|(file, of)| (file, Some(of)))
        };
        let (file, temporary) = begun.map_err(WriteError::at(&self.path))?;
        Ok(UnfinishedFile {
            file,
            place: self,
            temporary,
        })
    }

    fn begin(&self) -> io::Result<(File, Temporary)> {
        let folder = folder_of(&self.resolved);
        std::fs::create_dir_all(folder)?;
        let name = self.resolved.file_name().unwrap_or_default();
        Temporary::file_in(folder, &format!(".{}.", name.to_string_lossy()))
    }

    /// Renames the complete file at `from` to this place.
    ///
    /// # Errors
    /// Fails if another file has appeared there since the path was checked.
    pub fn take(&self, from: &Path) -> Result<(), WriteError> {
        let now = std::fs::metadata(&self.resolved).ok();
        let version = |of: &Metadata| (of.len(), of.modified().ok());
        if now.as_ref().map(version) != self.found.as_ref().map(version) {
            let cause = io::Error::other("somebody else has written it meanwhile");
            return Err(WriteError::at(&self.path)(cause));
        }
        std::fs::rename(from, &self.resolved).map_err(WriteError::at(&self.path))
    }
}

/// A file that is written in pieces and renamed to its final path when it is complete. If this
/// value is dropped earlier, the partial file is removed and an existing file is kept.
///
/// A device or a pipe, which is written directly.
#[derive(Debug)]
pub struct UnfinishedFile {
    file: File,
    place: Place,
    /// The temporary file that is written. `None` if the target itself is written.
    temporary: Option<Temporary>,
}

impl UnfinishedFile {
    /// Returns the path that the complete file will have, as the user wrote it.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.place.path
    }

    /// Flushes the complete file to the disk and renames it to its final path.
    ///
    /// # Errors
    /// Fails if the disk is full, for example. In that case nothing has changed.
    pub fn finish(self) -> Result<(), WriteError> {
        finish_all(&[self])
    }

    fn seal(&self) -> io::Result<()> {
        if self.temporary.is_none() {
            return Ok(());
        }
        // A temporary file is readable by its owner only. A result gets the permissions of the file
        // that it replaces, or the default permissions.
        let found = self.place.found.as_ref().map(Metadata::permissions);
        if let Some(found) = found.filter(|_| !self.place.is_program) {
            self.file.set_permissions(found)?;
        } else {
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let mode = if self.place.is_program { 0o755 } else { 0o644 };
                self.file
                    .set_permissions(std::fs::Permissions::from_mode(mode))?;
            }
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

/// Renames the complete files of a folder to their final paths, one after the other.
fn finish_all(files: &[UnfinishedFile]) -> Result<(), WriteError> {
    for file in files {
        file.seal().map_err(WriteError::at(file.target()))?;
    }
    uninterrupted(|| {
        for file in files {
            if let Some(temporary) = &file.temporary {
                file.place.take(temporary.path())?;
            }
        }
        Ok(())
    })?;
    // The new names are durable only after the folder itself has been flushed to the disk. Not
    // every file system supports that.
    let folder = files
        .first()
        .map(|file| File::open(folder_of(&file.place.resolved)));
    if let Some(Ok(folder)) = folder {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Writes a group of files in one folder. Each file is written under a temporary name and flushed
/// to the disk. The files are renamed only when the whole group is complete.
///
/// # Errors
/// Fails if a folder cannot be created or the disk is full. In that case no file has changed, and
/// no temporary file is left.
pub fn write_all<'a>(
    files: impl IntoIterator<Item = (Place, &'a [u8])>,
) -> Result<Vec<PathBuf>, WriteError> {
    let mut written = Vec::new();
    for (place, content) in files {
        let mut file = place.create()?;
        file.write_all(content)
            .map_err(WriteError::at(file.target()))?;
        written.push(file);
    }
    finish_all(&written)?;
    let path = |file: UnfinishedFile| file.place.path;
    Ok(written.into_iter().map(path).collect())
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

    fn place(path: &Path) -> Place {
        Place::at(path, path.to_owned())
    }

    fn group(folder: &Path, files: &[(&str, &str)]) -> Result<Vec<PathBuf>, WriteError> {
        let place = |name: &str| place(&folder.join(name));
        write_all(
            files
                .iter()
                .map(|(name, text)| (place(name), text.as_bytes())),
        )
    }

    #[test]
    fn a_group_is_written_into_a_new_folder_and_over_old_files() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("results/regehr2005");
        group(&folder, &[("fig1.json", "old"), ("fig1.svg", "old")]).unwrap();
        let places = group(&folder, &[("fig1.json", "{}"), ("fig1.svg", "<svg/>")]).unwrap();
        assert_eq!(names(&folder), ["fig1.json", "fig1.svg"]);
        assert_eq!(std::fs::read(&places[0]).unwrap(), b"{}");
        assert_eq!(std::fs::read(&places[1]).unwrap(), b"<svg/>");
    }

    #[test]
    fn if_one_of_a_group_cannot_be_written_none_is_changed() {
        let root = tempfile::tempdir().unwrap();
        group(root.path(), &[("a", "old")]).unwrap();
        let error = group(root.path(), &[("a", "new"), ("a/b", "new")]).unwrap_err();
        assert!(error.to_string().contains("a/b"), "{error}");
        assert_eq!(names(root.path()), ["a"]);
        assert_eq!(std::fs::read(root.path().join("a")).unwrap(), b"old");
    }

    #[test]
    fn what_is_not_finished_leaves_no_trace() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("out.perfetto");
        let begin = || place(&target).create().unwrap();
        let mut file = begin();
        file.write_all(b"half").unwrap();
        assert!(!target.exists());
        drop(file);
        assert_eq!(names(root.path()).len(), 0);
        let mut file = begin();
        file.write_all(b"all of it").unwrap();
        file.finish().unwrap();
        assert_eq!(names(root.path()), ["out.perfetto"]);
        assert_eq!(std::fs::read(&target).unwrap(), b"all of it");
    }

    #[test]
    fn what_somebody_else_has_put_there_meanwhile_stays() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("out.svg");
        for text in ["theirs", "theirs again"] {
            let file = place(&target).create().unwrap();
            std::fs::write(&target, text).unwrap();
            let error = file.finish().unwrap_err().to_string();
            assert!(error.contains("meanwhile"), "{error}");
            assert_eq!(std::fs::read_to_string(&target).unwrap(), text);
            assert_eq!(names(root.path()), ["out.svg"]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_stays_as_private_as_it_was_unless_it_is_a_program() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        group(root.path(), &[("a", "new"), ("b", "new")]).unwrap();
        let mode = |name: &str| {
            let found = std::fs::metadata(root.path().join(name)).unwrap();
            found.permissions().mode() & 0o777
        };
        assert_eq!((mode("a"), mode("b")), (0o600, 0o644));
        let program = place(&path).for_program();
        write_all([(program, b"#!/bin/sh".as_slice())]).unwrap();
        assert_eq!(mode("a"), 0o755);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_stays_one_and_says_that_it_is_full() {
        let full = Path::new("/dev/full");
        let mut file = Place::device(full).create().unwrap();
        assert!(file.write_all(b"x").is_err());
        assert!(!std::fs::metadata(full).unwrap().is_file());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let root = tempfile::tempdir().unwrap();
        let blocked = root.path().join("blocked");
        std::fs::write(&blocked, "a file").unwrap();
        let error = group(&blocked.join("results"), &[("a", "new")]).unwrap_err();
        assert!(error.to_string().contains("blocked"), "{error}");
    }
}
