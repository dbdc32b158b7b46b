// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds and starts another program of Weir.
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use weir_report::terminal::FAILED;

/// The emulated boards and the experiments.
pub(crate) const LAB: Program = Program {
    name: "weir-lab",
    package: "crates/lab",
};

/// Process-aware interrupts on Linux.
pub(crate) const LINUX: Program = Program {
    name: "weir-linux",
    package: "crates/linux",
};

/// Everything behind the name of a command that another program knows, its `--help` too.
#[derive(Debug, clap::Args)]
pub(crate) struct ForwardedArgs {
    #[arg(num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// A program that knows some of the commands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    /// Of its executable.
    pub name: &'static str,
    /// The folder of its package in Weir's repository.
    pub package: &'static str,
}

impl Program {
    /// Becomes the program with its command `name`, which is none if all of its commands are behind
    /// one of ours, or returns its exit code where a process cannot become another.
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

    /// Beside this executable, so that a build folder or an installation works as it is; else the
    /// PATH decides.
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
