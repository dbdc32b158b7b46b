// SPDX-License-Identifier: GPL-3.0-or-later
//! Firmware for the ATmega128 whose limits `weir generate` made.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weir_emulate::board::EmulatedBoard;
use weir_emulate::firmware::{Firmware, FirmwareError};
use weir_emulate::run::{RunResult, run};
use weir_generate::{ChipPlan, Flavour, chip, header};
use weir_model::System;

pub const CLOCK: u64 = 4_000_000;

/// A firmware made from a system file. Its handlers and its background count.
pub struct Generated {
    pub folder: TempDir,
    pub firmware: Firmware,
}

impl Generated {
    pub fn new(system: &System) -> Self {
        let plan = ChipPlan::new(system, chip("atmega128").unwrap())
            .unwrap_or_else(|refused| panic!("{refused}: {:?}", refused.reasons));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("weir_system.h"),
            header(&plan, "system.toml"),
        )
        .unwrap();
        let mut generated = Self {
            firmware: firmware(&plan, folder.path()),
            folder,
        };
        generated.write("main.c", &main_file(&plan));
        generated
    }

    /// Adds a file to the sources.
    pub fn write(&mut self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        if !self.firmware.sources.contains(&path) {
            self.firmware.sources.push(path);
        }
    }

    pub fn build(&self) -> Result<PathBuf, FirmwareError> {
        let elf = self.folder.path().join("firmware.elf");
        self.firmware.build(&elf).map(|()| elf)
    }

    pub fn run(&self, floods: &[&str], cycles: u64, counters: &[&str]) -> RunResult {
        let elf = self.build().unwrap_or_else(|error| panic!("{error}"));
        let mut spec = EmulatedBoard::ATMEGA128.spec(elf, CLOCK, cycles);
        spec.floods = floods
            .iter()
            .map(|flood| EmulatedBoard::ATMEGA128.stimulus(flood, CLOCK).unwrap())
            .collect();
        spec.counters = ["progress"]
            .iter()
            .chain(counters)
            .map(ToString::to_string)
            .collect();
        run(&spec).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the compiler's messages of a build that must fail.
    #[track_caller]
    pub fn refusal(&self) -> String {
        match self.build() {
            Ok(_) => panic!("this compiles: {:?}", self.firmware.defines),
            Err(error) => error.to_string(),
        }
    }
}

/// Returns the build that the header requires, with all warnings that firmware is likely to enable.
pub fn firmware(plan: &ChipPlan<'_>, folder: &Path) -> Firmware {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut firmware = Firmware {
        sources: vec![root.join("core/src/limit.c")],
        defines: vec![
            "WEIR_TICK_BITS=16".to_owned(),
            format!("F_CPU={}UL", plan.clock_hz),
        ],
        includes: vec![
            root.join("core/include"),
            root.join("ports/avr/include"),
            folder.to_owned(),
        ],
        flags: ["-Wconversion", "-Werror"].map(str::to_owned).to_vec(),
    };
    if plan.flavour == Flavour::C {
        // The register variables of the fast flavour are a GNU extension of C.
        firmware.flags.push("-Wpedantic".to_owned());
    }
    if plan.flavour == Flavour::Fast {
        firmware.defines.push("WEIR_AVR_FAST".to_owned());
        let fixed = (2..=10).map(|register| format!("-ffixed-r{register}"));
        firmware.flags.extend(fixed);
        if plan.is_by_hand() {
            firmware.sources.push(root.join("ports/avr/start/start.S"));
            firmware.flags.push("-nostartfiles".to_owned());
        }
    }
    firmware
}

pub fn main_file(plan: &ChipPlan<'_>) -> String {
    let mut text = "#include \"weir_system.h\"\nvolatile uint32_t progress;\n".to_owned();
    for source in &plan.sources {
        let name = &source.identifier;
        write!(
            text,
            "volatile uint16_t {name}_runs;\nWEIR_SOURCE_{name}\n{{\n    {name}_runs++;\n}}\n"
        )
        .unwrap();
    }
    if let Some(timer) = &plan.shared_timer {
        writeln!(text, "WEIR_TIMER_{};", timer.identifier).unwrap();
    }
    text + "int main(void)\n{\n    EICRA = 0xff;\n    EICRB = 0xff;\n    weir_system_start();\n    sei();\n    for (;;) {\n        progress++;\n    }\n}\n"
}
