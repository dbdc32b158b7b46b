// SPDX-License-Identifier: MIT OR Apache-2.0
//! examples/rtos-node: the code that `weir generate --rtos freertos` writes keeps the promises of
//! its system file.
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use weir_generate::{ChipPlan, chip, header, receivers};
use weir_peer::Report;

use super::{Node, latencies, repository};

/// Builds the example from its system file. Prints a message and returns `None` if the tools are
/// missing.
fn built() -> Option<Node> {
    Node::with_tools(|folder| {
        let system = weir_model::load(&repository("examples/rtos-node/system.toml")).unwrap();
        assert!(weir_analysis::check::keeps_deadlines(&system));
        let plan = ChipPlan::with_freertos(&system, chip("cortex-m3").unwrap()).unwrap();
        let tables = receivers(&plan, "weir_system.h", "system.toml").unwrap();
        fs::write(folder.join("weir_system.h"), header(&plan, "system.toml")).unwrap();
        fs::write(folder.join("weir_system.c"), tables).unwrap();
        let mut build = Command::new(repository("examples/rtos-node/build.sh"));
        build.arg(folder);
        build
    })
}

/// Returns the addresses of the program's variables.
fn addresses(elf: &Path) -> BTreeMap<String, u32> {
    let output = Command::new("arm-none-eabi-nm").arg(elf).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = u32::from_str_radix(words.next()?, 16).ok()?;
            Some((words.nth(1)?.to_owned(), address))
        })
        .collect()
}

/// Runs half a second under a flood, while a client sends commands.
fn run(node: &Node, rate: &str, port: u16) -> Report {
    let addresses = addresses(&node.elf);
    let watch: Vec<String> = ["rounds", "lines"]
        .iter()
        .map(|name| {
            let address = addresses[*name];
            format!(r#"{{"name": "{name}", "address": {address}, "bytes": 4}}"#)
        })
        .collect();
    let plan = format!(
        r#"{{"end": "600ms", "measure": {{"begin": "100ms", "watch": [{}]}},
        "flood": {{"pattern": "poisson:{rate}", "begin": "100ms", "end": "600ms", "frames": {{"udp": {port}}}}},
        "clients": [{{"ask": {{"udp": 32}}, "port": 5000, "pattern": "100Hz", "count": 40, "begin": "150ms", "patience": "5ms"}}]}}"#,
        watch.join(", ")
    );
    node.run(&plan, "").0
}

#[test]
fn what_is_generated_for_freertos_keeps_limit_ports_and_budgets() {
    let Some(node) = built() else { return };
    // Port 514 is the log's, with a budget of one frame in each of 500 ticks. Port 9 belongs to
    // nobody.
    for (port, lines) in [(514, 400..=502), (9, 0..=0)] {
        let report = run(&node, "2kHz", port);
        let profile = report.profile.as_ref().unwrap();
        assert_eq!(profile.watched["rounds"], 50, "port {port}");
        assert!(lines.contains(&profile.watched["lines"]), "{profile:?}");
        assert_eq!(latencies(&report.clients[0]).len(), 40, "port {port}");
    }
    // The flood exceeds the limit. So no frame is certain of room in the card, but the control loop
    // is still protected.
    let report = run(&node, "40kHz", 514);
    let profile = report.profile.as_ref().unwrap();
    assert_eq!(profile.watched["rounds"], 50);
    let flood = report.flood.unwrap();
    let taken = flood.sent - flood.lost;
    // The frames that the limit admits, and the 176 frames that the card holds.
    assert!((1200..=1258 + 176).contains(&taken), "{flood:?}");
}
