// SPDX-License-Identifier: GPL-3.0-or-later
//! What a test needs whose name begins with `qemu`.
use std::process::Command;

#[path = "../../../linux/tests/skipped/mod.rs"]
mod skipped;
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
