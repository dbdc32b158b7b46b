// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds and starts another program of Weir.
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use weir_report::terminal::FAILED;

/// The program of the emulated boards.
pub(crate) const RUN: Program = Program {
    name: "weir-run",
    package: "crates/emulate",
};

/// The program of the papers' experiments.
pub(crate) const LAB: Program = Program {
    name: "weir-lab",
    package: "papers/lab",
};

/// The program of process-aware interrupts on Linux.
pub(crate) const LINUX: Program = Program {
    name: "weir-linux",
    package: "crates/linux",
};

/// Arguments of a command that another program has, `--help` included.
#[derive(Debug, clap::Args)]
pub(crate) struct ForwardedArgs {
    #[arg(num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Another program of Weir.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    /// Name of the executable.
    pub name: &'static str,
    /// The folder of its package in Weir's repository.
    pub package: &'static str,
}

impl Program {
    /// Replaces this process by the program with its command `name`. `name` is none if one command
    /// of `weir` stands for the whole program. Returns an exit code if the program cannot start, or
    /// on systems where a process cannot replace itself.
    pub fn run(self, name: Option<&str>, delegated: ForwardedArgs) -> ExitCode {
        let mut command = Command::new(self.path());
        command.args(name).args(delegated.arguments);
        let error = match start(&mut command) {
            Ok(code) => return code,
            Err(error) => error,
        };
        if error.kind() == io::ErrorKind::NotFound {
            eprintln!(
                "weir: the program `{}` is not installed: it is neither beside weir nor on the PATH\n\n  \
                 In a clone of Weir's repository: cargo install --path {}",
                self.name, self.package
            );
        } else {
            eprintln!("weir: cannot start `{}`: {error}", self.name);
        }
        ExitCode::from(FAILED)
    }

    /// Path of the program: beside this executable, so that a build folder or an installation works
    /// as it is; else the name alone, which the PATH resolves.
    fn path(self) -> PathBuf {
        let executable = format!("{}{}", self.name, std::env::consts::EXE_SUFFIX);
        std::env::current_exe()
            .ok()
            .and_then(|own| own.parent().map(Path::to_owned))
            .map(|folder| folder.join(&executable))
            .filter(|path| path.is_file())
            .unwrap_or_else(|| PathBuf::from(executable))
    }
}

#[cfg(unix)]
fn start(command: &mut Command) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

#[cfg(not(unix))]
fn start(command: &mut Command) -> io::Result<ExitCode> {
    let status = command.status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(FAILED)))
}
