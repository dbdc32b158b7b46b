// SPDX-License-Identifier: MIT OR Apache-2.0
//! Installs and uninstalls the program, its systemd unit and its manual pages. A list in the
//! installation has the checksum of each file. By the checksum a file is known as Weir's until
//! somebody edits it.
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use serde::{Deserialize, Serialize};
use weir_report::terminal::printable;
use weir_report::{OutputError, Outputs, RESULTS_MARK, WriteError, checksum, write_all};

/// Text of the systemd unit, for the prefix /usr/local.
pub const UNIT: &str = include_str!("../systemd/weir-linux@.service");
/// Path of the program in the text of the unit.
const PROGRAM: &str = "/usr/local/bin/weir-linux";
/// Folder of system files in the text of the unit.
const SYSTEMS: &str = "/etc/weir";
/// Folders below / that the unit hides from the service, or replaces by private ones.
const UNSEEN: [&str; 5] = ["home", "root", "run/user", "tmp", "var/tmp"];

/// Reason why nothing is installed or uninstalled.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum InstallError {
    /// A systemd unit cannot contain paths below this prefix.
    #[error(
        "cannot install below {}: a systemd unit cannot name it as it is",
        printable(prefix)
    )]
    #[diagnostic(help(
        "name a folder of letters, digits and `. _ - + :` with --prefix, for example /opt/weir"
    ))]
    Prefix {
        /// The prefix that the user gave.
        prefix: PathBuf,
    },
    /// This process may not change a folder.
    #[error("cannot change {}: {cause}; nothing has changed", printable(folder))]
    #[diagnostic(help("run it as root, or name a folder of your own with --prefix"))]
    Refused {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        cause: Errno,
    },
    /// The list of installed files cannot be read.
    #[error(
        "cannot read {}, the list of what was installed: {cause}",
        printable(path)
    )]
    #[diagnostic(help(
        "if it is damaged, remove it and install with --force: that writes it anew"
    ))]
    List {
        /// Path of the list.
        path: PathBuf,
        /// The system's error, or the fault of the list's text.
        cause: io::Error,
    },
    /// systemd has links to the unit, so the unit is enabled or known to it.
    #[error("{} leads to the unit; nothing has changed", printable(link))]
    #[diagnostic(help("say `systemctl disable --now {unit}` first"))]
    InUse {
        /// Path of the link.
        link: PathBuf,
        /// Name of the unit, as systemctl takes it.
        unit: String,
    },
    /// A file may not be written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Output(#[from] OutputError),
    /// A file or folder cannot be written or removed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The list of what is installed below a prefix. Its paths are those of the machine that the
/// installation is for.
#[derive(Debug, Serialize, Deserialize)]
pub struct Installation {
    /// The program that wrote the list, by which a file is recognised as such a list.
    written_by: String,
    version: String,
    /// The checksum of each installed file.
    files: BTreeMap<PathBuf, String>,
    /// The folders that were created, the outer ones first.
    folders: Vec<PathBuf>,
}

/// A file that is to be installed.
#[derive(Debug)]
pub struct NewFile {
    /// Path on the machine that the installation is for.
    pub path: PathBuf,
    /// Content of the file.
    pub content: Vec<u8>,
}

/// What became of the files of an installation that was removed.
#[derive(Debug, Default)]
pub struct Removal {
    /// The files that were removed.
    pub removed: Vec<PathBuf>,
    /// The files that somebody has changed, which are kept.
    pub changed: Vec<PathBuf>,
}

/// The paths at which an installation has its files.
#[derive(Debug)]
pub struct InstallPaths {
    prefix: PathBuf,
    /// Folder that replaces / as the place of the files. Their content does not mention it.
    stage: PathBuf,
}

impl InstallPaths {
    /// Computes the paths below `prefix`. If `stage` is given, the files are put below that folder,
    /// since they are for another machine.
    ///
    /// # Errors
    /// Fails if a systemd unit cannot contain `prefix`.
    pub fn new(prefix: &Path, stage: Option<&Path>) -> Result<Self, InstallError> {
        let refused = || InstallError::Prefix {
            prefix: prefix.to_owned(),
        };
        let absolute = std::path::absolute(prefix).map_err(|_| refused())?;
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+:".contains(byte);
        let has_parents = absolute.components().any(|part| part.as_os_str() == "..");
        if has_parents || !absolute.as_os_str().as_encoded_bytes().iter().all(is_plain) {
            return Err(refused());
        }
        Ok(Self {
            prefix: absolute,
            stage: stage.unwrap_or(Path::new("/")).to_owned(),
        })
    }

    /// Path of the program.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.prefix.join("bin/weir-linux")
    }

    /// Path of the systemd unit.
    #[must_use]
    pub fn unit(&self) -> PathBuf {
        self.prefix.join("lib/systemd/system/weir-linux@.service")
    }

    /// Path of the folder of the manual pages.
    #[must_use]
    pub fn pages(&self) -> PathBuf {
        self.prefix.join("share/man/man8")
    }

    /// Path of the folder whose system files the unit runs.
    #[must_use]
    pub fn systems(&self) -> PathBuf {
        if self.is_searched() {
            PathBuf::from(SYSTEMS)
        } else {
            self.prefix.join("etc/weir")
        }
    }

    fn list(&self) -> PathBuf {
        self.prefix.join("share/weir-linux/installed.json")
    }

    /// Whether systemd looks for units below the prefix.
    #[must_use]
    pub fn is_searched(&self) -> bool {
        [Path::new("/usr"), Path::new("/usr/local")].contains(&self.prefix.as_path())
    }

    /// The folder above the prefix that the unit hides from the service, so that the service would
    /// not find its program. `None` if there is none.
    #[must_use]
    pub fn unseen(&self) -> Option<PathBuf> {
        let mut folders = UNSEEN.into_iter().map(|folder| Path::new("/").join(folder));
        folders.find(|folder| self.prefix.starts_with(folder))
    }

    /// Text of the systemd unit for this prefix.
    #[must_use]
    pub fn unit_text(&self) -> String {
        UNIT.replace(PROGRAM, &self.program().to_string_lossy())
            .replace(SYSTEMS, &self.systems().to_string_lossy())
    }

    /// The place of the file `path` on this machine, below the stage if there is one.
    #[must_use]
    pub fn staged(&self, path: &Path) -> PathBuf {
        self.stage.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Reads the list of what is installed. `None` if nothing is.
    ///
    /// # Errors
    /// Fails if the list cannot be read.
    pub fn installed(&self) -> Result<Option<Installation>, InstallError> {
        let path = self.staged(&self.list());
        let read = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.and_then(|text| Ok(serde_json::from_slice(&text)?)),
        };
        read.map(Some)
            .map_err(|cause| InstallError::List { path, cause })
    }

    /// Installs `files`, all or none, and creates the folder of the system files. `reads` are files
    /// that this process reads, so they must not be replaced. With `force`, files that Weir did not
    /// write are replaced, too.
    ///
    /// # Errors
    /// Fails if a file may not be written. Nothing has changed then.
    pub fn put(&self, files: &[NewFile], reads: &[&Path], force: bool) -> Result<(), InstallError> {
        let before = self.installed()?;
        let mut outputs = Outputs::new(force);
        for path in reads {
            outputs.reads(path);
        }
        let list = self.list();
        let mut folders = vec![self.systems()];
        let parents = files.iter().map(|file| &file.path).chain([&list]);
        folders.extend(parents.filter_map(|path| path.parent().map(Path::to_owned)));
        let missing = self.missing(&folders)?;
        for folder in &missing {
            outputs.folder(&self.staged(folder))?;
        }
        let mut installation = before.unwrap_or_else(|| Installation {
            written_by: String::new(),
            version: String::new(),
            files: BTreeMap::new(),
            folders: Vec::new(),
        });
        "weir".clone_into(&mut installation.written_by);
        env!("CARGO_PKG_VERSION").clone_into(&mut installation.version);
        let mut places = vec![outputs.file(&self.staged(&list), Some(RESULTS_MARK))?];
        for file in files {
            let known = installation.files.get(&file.path);
            let place = outputs.file_if(&self.staged(&file.path), |path| {
                let found = std::fs::read(path)?;
                Ok(known.is_some_and(|sum| *sum == checksum(&found)))
            })?;
            places.push(if file.path == self.program() {
                place.for_program()
            } else {
                place
            });
        }
        for file in files {
            let sum = checksum(&file.content);
            installation.files.insert(file.path.clone(), sum);
        }
        let new = missing
            .iter()
            .filter(|folder| !installation.folders.contains(folder));
        let new: Vec<_> = new.cloned().collect();
        installation.folders.extend(new);
        let list = format!("{:#}\n", serde_json::json!(installation));
        // The list is written first, so that after a crash it contains every file that was
        // installed.
        let contents = files.iter().map(|file| file.content.as_slice());
        let contents = [list.as_bytes()].into_iter().chain(contents);
        let put = write_all(places.into_iter().zip(contents));
        let systems = self.staged(&self.systems());
        let put = put.and_then(|_| {
            fs::create_dir_all(&systems).map_err(|cause| WriteError {
                path: systems,
                cause,
            })
        });
        if put.is_err() {
            self.remove_folders(&missing);
        }
        Ok(put?)
    }

    /// The folders among `folders`, and above them, that do not exist. The outer ones are first.
    fn missing(&self, folders: &[PathBuf]) -> Result<Vec<PathBuf>, InstallError> {
        let mut missing: Vec<PathBuf> = Vec::new();
        for folder in folders {
            let all: Vec<&Path> = folder.ancestors().collect();
            for one in all.into_iter().rev() {
                let staged = self.staged(one);
                if !staged.exists() && !missing.iter().any(|known| known == one) {
                    missing.push(one.to_owned());
                }
            }
            let existing = folder.ancestors().map(|one| self.staged(one));
            if let Some(existing) = existing.into_iter().find(|one| one.exists()) {
                may_change(&existing)?;
            }
        }
        Ok(missing)
    }

    /// Removes what was installed. `None` if nothing was. Files that somebody has changed are kept.
    ///
    /// # Errors
    /// Fails if systemd uses the unit, or if a file may not be removed.
    pub fn remove(&self) -> Result<Option<Removal>, InstallError> {
        let Some(installation) = self.installed()? else {
            return Ok(None);
        };
        if let Some((link, unit)) = self.link_to_unit() {
            return Err(InstallError::InUse { link, unit });
        }
        let mut removal = Removal::default();
        let list = self.list();
        for (path, sum) in &installation.files {
            match fs::read(self.staged(path)) {
                Ok(content) if checksum(&content) == *sum => removal.removed.push(path.clone()),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                _ => removal.changed.push(path.clone()),
            }
        }
        let paths = || removal.removed.iter().chain([&list]);
        for folder in paths().filter_map(|path| path.parent()) {
            may_change(&self.staged(folder))?;
        }
        for path in paths() {
            let path = self.staged(path);
            fs::remove_file(&path).map_err(|cause| WriteError { path, cause })?;
        }
        self.remove_folders(&installation.folders);
        Ok(Some(removal))
    }

    /// Removes the folders of `folders` that are empty.
    fn remove_folders(&self, folders: &[PathBuf]) {
        for folder in folders.iter().rev() {
            // A folder that somebody else has put files into is kept: removing it fails.
            let _ = fs::remove_dir(self.staged(folder));
        }
    }

    /// A link by which systemd has enabled the unit or knows it, and the name of that unit.
    fn link_to_unit(&self) -> Option<(PathBuf, String)> {
        let within = |folder: &Path| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let units = within(&self.staged(Path::new("/etc/systemd/system")));
        let mut all: Vec<PathBuf> = units.iter().flat_map(|path| within(path)).collect();
        all.extend(units);
        let link = all
            .into_iter()
            .find(|path| fs::read_link(path).is_ok_and(|to| to == self.unit()))?;
        let name = link.file_name()?.to_string_lossy().into_owned();
        Some((link, name))
    }
}

fn may_change(folder: &Path) -> Result<(), InstallError> {
    access(folder, AccessFlags::W_OK | AccessFlags::X_OK).map_err(|cause| InstallError::Refused {
        folder: folder.to_owned(),
        cause,
    })
}
