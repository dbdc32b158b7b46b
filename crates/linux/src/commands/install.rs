// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir linux install` puts the program, its systemd unit and its manual pages where the machine
//! looks for them.
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, ValueHint};
use clap_mangen::Man;
use miette::{IntoDiagnostic as _, WrapErr as _, miette};
use weir_report::terminal::{Outcome, print, printable};

use super::Cli;
use crate::install::{InstallPaths, NewFile};
use crate::system::Node;

/// Put this program, its systemd unit and its manual pages where the machine looks for them
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(super) struct Args {
    #[command(flatten)]
    to: PrefixArgs,

    /// Put this system file where the unit looks for it, too
    #[arg(long, value_name = "SYSTEM.toml", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,

    /// Replace files that Weir did not put there, or that were edited since
    #[arg(long)]
    force: bool,
}

const AFTER: &str = "\
The unit runs a copy of this program in PREFIX/bin: it cannot see home folders, where `cargo install` puts programs. System files are in /etc/weir, or in PREFIX/etc/weir if PREFIX is not /usr or /usr/local. All is put or nothing, and `weir linux uninstall` takes it away.

The exit code is 0 if all is put, and 2 if not.";

/// Options that say where an installation is.
#[derive(Debug, clap::Args)]
pub(super) struct PrefixArgs {
    /// The folder below which the files are
    #[arg(long, value_name = "PREFIX", value_hint = ValueHint::DirPath, default_value = "/usr/local")]
    prefix: PathBuf,

    /// Take this folder for the root of the machine, to make a package
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    destdir: Option<PathBuf>,
}

impl PrefixArgs {
    pub(super) fn paths(&self) -> miette::Result<InstallPaths> {
        Ok(InstallPaths::new(&self.prefix, self.destdir.as_deref())?)
    }
}

/// Executes the command.
///
/// # Errors
/// Fails if a file may not be written, or if this program cannot read the system file.
pub(super) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let paths = arguments.to.paths()?;
    let own = std::env::current_exe()
        .and_then(fs::canonicalize)
        .into_diagnostic()
        .wrap_err("the file of this program cannot be found")?;
    let mut files = vec![NewFile {
        path: paths.unit(),
        content: paths.unit_text().into_bytes(),
    }];
    // The program is not copied if this process already runs from that path, for example because
    // cargo has installed it there.
    if fs::canonicalize(paths.staged(&paths.program()))
        .ok()
        .as_ref()
        != Some(&own)
    {
        files.push(NewFile {
            path: paths.program(),
            content: content(&own)?,
        });
    }
    for (name, content) in manual_pages().into_diagnostic()? {
        files.push(NewFile {
            path: paths.pages().join(name),
            content,
        });
    }
    let mut next = Vec::new();
    let mut reads = vec![own.as_path()];
    let mut instance = "NAME".to_owned();
    if let Some(file) = &arguments.config {
        let node = Node::new(&weir_model::load(file)?, None)?;
        instance = instance_of(file)?;
        let path = paths.systems().join(format!("{instance}.toml"));
        if fs::canonicalize(paths.staged(&path)).ok() != fs::canonicalize(file).ok() {
            let content = content(file)?;
            files.push(NewFile { path, content });
            reads.push(file);
        }
        if node.linux.mode.facts().demultiplexes {
            next.push(format!(
                "systemctl edit weir-linux@{instance}    # to add --yes-xdp to ExecStart"
            ));
        }
    } else {
        let file = paths.systems().join("NAME.toml");
        let (program, file) = (paths.program(), file.display().to_string());
        next.push(format!("{} inspect --output {file}", program.display()));
        next.push(format!("{} plan {file}", program.display()));
    }
    paths.put(&files, &reads, arguments.force)?;
    let load = if paths.is_searched() {
        "systemctl daemon-reload".to_owned()
    } else {
        format!("systemctl link {}", paths.unit().display())
    };
    next.insert(0, load);
    next.push(format!("systemctl enable --now weir-linux@{instance}"));
    let mut text = String::new();
    for file in &files {
        let _ = writeln!(text, "put {}", printable(paths.staged(&file.path)));
    }
    if let Some(folder) = paths.unseen() {
        let _ = writeln!(
            text,
            "\nThe unit cannot see {}: a service needs another --prefix, for example /usr/local.",
            folder.display()
        );
    }
    let _ = write!(text, "\nNext, as root:\n  {}", next.join("\n  "));
    print(&text)?;
    Ok(Outcome::Good)
}

fn content(file: &Path) -> miette::Result<Vec<u8>> {
    fs::read(file).map_err(|error| miette!("cannot read {}: {error}", printable(file)))
}

/// The instance name, as in weir-linux@NAME, of the service that runs `file`.
fn instance_of(file: &Path) -> miette::Result<String> {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    let is_plain = |name: &&str| {
        let mut all = name.bytes();
        all.all(|byte| byte.is_ascii_alphanumeric() || b"._:".contains(&byte))
    };
    let is_toml = file.extension().is_some_and(|end| end == "toml");
    let stem = stem.filter(is_plain).filter(|_| is_toml);
    stem.map(str::to_owned).ok_or_else(|| {
        miette!(
            help = "name it NAME.toml, with a NAME of letters, digits and `. _ :`",
            "the unit cannot be named after {}",
            printable(file)
        )
    })
}

/// The manual pages of all commands, each with its file name.
fn manual_pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut all = Cli::command();
    all.build();
    let commands: Vec<_> = [all.clone()]
        .into_iter()
        .chain(all.get_subcommands().cloned())
        .collect();
    let page = |command: clap::Command| {
        let name = command.get_display_name();
        let file = format!("{}.8", name.unwrap_or(command.get_name()));
        let mut page = Vec::new();
        Man::new(command)
            .section("8")
            .source(concat!("weir-linux ", env!("CARGO_PKG_VERSION")))
            .manual("Weir")
            .render(&mut page)?;
        Ok((file, page))
    };
    commands.into_iter().map(page).collect()
}
