// SPDX-License-Identifier: MIT OR Apache-2.0
//! Common code for tests on the emulated Cortex-M3.
use std::process::Command;

#[path = "../../../../linux/tests/skipped/mod.rs"]
pub mod skipped;
use skipped::skipped;

/// Returns whether QEMU and the compiler for Arm are installed. Prints what is missing.
pub fn has_tools() -> bool {
    for tool in ["qemu-system-arm", "arm-none-eabi-gcc"] {
        if Command::new(tool).arg("--version").output().is_err() {
            skipped(&format!(
                "{tool} is missing; scripts/bootstrap.sh arm installs it"
            ));
            return false;
        }
    }
    true
}
