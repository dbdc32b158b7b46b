// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that ports/freertos uses is what its README states.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use super::{Node, repository};

/// Returns the types in the README's table with their sizes in bytes.
fn promised() -> BTreeMap<String, u32> {
    let readme = fs::read_to_string(repository("ports/freertos/README.md")).unwrap();
    let section = readme.split("## Memory").nth(1).unwrap();
    let rows = section.lines().filter(|line| line.contains("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (
            cells[2].trim_matches('`').to_owned(),
            cells[3].parse().unwrap(),
        )
    })
    .collect()
}

#[test]
fn ram_is_what_the_readme_says_and_64_bytes_for_a_receiver_at_most() {
    let promised = promised();
    assert_eq!(promised.len(), 8);
    let bytes = |of: &str| promised[of];
    // A receiver with one port and two slots in the table.
    let receiver = bytes("weir_freertos_receiver_t")
        + bytes("weir_demux_link_t")
        + 2 * bytes("weir_demux_slot_t");
    assert!(receiver <= 64, "{receiver} bytes");
    let readme = fs::read_to_string(repository("ports/freertos/README.md")).unwrap();
    assert!(readme.contains(&format!("A receiver with one port takes {receiver} bytes")));

    // The compiler compares the sizes, in a folder that is removed afterwards.
    Node::with_tools(|folder| {
        let mut text = "#include \"weir/freertos.h\"\n".to_owned();
        for (of, bytes) in &promised {
            writeln!(text, "_Static_assert(sizeof({of}) == {bytes}, \"{of}\");").unwrap();
        }
        let file = folder.join("ram.c");
        fs::write(&file, text).unwrap();
        let kernel = Command::new(repository("ports/freertos/sources/find.sh"))
            .arg("freertos-next")
            .output()
            .unwrap();
        let kernel = String::from_utf8(kernel.stdout).unwrap();
        let kernel = kernel.trim_end().to_owned() + "/FreeRTOS-Kernel";
        let mut compile = Command::new("arm-none-eabi-gcc");
        compile
            .args(["-mcpu=cortex-m3", "-mthumb", "-std=c11", "-fsyntax-only"])
            .args(["-DWEIR_TICK_BITS=32", "-DWEIR_CLASSES=8"])
            .arg("-DWEIR_FREERTOS_CLOCK=0u");
        for include in [
            "examples/rtos-node",
            "core/include",
            "ports/freertos/include",
        ] {
            compile.arg("-I").arg(repository(include));
        }
        for include in ["include", "portable/GCC/ARM_CM3"] {
            compile.arg("-isystem").arg(format!("{kernel}/{include}"));
        }
        compile.arg(file);
        compile
    });
}
