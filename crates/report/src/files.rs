// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes results whole or not at all.
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::temporary::{Temporary, uninterrupted};

/// A file that cannot be written. Nothing of the group it belongs to is changed, unless only the last step fails, in
/// which a written file takes its name.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// What the system says.
    #[source]
    pub cause: io::Error,
}

/// Writes a group of files of one folder, which is made if it is missing. Each is written beside its place, flushed to
/// the disk, and takes its name only when all of the group are complete.
///
/// # Errors
/// A folder that cannot be made, a full disk: no file has changed, and nothing else is left behind.
pub fn write_all(folder: &Path, files: &[(&str, &[u8])]) -> Result<Vec<PathBuf>, WriteError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |cause| WriteError { path, cause }
    };
    std::fs::create_dir_all(folder).map_err(fail(folder))?;
    let mut written = Vec::with_capacity(files.len());
    for (name, content) in files {
        let target = folder.join(name);
        let temporary = write_beside(folder, name, content).map_err(fail(&target))?;
        written.push((temporary, target));
    }
    let places = uninterrupted(|| {
        let mut places = Vec::with_capacity(written.len());
        for (temporary, target) in &written {
            std::fs::rename(temporary.path(), target).map_err(fail(target))?;
            places.push(target.clone());
        }
        Ok(places)
    })?;
    // The names are as safe as the contents only once the folder is on the disk too. Not every file system can do it.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(places)
}

fn write_beside(folder: &Path, name: &str, content: &[u8]) -> io::Result<Temporary> {
    let (mut file, temporary) = Temporary::file_in(folder, &format!(".{name}."))?;
    file.write_all(content)?;
    // A temporary file is its owner's alone; a result is as readable as any other file.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    file.sync_all()?;
    Ok(temporary)
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
    fn a_folder_that_cannot_be_made_is_named() {
        let root = tempfile::tempdir().unwrap();
        let blocked = root.path().join("blocked");
        std::fs::write(&blocked, "a file").unwrap();
        let error = write_all(&blocked.join("results"), &[("a", b"new")]).unwrap_err();
        assert!(error.to_string().contains("blocked"), "{error}");
    }
}
