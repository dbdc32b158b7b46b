// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts the program, its systemd unit and its manual pages where a machine looks for them, and
//! takes exactly these away again. A list beside them has the checksum of each: by it a file is
//! known as Weir's until somebody edits it.
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

/// The unit as it is for the prefix /usr/local.
pub const UNIT: &str = include_str!("../systemd/weir-linux@.service");
/// The program that the unit names.
const PROGRAM: &str = "/usr/local/bin/weir-linux";
/// The folder of system files that the unit names.
const SYSTEMS: &str = "/etc/weir";
/// Folders below the root of which the unit shows the service nothing, or others than these.
const UNSEEN: [&str; 5] = ["home", "root", "run/user", "tmp", "var/tmp"];

/// Why nothing is put or taken away.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum InstallError {
    /// The unit could not name paths below this prefix.
    #[error(
        "cannot install below {}: a systemd unit cannot name it as it is",
        printable(prefix)
    )]
    #[diagnostic(help(
        "name a folder of letters, digits and `. _ - + :` with --prefix, for example /opt/weir"
    ))]
    Prefix {
        /// The prefix.
        prefix: PathBuf,
    },
    /// A folder may not be changed.
    #[error("cannot change {}: {cause}; nothing has changed", printable(folder))]
    #[diagnostic(help("run it as root, or name a folder of your own with --prefix"))]
    Refused {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        cause: Errno,
    },
    /// The list of what was put cannot be read.
    #[error(
        "cannot read {}, the list of what was installed: {cause}",
        printable(path)
    )]
    #[diagnostic(help(
        "if it is damaged, remove it and install with --force: that writes it anew"
    ))]
    List {
        /// The list.
        path: PathBuf,
        /// What is wrong.
        cause: io::Error,
    },
    /// systemd has links to the unit.
    #[error("{} leads to the unit; nothing has changed", printable(link))]
    #[diagnostic(help("say `systemctl disable --now {unit}` first"))]
    InUse {
        /// The link.
        link: PathBuf,
        /// The unit's name, as systemctl takes it.
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

/// What was put below a prefix, as its list says. Paths are those of the machine that it is for.
#[derive(Debug, Serialize, Deserialize)]
pub struct Installation {
    /// The mark of the list.
    written_by: String,
    version: String,
    /// The checksum of each file.
    files: BTreeMap<PathBuf, String>,
    /// The folders that were made, the outer ones first.
    folders: Vec<PathBuf>,
}

/// A file that is to be put.
#[derive(Debug)]
pub struct NewFile {
    /// Its path on the machine that it is for.
    pub path: PathBuf,
    /// What is in it.
    pub content: Vec<u8>,
}

/// What became of the files of an installation that was taken away.
#[derive(Debug, Default)]
pub struct Removal {
    /// The files that are gone.
    pub removed: Vec<PathBuf>,
    /// Those that somebody has changed, which are still there.
    pub changed: Vec<PathBuf>,
}

/// Where an installation has its files.
#[derive(Debug)]
pub struct InstallPaths {
    prefix: PathBuf,
    /// Folder that takes the place of / for the files, but not in what they say.
    stage: PathBuf,
}

impl InstallPaths {
    /// The paths below `prefix`, with all files below `stage` if it is for another machine.
    ///
    /// # Errors
    /// Fails if the unit cannot name `prefix`.
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

    /// The program.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.prefix.join("bin/weir-linux")
    }

    /// The systemd unit.
    #[must_use]
    pub fn unit(&self) -> PathBuf {
        self.prefix.join("lib/systemd/system/weir-linux@.service")
    }

    /// The folder of the manual pages.
    #[must_use]
    pub fn pages(&self) -> PathBuf {
        self.prefix.join("share/man/man8")
    }

    /// The folder of the system files that the unit carries out.
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

    /// The folder below which the service would not find its program.
    #[must_use]
    pub fn unseen(&self) -> Option<PathBuf> {
        let mut folders = UNSEEN.into_iter().map(|of| Path::new("/").join(of));
        folders.find(|of| self.prefix.starts_with(of))
    }

    /// What the unit says.
    #[must_use]
    pub fn unit_text(&self) -> String {
        UNIT.replace(PROGRAM, &self.program().to_string_lossy())
            .replace(SYSTEMS, &self.systems().to_string_lossy())
    }

    /// Where the file `path` stands now.
    #[must_use]
    pub fn staged(&self, path: &Path) -> PathBuf {
        self.stage.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// What is installed; none if nothing is.
    ///
    /// # Errors
    /// Fails if the list is unreadable.
    pub fn found(&self) -> Result<Option<Installation>, InstallError> {
        let path = self.staged(&self.list());
        let read = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.and_then(|text| Ok(serde_json::from_slice(&text)?)),
        };
        read.map(Some)
            .map_err(|cause| InstallError::List { path, cause })
    }

    /// Puts `files`, all or none, and makes the folder of the system files. `reads` are files that
    /// this process reads; with `force`, files that Weir did not write are replaced, too.
    ///
    /// # Errors
    /// Fails if a file may not be written. Then nothing has changed.
    pub fn put(&self, files: &[NewFile], reads: &[&Path], force: bool) -> Result<(), InstallError> {
        let before = self.found()?;
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
        // The list comes first: after a crash, a file that is there is in it.
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

    /// Those of `folders` and of the folders above them that do not exist, the outer ones first.
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
            let there = folder.ancestors().map(|one| self.staged(one));
            if let Some(there) = there.into_iter().find(|one| one.exists()) {
                may_change(&there)?;
            }
        }
        Ok(missing)
    }

    /// Takes away what was put; none if nothing was. What somebody has changed stays.
    ///
    /// # Errors
    /// Fails if systemd uses the unit, or a file may not be removed.
    pub fn remove(&self) -> Result<Option<Removal>, InstallError> {
        let Some(installation) = self.found()? else {
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

    /// Removes those of `folders` that are empty.
    fn remove_folders(&self, folders: &[PathBuf]) {
        for folder in folders.iter().rev() {
            // It stays if it is somebody else's by now.
            let _ = fs::remove_dir(self.staged(folder));
        }
    }

    /// A link by which systemd has the unit enabled or known, and the name of that unit.
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
