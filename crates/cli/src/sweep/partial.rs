// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table that is written line by line and survives the end of its program. It is renamed to its
//! final path when it is complete.
//!
//! `results.csv.partial` contains the lines so far, and `results.csv.sweep` identifies the sweep.
//! If the same sweep is started again, it continues after the last complete line.
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, miette};
use weir_report::{Outputs, Place, WriteError, write_all};

/// The longest time between two flushes to the disk. The duration of a run may be added.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// The start of the text that identifies a sweep.
pub(super) const IDENTITY: &str = "weir sweep ";

/// A table that is not complete yet.
pub(super) struct Partial {
    target: Place,
    path: PathBuf,
    identity: PathBuf,
    file: File,
    synced: Instant,
}

fn beside(target: &Path, suffix: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn fail(path: &Path) -> impl FnOnce(io::Error) -> miette::Report {
    let path = path.to_owned();
    move |cause| miette::Report::from_err(WriteError { path, cause })
}

impl Partial {
    /// Starts the table at `target`, or continues it. `of` identifies the sweep and begins with
    /// [`IDENTITY`]. Returns the number of complete lines in the table.
    ///
    /// # Errors
    /// Fails if an unfinished table of another sweep is there, or if the files must not or cannot
    /// be written.
    pub fn open(
        outputs: &mut Outputs,
        target: &Path,
        mark: Option<&str>,
        of: &str,
    ) -> miette::Result<(Self, u64)> {
        let target = outputs.file(target, mark)?;
        if target.is_device() {
            return Err(miette!(
                help = "write the name of a file",
                "{} is no file",
                target.path().display()
            ));
        }
        let (path, identity) = (
            beside(target.resolved(), ".partial"),
            beside(target.resolved(), ".sweep"),
        );
        let lines = if path.exists() {
            let found = fs::read_to_string(&identity).ok();
            if found.as_deref() != Some(of) {
                return Err(miette!(
                    help = format!(
                        "remove {} if nobody needs it any more, or write to another file",
                        path.display()
                    ),
                    "{} belongs to another sweep: the file, the parameters, the shard or weir itself have changed",
                    path.display()
                ));
            }
            cut(&path).map_err(fail(&path))?
        } else {
            // There is no unfinished table, so an identity file of another sweep is useless and may
            // be replaced.
            let place = outputs.file(&identity, Some(IDENTITY))?;
            outputs.file(&path, None)?;
            write_all([(place, of.as_bytes())]).into_diagnostic()?;
            0
        };
        let mut options = File::options();
        let file = options.append(true).create(true).open(&path);
        let partial = Self {
            target,
            identity,
            file: file.map_err(fail(&path))?,
            path,
            synced: Instant::now(),
        };
        Ok((partial, lines))
    }

    /// Appends complete lines.
    ///
    /// # Errors
    /// Fails if the disk is full, for example. Earlier lines are kept.
    pub fn add(&mut self, lines: &[u8]) -> miette::Result<()> {
        self.write(lines).map_err(fail(&self.path))
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines)?;
        if self.synced.elapsed() >= SYNC_EVERY {
            self.file.sync_data()?;
            self.synced = Instant::now();
        }
        Ok(())
    }

    /// Renames the complete table to its final path.
    ///
    /// # Errors
    /// Fails if the table cannot be flushed to the disk or renamed.
    pub fn finish(self) -> miette::Result<()> {
        self.file.sync_all().map_err(fail(&self.path))?;
        self.target.take(&self.path).into_diagnostic()?;
        // A remaining identity file does no harm, because it is read only if there is an unfinished
        // table.
        let _ = fs::remove_file(&self.identity);
        Ok(())
    }
}

/// Removes an incomplete last line, and returns the number of lines.
fn cut(path: &Path) -> io::Result<u64> {
    let mut file = BufReader::new(File::options().read(true).write(true).open(path)?);
    let (mut lines, mut whole, mut line) = (0, 0, Vec::new());
    loop {
        line.clear();
        let length = file.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            break;
        }
        lines += 1;
        whole += length as u64;
    }
    let mut file = file.into_inner();
    file.set_len(whole)?;
    file.seek(SeekFrom::End(0))?;
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use weir_report::Outputs;

    use super::{IDENTITY, Partial};

    #[test]
    fn whoever_goes_on_does_so_behind_the_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("results.csv");
        let open = |of: &str| {
            let mut outputs = Outputs::new(false);
            Partial::open(&mut outputs, &target, Some(""), &format!("{IDENTITY}{of}"))
        };
        let (mut partial, lines) = open("this").unwrap();
        assert_eq!(lines, 0);
        partial.add(b"a,b\n1,2\n3,").unwrap();
        drop(partial);
        assert!(!target.exists());
        let error = open("another").map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("another sweep"), "{error}");
        let (mut partial, lines) = open("this").unwrap();
        assert_eq!(lines, 2);
        partial.add(b"3,4\n").unwrap();
        partial.finish().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"a,b\n1,2\n3,4\n");
        let left = std::fs::read_dir(target.parent().unwrap()).unwrap();
        assert_eq!(left.count(), 1);
    }
}
