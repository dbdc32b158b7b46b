// SPDX-License-Identifier: GPL-3.0-or-later
//! Builds firmware for the tests.
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weir_emulate::firmware::Firmware;

/// Compiles `tests/firmware/NAME` with these macros. The file exists as long as the returned
/// folder.
pub fn build(name: &str, defines: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("firmware.elf");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/firmware")
        .join(name);
    // Assembler sources contain their own vectors. C sources use those of the C library.
    let flags: &[&str] = if name.ends_with(".S") {
        &["-nostartfiles"]
    } else {
        &[]
    };
    Firmware {
        sources: vec![source],
        defines: defines.iter().map(ToString::to_string).collect(),
        flags: flags.iter().map(ToString::to_string).collect(),
        ..Firmware::default()
    }
    .build(&output)
    .unwrap();
    (folder, output)
}
