// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rule for the files that a command writes. The command never writes a file that it reads. An
//! existing file is replaced only if a mark at its begin says that Weir wrote it, or with
//! `--force`. A missing folder is created only if the user named that folder as the output.
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use sha2::{Digest as _, Sha256};

use crate::files::{Place, WriteError};
use crate::terminal::printable;

/// The mark in the first line of each picture.
pub const PICTURE_MARK: &str = "<!-- Drawn by weir -->";
/// The mark at the begin of an experiment's results.
pub const RESULTS_MARK: &str = "\"written_by\": \"weir\"";
/// A mark must be within this many bytes from the begin of the file.
const BEGIN: u64 = 1024;

fn has_mark(file: &Path, mark: &str) -> io::Result<bool> {
    let mut begin = Vec::new();
    File::open(file)?.take(BEGIN).read_to_end(&mut begin)?;
    let text = String::from_utf8_lossy(&begin);
    // JSON opens with a brace on a line of its own, and a recording with the byte of a line's end.
    let rest = text.strip_prefix("{\n").or(text.strip_prefix('\n'));
    let first = rest.unwrap_or(&text).lines().next();
    Ok(first.is_some_and(|line| line.contains(mark)))
}

/// Adds the mark of pictures to the first line of `svg`.
#[must_use]
pub fn marked(svg: &str) -> String {
    svg.replacen('\n', &format!("{PICTURE_MARK}\n"), 1)
}

/// Returns the digest by which a file's content is recognised: the first eight bytes of the SHA-256
/// of `content`, in hexadecimal.
#[must_use]
pub fn checksum(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    let number = digest
        .iter()
        .take(8)
        .fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
    format!("{number:016x}")
}

/// Why a file is not written. In this case nothing has changed.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum OutputError {
    /// The command reads this file.
    #[error("cannot write {}: {}", printable(path), reads(path, input))]
    #[diagnostic(help("name another file for what is written"))]
    Input {
        /// The path as the user wrote it.
        path: PathBuf,
        /// The path of the same file as the user wrote it for reading.
        input: PathBuf,
    },
    /// The command already writes another output to this file.
    #[error(
        "cannot write {}: the same command writes something else to it",
        printable(path)
    )]
    #[diagnostic(help("name a file of its own for each"))]
    Twice {
        /// The path of the file.
        path: PathBuf,
    },
    /// Weir did not write the file, or somebody may have edited it.
    #[error("cannot write {}: it is there already", printable(path))]
    #[diagnostic(help("name another file, or say --force to replace it"))]
    NotOurs {
        /// The path of the file.
        path: PathBuf,
    },
    /// The path is that of a folder.
    #[error("cannot write {}: it names a folder", printable(path))]
    #[diagnostic(help("name a file"))]
    Folder {
        /// The path.
        path: PathBuf,
    },
    /// The path is `-`, which other commands understand as standard output.
    #[error("cannot write -: standard output is not written here")]
    #[diagnostic(help(
        "/dev/stdout is standard output where a stream is enough; ./- is a file of that name"
    ))]
    Dash,
    /// The path should be that of a folder and is not.
    #[error("cannot write into {}: it is no folder", printable(path))]
    #[diagnostic(help("name a folder"))]
    NoFolder {
        /// The path.
        path: PathBuf,
    },
    /// The parent folder of the file does not exist.
    #[error(
        "cannot write {}: the folder {} does not exist",
        printable(path),
        printable(folder)
    )]
    #[diagnostic(help("make the folder first, or name another"))]
    MissingFolder {
        /// The path of the file.
        path: PathBuf,
        /// The missing folder.
        folder: PathBuf,
    },
    /// The path is a symbolic link whose target does not exist.
    #[error(
        "cannot write {}: it is a link to a file that does not exist",
        printable(path)
    )]
    #[diagnostic(help("name the file itself"))]
    Dangling {
        /// The path of the link.
        path: PathBuf,
    },
    /// The operating system returned an error.
    #[error(transparent)]
    Write(#[from] WriteError),
}

fn reads(path: &Path, input: &Path) -> String {
    if path == input {
        "the same command reads it".to_owned()
    } else {
        format!("the same command reads it as {}", printable(input))
    }
}

/// A file that the command reads or writes.
#[derive(Debug)]
struct KnownFile {
    path: PathBuf,
    resolved: PathBuf,
    is_read: bool,
}

/// The files of one command: those that it reads and those that it will write.
#[derive(Debug)]
pub struct Outputs {
    force: bool,
    claimed: Vec<KnownFile>,
    /// Folders that the user named and that do not exist yet.
    folders: Vec<PathBuf>,
}

impl Outputs {
    /// Makes an empty set. With `force`, files that Weir did not write are replaced, too.
    #[must_use]
    pub fn new(force: bool) -> Self {
        Self {
            force,
            claimed: Vec::new(),
            folders: Vec::new(),
        }
    }

    /// Records that the command reads `path`.
    pub fn reads(&mut self, path: &Path) {
        self.claim(path, true);
    }

    fn claim(&mut self, path: &Path, is_read: bool) {
        self.claimed.push(KnownFile {
            path: path.to_owned(),
            resolved: resolved(path),
            is_read,
        });
    }

    /// Registers `path` as the folder for the command's output files. If it is missing, it is
    /// created with the first file. Folders above it are not created.
    ///
    /// # Errors
    /// Fails with [`OutputError`] if the path is not a folder, or if the folder above it is
    /// missing.
    pub fn folder(&mut self, path: &Path) -> Result<(), OutputError> {
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(OutputError::NoFolder {
                path: path.to_owned(),
            }),
            Err(cause) => {
                self.may_be_made(path, cause)?;
                self.folders.push(path.to_owned());
                Ok(())
            }
        }
    }

    /// Registers `path` as an output file. An existing file is replaced if it begins with `mark`.
    /// If `mark` is `None` (the format has no comments, or people edit the file), it is replaced
    /// only by force. A symbolic link is followed. A device or a pipe is written directly.
    ///
    /// # Errors
    /// Fails with [`OutputError`] according to the rule of this module.
    pub fn file(&mut self, path: &Path, mark: Option<&str>) -> Result<Place, OutputError> {
        self.file_if(path, |file| {
            mark.map_or(Ok(false), |mark| has_mark(file, mark))
        })
    }

    /// Does the same as [`Self::file`]. `is_ours` decides whether an existing file may be replaced.
    ///
    /// # Errors
    /// Fails with [`OutputError`] according to the rule of this module.
    pub fn file_if(
        &mut self,
        path: &Path,
        is_ours: impl FnOnce(&Path) -> io::Result<bool>,
    ) -> Result<Place, OutputError> {
        let failed = |cause| WriteError {
            path: path.to_owned(),
            cause,
        };
        if path == Path::new("-") {
            return Err(OutputError::Dash);
        }
        // A path with a trailing slash can only name a folder. The operating system would report
        // that, but `Path` removes the slash.
        let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        match std::fs::metadata(path) {
            found if is_folder || found.as_ref().is_ok_and(Metadata::is_dir) => {
                return Err(OutputError::Folder {
                    path: path.to_owned(),
                });
            }
            Ok(found) if !found.is_file() => return Ok(Place::device(path)),
            Ok(_) => {}
            Err(cause) => self.may_be_made(path, cause)?,
        }
        self.is_free(path)?;
        if path.exists() && !self.force && !is_ours(path).map_err(failed)? {
            return Err(OutputError::NotOurs {
                path: path.to_owned(),
            });
        }
        self.claim(path, false);
        Ok(Place::at(path, resolved(path)))
    }

    /// Registers the file `path`, which the command is meant to change in place.
    #[must_use]
    pub fn update(path: &Path) -> Place {
        Place::at(path, resolved(path))
    }

    fn is_free(&self, path: &Path) -> Result<(), OutputError> {
        let place = resolved(path);
        let same = |other: &&KnownFile| other.resolved == place || is_one_file(&other.path, path);
        match self.claimed.iter().find(same) {
            None => Ok(()),
            Some(other) if other.is_read => Err(OutputError::Input {
                path: path.to_owned(),
                input: other.path.clone(),
            }),
            Some(_) => Err(OutputError::Twice {
                path: path.to_owned(),
            }),
        }
    }

    /// Checks whether `path` can be created. `cause` is the error with which it was not found.
    fn may_be_made(&self, path: &Path, cause: io::Error) -> Result<(), OutputError> {
        let path_of = || path.to_owned();
        if cause.kind() != io::ErrorKind::NotFound {
            return Err(WriteError {
                path: path_of(),
                cause,
            }
            .into());
        }
        if path.is_symlink() {
            return Err(OutputError::Dangling { path: path_of() });
        }
        let Some(folder) = folder_of(path) else {
            let cause = io::Error::new(io::ErrorKind::InvalidInput, "it is no name of a file");
            return Err(WriteError {
                path: path_of(),
                cause,
            }
            .into());
        };
        if folder.is_dir() || self.folders.iter().any(|made| made == folder) {
            return Ok(());
        }
        Err(OutputError::MissingFolder {
            path: path_of(),
            folder: folder.to_owned(),
        })
    }
}

/// Returns the folder that contains `path`. `None` if `path` does not end with a name.
fn folder_of(path: &Path) -> Option<&Path> {
    path.file_name()?;
    let folder = path.parent()?;
    Some(if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    })
}

/// Resolves symbolic links, `.` and `..` in `path`, as far as the path exists.
fn resolved(path: &Path) -> PathBuf {
    let beside = || {
        let folder = folder_of(path)?.canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    path.canonicalize()
        .ok()
        .or_else(beside)
        .unwrap_or_else(|| path.to_owned())
}

/// Returns whether both paths are of the same file. Hard links are the same file.
#[cfg(unix)]
fn is_one_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        found.is_file().then(|| (found.dev(), found.ino()))
    };
    identity(a).is_some_and(|of| Some(of) == identity(b))
}

#[cfg(not(unix))]
fn is_one_file(_: &Path, _: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::write_all;

    fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn an_input_is_not_written_under_any_name() {
        let root = tempfile::tempdir().unwrap();
        let input = written(root.path(), "in", PICTURE_MARK);
        std::fs::create_dir(root.path().join("a")).unwrap();
        let mut names = vec![
            input.clone(),
            root.path().join("a/../in"),
            root.path().join("./in"),
        ];
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&input, root.path().join("link")).unwrap();
            std::fs::hard_link(&input, root.path().join("hard")).unwrap();
            names.extend(["link", "hard"].map(|name| root.path().join(name)));
        }
        for name in names {
            let mut outputs = Outputs::new(true);
            outputs.reads(&input);
            let error = outputs.file(&name, Some(PICTURE_MARK)).unwrap_err();
            assert!(matches!(error, OutputError::Input { .. }), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_and_the_file_is_told_as_it_was_named() {
        let root = tempfile::tempdir().unwrap();
        let file = written(root.path(), "file", PICTURE_MARK);
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let place = Outputs::new(false).file(&link, Some(PICTURE_MARK)).unwrap();
        assert_eq!(
            write_all([(place, b"new".as_slice())]).unwrap(),
            [root.path().join("link")]
        );
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn what_can_be_no_file_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = format!("{}/new/", root.path().display());
        let error = Outputs::new(true).file(Path::new(&path), Some(PICTURE_MARK));
        assert!(matches!(error, Err(OutputError::Folder { .. })));
        let error = Outputs::new(true).file(Path::new("-"), Some(PICTURE_MARK));
        assert!(matches!(error, Err(OutputError::Dash)));
    }

    #[test]
    fn two_outputs_are_two_files() {
        let root = tempfile::tempdir().unwrap();
        let mut outputs = Outputs::new(true);
        outputs
            .file(&root.path().join("a"), Some(PICTURE_MARK))
            .unwrap();
        let again = root.path().join("./a");
        let error = outputs.file(&again, Some(RESULTS_MARK)).unwrap_err();
        assert!(matches!(error, OutputError::Twice { .. }), "{error}");
        outputs
            .file(&root.path().join("b"), Some(RESULTS_MARK))
            .unwrap();
    }

    #[test]
    fn a_file_is_ours_by_its_mark() {
        let root = tempfile::tempdir().unwrap();
        let svg = marked("<svg>\n</svg>\n");
        let behind = format!("{}{svg}", " ".repeat(1024));
        let quoted = format!("notes\n{PICTURE_MARK}\n");
        let results = "{\n  \"written_by\": \"weir\"";
        for (text, mark, ours) in [
            (svg.as_str(), Some(PICTURE_MARK), true),
            (&svg, Some(RESULTS_MARK), false),
            (&svg, None, false),
            (&behind, Some(PICTURE_MARK), false),
            (&quoted, Some(PICTURE_MARK), false),
            ("", Some(PICTURE_MARK), false),
            ("", None, false),
            (results, Some(RESULTS_MARK), true),
        ] {
            let path = written(root.path(), "file", text);
            assert_eq!(
                Outputs::new(false).file(&path, mark).is_ok(),
                ours,
                "{text}"
            );
            assert!(Outputs::new(true).file(&path, mark).is_ok(), "{text}");
        }
    }

    #[test]
    fn only_a_folder_that_was_asked_for_is_made() {
        let root = tempfile::tempdir().unwrap();
        let (folder, deep) = (root.path().join("new"), root.path().join("no/new"));
        let mut outputs = Outputs::new(false);
        let file = folder.join("file");
        let error = outputs.file(&file, Some(PICTURE_MARK)).unwrap_err();
        assert!(
            matches!(error, OutputError::MissingFolder { .. }),
            "{error}"
        );
        assert!(outputs.folder(&deep).is_err());
        outputs.folder(&folder).unwrap();
        let place = outputs.file(&file, Some(PICTURE_MARK)).unwrap();
        assert!(!folder.exists());
        write_all([(place, b"x".as_slice())]).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"x");
        assert!(outputs.folder(&file).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_one_if_it_leads_to_a_file() {
        let root = tempfile::tempdir().unwrap();
        let target = written(root.path(), "target", PICTURE_MARK);
        let link = |name: &str, to: &Path| {
            let link = root.path().join(name);
            std::os::unix::fs::symlink(to, &link).unwrap();
            link
        };
        let good = link("good", &target);
        let place = Outputs::new(false).file(&good, Some(PICTURE_MARK)).unwrap();
        write_all([(place, b"new".as_slice())]).unwrap();
        assert!(good.is_symlink());
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        let dangling = link("dangling", &root.path().join("nothing"));
        let error = Outputs::new(true)
            .file(&dangling, Some(PICTURE_MARK))
            .unwrap_err();
        assert!(matches!(error, OutputError::Dangling { .. }), "{error}");
    }

    #[test]
    fn what_is_no_file_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        for path in [
            root.path(),
            Path::new("/"),
            Path::new(""),
            &root.path().join(".."),
        ] {
            let error = Outputs::new(true)
                .file(path, Some(PICTURE_MARK))
                .unwrap_err();
            assert!(error.to_string().starts_with("cannot write"), "{error}");
        }
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
