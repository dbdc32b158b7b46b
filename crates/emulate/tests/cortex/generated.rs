// SPDX-License-Identifier: GPL-3.0-or-later
//! Firmware whose limits `weir generate` made from a system file.
use std::fmt::Write;

use weir_emulate::firmware::FirmwareError;
use weir_generate::{ChipPlan, chip, header};
use weir_model::System;

use super::{Elf, compile_with};

/// Parses a system.
pub fn system(text: &str) -> System {
    weir_model::parse("system.toml", text).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

/// Returns the header for a system.
pub fn header_of(system: &System) -> String {
    let plan = ChipPlan::new(system, chip("cortex-m3").unwrap())
        .unwrap_or_else(|refused| panic!("{refused}: {:?}", refused.reasons));
    header(&plan, "system.toml")
}

/// Returns the vector table of a program that begins with `main`. It contains the interrupt
/// functions of all sources and of the timer.
pub fn vectors(system: &System) -> String {
    let mut text = "static void stop(void)\n{\n    for (;;) {\n    }\n}\n\
         __attribute__((section(\".vectors\"))) void (*const vectors[16 + 32])(void) = {\n\
         (void (*)(void)) 0x20400000, (void (*)(void)) main, stop, stop,\n"
        .to_owned();
    let mut names: Vec<&str> = system
        .sources
        .iter()
        .map(|source| source.level.vector.as_str())
        .collect();
    if !system.timers.is_empty() {
        names.push("IRQ10");
    }
    for name in names {
        let number = name.strip_prefix("IRQ").unwrap();
        writeln!(text, "[16 + {number}] = {name}_Handler,").unwrap();
    }
    text + "};\n"
}

/// Returns a program that counts the runs of each handler and the iterations of its background
/// loop.
pub fn program(system: &System) -> String {
    let mut text = "#include \"weir_system.h\"\nvolatile uint32_t progress;\n".to_owned();
    for source in &system.sources {
        let name = &source.name;
        write!(
            text,
            "volatile uint32_t {name}_runs;\nWEIR_SOURCE_{name}\n{{\n    {name}_runs++;\n}}\n"
        )
        .unwrap();
    }
    if !system.timers.is_empty() {
        text += "WEIR_TIMER_DUALTIMER;\n";
    }
    text += "int main(void)\n{\n    weir_system_start();\n    for (;;) {\n        progress++;\n    }\n}\n";
    text + &vectors(system)
}

/// Compiles a program that includes the header of `system`, with all warnings that firmware is
/// likely to enable.
pub fn build(system: &System, program: &str, defines: &[String]) -> Result<Elf, FirmwareError> {
    build_with(&[("weir_system.h", &header_of(system))], program, defines)
}

/// Compiles a program with these headers, like `build`.
pub fn build_with(
    headers: &[(&str, &str)],
    program: &str,
    defines: &[String],
) -> Result<Elf, FirmwareError> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in headers {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let main = folder.path().join("main.c");
    std::fs::write(&main, program).unwrap();
    let all = [defines, &["WEIR_LIMIT_RECORD=0".to_owned()]].concat();
    compile_with(&[main], &[folder.path().to_owned()], &["-Werror"], &all)
}
