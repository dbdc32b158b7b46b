// SPDX-License-Identifier: GPL-3.0-or-later
//! Compiles firmware for the boards.
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_model::CompilerVersion;

/// The sources of a firmware with compiler options. Sources are C (`.c`) or assembler (`.S`).
#[derive(Debug, Clone, Default)]
pub struct Firmware {
    /// The source files, in the order in which they are linked.
    pub sources: Vec<PathBuf>,
    /// Macros: `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
    /// Folders that are searched for headers.
    pub includes: Vec<PathBuf>,
    /// Additional compiler flags. They come after all others, so that an `-O2` here replaces the
    /// `-Os`.
    pub flags: Vec<String>,
}

/// A compiler for a board's firmware, with its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler's command.
    pub compiler: &'static str,
    /// The Debian packages that contain the compiler.
    pub packages: &'static str,
    /// The flags for every firmware: the chip, the language, and separate sections, so that the
    /// linker can drop unused code.
    pub flags: &'static [&'static str],
    /// The libraries, which are linked after the sources.
    pub libraries: &'static [&'static str],
}

impl Toolchain {
    /// The toolchain of the ATmega128.
    pub const AVR: Self = Self {
        compiler: "avr-gcc",
        packages: "gcc-avr avr-libc",
        flags: &[
            "-mmcu=atmega128",
            "-Os",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-ffunction-sections",
            "-fdata-sections",
        ],
        libraries: &[],
    };

    /// The toolchain of the RISC-V on the board soc. There is no C library for this board. The
    /// sources include start-up code, and the flags name a linker script.
    pub const RISCV: Self = Self {
        compiler: "riscv64-unknown-elf-gcc",
        packages: "gcc-riscv64-unknown-elf",
        flags: &[
            // In this edition of the specification RV32I includes the control and status registers.
            // With rv32i_zicsr gcc 12 would link a support library of another word size.
            "-march=rv32i",
            "-misa-spec=2.2",
            "-mabi=ilp32",
            "-Os",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-ffreestanding",
            "-nostdlib",
            "-ffunction-sections",
            "-fdata-sections",
        ],
        libraries: &["-lgcc"],
    };

    /// The toolchain of the Cortex-M3 on the board mps2-an385. As for soc, the sources include
    /// start-up code.
    pub const CORTEX_M3: Self = Self {
        compiler: "arm-none-eabi-gcc",
        packages: "gcc-arm-none-eabi",
        flags: &[
            "-mcpu=cortex-m3",
            "-mthumb",
            "-Os",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-ffreestanding",
            "-nostdlib",
            "-ffunction-sections",
            "-fdata-sections",
        ],
        libraries: &["-lgcc"],
    };

    /// Returns the compiler's version, for example `avr-gcc 5.4.0`.
    ///
    /// # Errors
    /// Fails if the compiler is missing or does not state a version.
    pub fn version(&self) -> Result<CompilerVersion, FirmwareError> {
        let result = Command::new(self.compiler)
            .arg("--version")
            .output()
            .map_err(|error| self.not_started(error))?;
        let said = String::from_utf8_lossy(&result.stdout);
        let line = said.lines().next().unwrap_or_default();
        CompilerVersion::parse(line).ok_or_else(|| FirmwareError::NoVersion {
            compiler: self.compiler,
            said: line.to_owned(),
        })
    }

    fn not_started(&self, error: io::Error) -> FirmwareError {
        match error.kind() {
            io::ErrorKind::NotFound => FirmwareError::NoCompiler {
                compiler: self.compiler,
                packages: self.packages,
            },
            _ => FirmwareError::Start {
                compiler: self.compiler,
                cause: error,
            },
        }
    }
}

/// Why a firmware cannot be compiled.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum FirmwareError {
    /// The compiler is not installed.
    #[error("{compiler} is not installed")]
    #[diagnostic(help("run `scripts/bootstrap.sh`, or: apt-get install {packages}"))]
    NoCompiler {
        /// The compiler's command.
        compiler: &'static str,
        /// The Debian packages that contain the compiler.
        packages: &'static str,
    },
    /// The compiler's output states no version.
    #[error("`{compiler} --version` prints `{said}`, which states no version")]
    #[diagnostic(help("Weir's costs hold for GCC: install GCC's own `{compiler}`"))]
    NoVersion {
        /// The compiler's command.
        compiler: &'static str,
        /// The first line of the compiler's output.
        said: String,
    },

    /// The compiler cannot be started.
    #[error("cannot start {compiler}: {cause}")]
    Start {
        /// The compiler's command.
        compiler: &'static str,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The sources do not compile or link.
    #[error("{compiler} cannot compile {sources}:\n{messages}")]
    #[diagnostic(help("correct the sources, or the macros given with them"))]
    Compile {
        /// The compiler's command.
        compiler: &'static str,
        /// The sources' names.
        sources: String,
        /// The compiler's messages.
        messages: String,
    },
    /// The compiled file cannot be written.
    #[error("cannot write {}: {cause}", path.display())]
    Write {
        /// The path of the file.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
}

impl Firmware {
    /// Calls [`Self::build_with`] for the ATmega128.
    ///
    /// # Errors
    /// Fails as [`Self::build_with`] does.
    pub fn build(&self, output: &Path) -> Result<(), FirmwareError> {
        self.build_with(&Toolchain::AVR, output)
    }

    /// Compiles and links the sources into the ELF file `output`. Its folder is created if
    /// necessary. After an error there is no file at `output`.
    ///
    /// # Errors
    /// Fails if the compiler is missing, if the sources do not compile (the error contains the
    /// compiler's messages), or if the folder cannot be written to.
    pub fn build_with(&self, toolchain: &Toolchain, output: &Path) -> Result<(), FirmwareError> {
        let write = |cause| FirmwareError::Write {
            path: output.to_owned(),
            cause,
        };
        let folder = output
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(write)?;
        let workspace = tempfile::tempdir_in(folder).map_err(write)?;
        let linked = workspace.path().join("linked.elf");
        self.run_compiler(toolchain, workspace.path(), &linked)?;
        std::fs::rename(linked, output).map_err(write)
    }

    /// Runs the compiler. Its temporary files are in the folder `workspace`, where they stay if the
    /// compiler is killed.
    fn run_compiler(
        &self,
        toolchain: &Toolchain,
        workspace: &Path,
        output: &Path,
    ) -> Result<(), FirmwareError> {
        let mut arguments: Vec<OsString> = toolchain.flags.iter().map(Into::into).collect();
        arguments.extend(
            self.defines
                .iter()
                .map(|define| format!("-D{define}").into()),
        );
        for include in &self.includes {
            arguments.push("-I".into());
            arguments.push(include.into());
        }
        arguments.push("-Wl,--gc-sections".into());
        arguments.extend(self.flags.iter().map(Into::into));
        arguments.push("-o".into());
        arguments.push(output.into());
        arguments.extend(self.sources.iter().map(Into::into));
        arguments.extend(toolchain.libraries.iter().map(Into::into));

        let result = Command::new(toolchain.compiler)
            .args(&arguments)
            .env("TMPDIR", workspace)
            .output()
            .map_err(|error| toolchain.not_started(error))?;
        if result.status.success() {
            return Ok(());
        }
        let names: Vec<String> = self
            .sources
            .iter()
            .map(|source| source.display().to_string())
            .collect();
        Err(FirmwareError::Compile {
            compiler: toolchain.compiler,
            sources: names.join(", "),
            messages: String::from_utf8_lossy(&result.stderr)
                .trim_end()
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_with_an_error_is_refused_with_the_compilers_message_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("broken.c");
        std::fs::write(&source, "int main(void) { return missing; }\n").unwrap();
        let output = folder.path().join("out/broken.elf");
        let firmware = Firmware {
            sources: vec![source],
            ..Firmware::default()
        };
        let message = firmware.build(&output).unwrap_err().to_string();
        assert!(
            message.contains("broken.c") && message.contains("missing"),
            "{message}"
        );
        assert_eq!(
            std::fs::read_dir(folder.path().join("out"))
                .unwrap()
                .count(),
            0
        );
    }

    #[test]
    fn defines_includes_and_flags_reach_the_compiler() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("value.h"), "#define BASE 40\n").unwrap();
        let source = folder.path().join("good.c");
        std::fs::write(
            &source,
            "#include \"value.h\"\n_Static_assert(BASE + MORE == 42 && EXTRA == 1, \"\");\nint main(void) { return 0; }\n",
        )
        .unwrap();
        let include = folder.path().join("include");
        std::fs::create_dir(&include).unwrap();
        std::fs::rename(folder.path().join("value.h"), include.join("value.h")).unwrap();
        let output = folder.path().join("good.elf");
        let firmware = Firmware {
            sources: vec![source],
            defines: vec!["MORE=2".to_owned()],
            includes: vec![include],
            flags: vec!["-DEXTRA=1".to_owned()],
        };
        firmware.build(&output).unwrap();
        assert!(output.metadata().unwrap().len() > 0);
    }

    #[cfg(unix)]
    #[test]
    fn what_a_compiler_leaves_that_is_ended_goes_with_the_build() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let compiler = folder.path().join("compiler");
        std::fs::write(
            &compiler,
            "#!/bin/sh\n: >\"$TMPDIR/left.o\"\necho \"$TMPDIR\" >&2\nkill -KILL $$\n",
        )
        .unwrap();
        std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o700)).unwrap();
        let toolchain = Toolchain {
            compiler: compiler.to_str().unwrap().to_owned().leak(),
            ..Toolchain::AVR
        };
        let out = folder.path().join("out");
        let error = Firmware::default()
            .build_with(&toolchain, &out.join("none.elf"))
            .unwrap_err();
        assert!(
            matches!(&error, FirmwareError::Compile { messages, .. } if Path::new(messages).starts_with(&out)),
            "{error}"
        );
        assert_eq!(std::fs::read_dir(out).unwrap().count(), 0);
    }
}
