// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a test on the emulated Cortex-M3 needs.
use std::process::Command;

#[path = "../../../../linux/tests/skipped/mod.rs"]
pub mod skipped;
use skipped::skipped;

/// Has the machine QEMU and the compiler for Arm? What is missing is told.
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
