// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `weir generate`: its files, the files that it leaves alone, and its output.

use std::path::{Path, PathBuf};

use crate::common::{Printed, run, weir};
use serde_json::Value;
use tempfile::TempDir;

const EXAMPLES: [&str; 3] = ["motor-controller", "shared-timer", "flight-controller"];

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
        .join("system.toml")
}

/// Runs `weir generate SYSTEM` in a folder.
fn generate(folder: &Path, system: &Path, arguments: &[&str]) -> Printed {
    run(weir()
        .current_dir(folder)
        .arg("generate")
        .arg(system)
        .args(arguments))
}

const FOR_THE_CHIP: [&str; 2] = ["--chip", "atmega128"];

/// Returns the names of the folder's files.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns a copy of an example in which `from` is replaced by `to`.
fn changed(folder: &TempDir, name: &str, from: &str, to: &str) -> PathBuf {
    let text = std::fs::read_to_string(example(name)).unwrap();
    assert!(text.contains(from), "`{from}` in\n{text}");
    let path = folder.path().join("system.toml");
    std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
    path
}

#[test]
fn every_example_gives_a_header_and_always_the_same() {
    for name in EXAMPLES {
        let folder = TempDir::new().unwrap();
        let first = generate(folder.path(), &example(name), &FOR_THE_CHIP);
        assert_eq!(first.code, Some(0), "{}", first.err);
        assert!(
            first.out.contains("weir_system.h keeps the limits of"),
            "{}",
            first.out
        );
        assert_eq!(files(folder.path()), ["weir_system.h"]);
        let header = std::fs::read_to_string(folder.path().join("weir_system.h")).unwrap();
        // Generating again replaces the file. The same text can go to standard output.
        let again = generate(folder.path(), &example(name), &FOR_THE_CHIP);
        assert_eq!(again.code, Some(0), "{}", again.err);
        let second = std::fs::read_to_string(folder.path().join("weir_system.h")).unwrap();
        assert_eq!(header, second);
        let arguments = ["--chip", "atmega128", "--output", "-"];
        let printed = generate(folder.path(), &example(name), &arguments);
        assert_eq!(printed.out, header);
        let first_line = header.lines().next().unwrap();
        assert!(first_line.contains("from system.toml"), "{first_line}");
    }
}

#[test]
fn the_table_fits_and_has_no_colours_when_it_is_piped() {
    let folder = TempDir::new().unwrap();
    let printed = generate(folder.path(), &example("flight-controller"), &FOR_THE_CHIP);
    for line in printed.out.lines().skip(2) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(!printed.out.contains('\u{1b}'), "{}", printed.out);
    for part in [
        "ignition",
        "strict lazy",
        "TIMER1A / 8",
        "1.25 ms",
        "800 Hz",
    ] {
        assert!(
            printed.out.contains(part),
            "no `{part}` in\n{}",
            printed.out
        );
    }
}

#[test]
fn json_tells_names_and_effective_rates() {
    let folder = TempDir::new().unwrap();
    let arguments = ["--chip", "atmega128", "--json", "--output", "limits.h"];
    let printed = generate(folder.path(), &example("shared-timer"), &arguments);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    let json: Value = serde_json::from_str(&printed.out).unwrap();
    assert_eq!(json["file"], "limits.h");
    assert_eq!(json["chip"], "atmega128");
    assert_eq!(json["flavour"], "c");
    assert_eq!(json["clock_hz"], 4_000_000);
    assert_eq!(json["timers"][0]["prescaler"], 1);
    assert_eq!(json["shared_timer"]["name"], "clearing");
    assert_eq!(json["shared_timer"]["clears"][2], "third");
    let third = &json["sources"][2];
    assert_eq!(third["vector"], "INT2");
    assert_eq!(third["limit"]["policy"], "bursty");
    assert_eq!(third["limit"]["timing"], "eager");
    assert_eq!(third["limit"]["burst"], 7);
    // The interval is 4 MHz / 110 Hz rounded up, so that the rate is never above the requested one.
    assert_eq!(third["limit"]["interval_ticks"], 36_364);
    let hertz = third["limit"]["limit_hz"].as_f64().unwrap();
    assert!((769.9..=770.0).contains(&hertz), "{hertz}");
    let header = std::fs::read_to_string(folder.path().join("limits.h")).unwrap();
    assert!(header.contains(json["sha256"].as_str().unwrap()));
}

#[test]
fn a_file_that_was_not_generated_is_only_replaced_by_force() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("weir_system.h");
    std::fs::write(&path, "int precious;\n").unwrap();
    let refused = generate(folder.path(), &example("shared-timer"), &FOR_THE_CHIP);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.err.contains("it is there already") && refused.err.contains("--force"),
        "{}",
        refused.err
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "int precious;\n");
    let arguments = ["--chip", "atmega128", "--force"];
    let forced = generate(folder.path(), &example("shared-timer"), &arguments);
    assert_eq!(forced.code, Some(0), "{}", forced.err);
    assert!(
        std::fs::read_to_string(&path)
            .unwrap()
            .contains("WEIR_SOURCE_first")
    );
}

#[test]
fn what_cannot_be_generated_is_explained_and_no_file_is_touched() {
    let cases = [(
        "motor-controller",
        "name = \"button\"",
        "name = \"weir-button\"",
        "weir-button",
        "Weir's own",
    )];
    for (name, from, to, source, message) in cases {
        let folder = TempDir::new().unwrap();
        let system = changed(&folder, name, from, to);
        let refused = generate(folder.path(), &system, &FOR_THE_CHIP);
        assert_eq!(refused.code, Some(2), "{to}: {}", refused.out);
        assert!(refused.err.contains(message), "{to}: {}", refused.err);
        let text = std::fs::read_to_string(&system).unwrap();
        let named = format!("name = \"{source}\"");
        let before = text.lines().take_while(|line| *line != named);
        let place = format!("system.toml:{}:8", before.count() + 1);
        assert!(refused.err.contains(&place), "{place}: {}", refused.err);
        assert_eq!(files(folder.path()), ["system.toml"]);
    }
}

/// Returns the place that an error message shows: `system.toml:LINE:COLUMN`.
fn place(printed: &Printed) -> &str {
    let from = printed.err.find("system.toml:").expect(&printed.err);
    let rest = &printed.err[from..];
    rest.split([']', ' ', '\n']).next().unwrap()
}

#[test]
fn check_and_tune_refuse_what_generate_refuses_at_the_same_place() {
    const BUTTON: &str = "policy = \"strict\", rate = \"50Hz\", timer = \"TIMER3A\"";
    for (from, to, message) in [
        (
            BUTTON,
            "policy = \"poll\", rate = \"50Hz\", timer = \"TIMER3A\"",
            "no port has code for policy = \"poll\"",
        ),
        (
            "name = \"button\"",
            "name = \"weir-button\"",
            "are Weir's own",
        ),
        ("name = \"button\"", "name = \"NULL\"", "in C it is called"),
        (
            "[cpu]",
            "[freertos]\npriorities = 9\ncommon = { urgency = 0, queue = 1 }\n[cpu]",
            "no call that starts it on atmega128",
        ),
        ("[cpu]", "[linux]\nmode = \"exact\"\n[cpu]", "no Linux runs"),
    ] {
        let folder = TempDir::new().unwrap();
        let system = changed(&folder, "motor-controller", from, to);
        let generated = generate(folder.path(), &system, &FOR_THE_CHIP);
        for command in ["check", "tune"] {
            let refused = run(weir().current_dir(folder.path()).arg(command).arg(&system));
            assert_eq!(refused.code, Some(2), "{command} {to}: {}", refused.out);
            assert!(refused.err.contains(message), "{command}: {}", refused.err);
            assert_eq!(place(&refused), place(&generated), "{command} {to}");
        }
        assert_eq!(generated.code, Some(2), "{to}");
        assert!(generated.err.contains(message), "{}", generated.err);
        assert_eq!(files(folder.path()), ["system.toml"]);
    }
    // A limit in hardware is kept by the hardware, and the code for the chip contains the other
    // limits.
    let folder = TempDir::new().unwrap();
    let hardware = "policy = \"strict\", rate = \"50Hz\", place = \"hardware\"";
    let system = changed(&folder, "motor-controller", BUTTON, hardware);
    for arguments in [&FOR_THE_CHIP[..], &["--rtl"]] {
        let made = generate(folder.path(), &system, arguments);
        assert_eq!(made.code, Some(0), "{}", made.err);
    }
}

#[test]
fn bad_arguments_and_files_are_answered() {
    let folder = TempDir::new().unwrap();
    let node = example("shared-timer");
    let ask = |system: &Path, arguments: &[&str], message: &str| {
        let refused = generate(folder.path(), system, arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}: {}", refused.out);
        assert!(
            refused.err.contains(message),
            "{arguments:?}: {}",
            refused.err
        );
    };
    ask(&node, &["--chip", "atmega8"], "atmega128");
    ask(&node, &[], "--chip");
    ask(
        &node,
        &["--chip", "atmega128", "--json", "--output", "-"],
        "standard output",
    );
    ask(
        &node,
        &["--chip", "atmega128", "--force", "--output", "."],
        "it names a folder",
    );
    ask(Path::new("missing.toml"), &FOR_THE_CHIP, "missing.toml");
    let broken = changed(&folder, "shared-timer", "schema = 1", "schema = 2");
    ask(&broken, &FOR_THE_CHIP, "schema");
    assert_eq!(files(folder.path()), ["system.toml"]);
}

#[test]
fn limits_that_guarantee_nothing_are_generated_with_a_note() {
    let folder = TempDir::new().unwrap();
    let node = example("shared-timer");
    let quiet = generate(folder.path(), &node, &FOR_THE_CHIP);
    assert!(!quiet.err.contains("note:"), "{}", quiet.err);
    // The work exceeds the processor's capacity.
    let system = changed(&folder, "shared-timer", "wcet = \"6ms\"", "wcet = \"19ms\"");
    let noted = generate(folder.path(), &system, &FOR_THE_CHIP);
    assert_eq!(noted.code, Some(0), "{}", noted.err);
    assert!(noted.err.contains("weir check"), "{}", noted.err);
    // No bottom half can meet this deadline of packets.
    let command = "port = 5000 }\n";
    let late = format!("{command}deadline = \"100us\"\n");
    let system = changed(&folder, "rtos-node", command, &late);
    let on_freertos = ["--chip", "cortex-m3", "--rtos", "freertos"];
    let noted = generate(folder.path(), &system, &on_freertos);
    assert_eq!(noted.code, Some(0), "{}", noted.err);
    assert!(noted.err.contains("weir check"), "{}", noted.err);
}

#[test]
fn frames_without_a_quota_are_noted() {
    let folder = TempDir::new().unwrap();
    let on_freertos = ["--chip", "cortex-m3", "--rtos", "freertos"];
    let apart = generate(folder.path(), &example("rtos-node"), &on_freertos);
    assert!(!apart.err.contains("buffers of"), "{}", apart.err);
    let common = ("common = { urgency = 2,", "common = { urgency = 5,");
    let shared = changed(&folder, "rtos-node", common.0, common.1);
    let noted = generate(folder.path(), &shared, &on_freertos);
    assert_eq!(noted.code, Some(0), "{}", noted.err);
    assert!(
        noted
            .err
            .contains("frames of `common` can use up the buffers of log"),
        "{}",
        noted.err
    );
}

#[test]
fn receivers_on_freertos_are_a_header_and_a_file_beside_it() {
    let folder = TempDir::new().unwrap();
    let node = example("rtos-node");
    let on_freertos = ["--chip", "cortex-m3", "--rtos", "freertos"];
    let made = generate(folder.path(), &node, &on_freertos);
    assert_eq!(made.code, Some(0), "{}", made.err);
    // The command warns about the costs if another compiler is installed.
    let is_of_costs = |line: &str| line.contains("the costs of interrupts were measured with");
    assert!(made.err.lines().all(is_of_costs), "{}", made.err);
    assert!(
        made.out.contains("weir_system.c has the receivers of"),
        "{}",
        made.out
    );
    assert_eq!(files(folder.path()), ["weir_system.c", "weir_system.h"]);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let texts = [read("weir_system.h"), read("weir_system.c")];

    // Generating again prints the decisions as JSON.
    let json = generate(
        folder.path(),
        &node,
        &[&on_freertos[..], &["--json"]].concat(),
    );
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["receivers_file"], "weir_system.c");
    assert_eq!(json["freertos"]["receivers"][1]["budget"], 1);
    assert_eq!(texts, [read("weir_system.h"), read("weir_system.c")]);

    // A file that Weir did not write is left alone, and then neither file is written.
    std::fs::write(folder.path().join("weir_system.c"), "mine").unwrap();
    std::fs::remove_file(folder.path().join("weir_system.h")).unwrap();
    let refused = generate(folder.path(), &node, &on_freertos);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("weir_system.c"), "{}", refused.err);
    assert_eq!(files(folder.path()), ["weir_system.c"]);

    for (arguments, message) in [
        (&["--output", "-"][..], "a header and a C file beside it"),
        (&["--output", "limits.c"], "a file that ends with `.h`"),
        (&["--output", "a\"b.h"], "C cannot include"),
        (&["--output", "é.h"], "C cannot include"),
    ] {
        let refused = generate(
            folder.path(),
            &node,
            &[&on_freertos[..], arguments].concat(),
        );
        assert_eq!(refused.code, Some(2), "{arguments:?}");
        assert!(refused.err.contains(message), "{}", refused.err);
    }
    for (arguments, message) in [
        (&["--rtos", "freertos"][..], "--chip"),
        (&["--chip", "cortex-m3", "--rtos", "zephyr"], "freertos"),
        (&["--rtl", "--rtos", "freertos"], "cannot be used"),
    ] {
        let refused = generate(folder.path(), &node, arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}");
        assert!(refused.err.contains(message), "{}", refused.err);
    }
    let system = changed(&folder, "rtos-node", "port = 514", "port = 5000");
    let refused = generate(folder.path(), &system, &on_freertos);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.err.contains("another receiver has"),
        "{}",
        refused.err
    );
}
