// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts the other programs of Weir.
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use weir_report::terminal::FAILED;

/// The program that runs firmware on emulated boards.
pub(crate) const RUN: Program = Program {
    name: "weir-run",
    package: "crates/emulate",
};

/// The program that reproduces the papers' experiments.
pub(crate) const LAB: Program = Program {
    name: "weir-lab",
    package: "papers/lab",
};

/// The program that gives interrupts on Linux the urgency of their processes.
pub(crate) const LINUX: Program = Program {
    name: "weir-linux",
    package: "crates/linux",
};

/// The arguments of a command that another program implements, including `--help`.
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
    /// Replaces this process by the program. `name` is the program's command, or `None` if a
    /// command of `weir` stands for the whole program. Returns an exit code if the program cannot
    /// be started, or after the program on systems where a process cannot be replaced.
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

    /// Returns the path of the program. It is beside this executable in a build folder or an
    /// installation. Otherwise the result is the name alone, which is searched for in the PATH.
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
