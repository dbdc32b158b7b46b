// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of `weir-lab reproduce` through the command line.
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use clap::CommandFactory as _;

use crate::common::{EXPERIMENT, repository, reproduce, said};

#[cfg(unix)]
const GUESTS: &str = r#"
title = "A small one"
paper = "none"
section = "1"
about = "One guest."
kind = "linux"
claim = []
[linux]
kernel = "6.1"
seeds = [1]
feed = []
feed-for = "1s"
x = { title = "x", values = [1] }
series = []
process = [{ id = "cpu", command = "spin", awaited = true }]
variant = [{ id = "one", label = "one", colour = "blue" }]
"#;

fn content(folder: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

#[test]
fn results_are_written_and_the_claims_are_shown() {
    let root = repository(EXPERIMENT);
    // The repository is also found from one of its folders.
    let inside = root.path().join("core");
    let assert = reproduce(&inside, &["none/small"])
        .env("TMPDIR", root.path().join("tmp"))
        .assert()
        .code(0);
    let text = said(&assert);
    assert!(
        text.contains("serial.rate") && text.contains("11520"),
        "{text}"
    );
    let results = inside.join("results/none");
    let svg = std::fs::read_to_string(results.join("small.svg")).unwrap();
    assert!(svg.contains("A small one"));
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(results.join("small.json")).unwrap()).unwrap();
    assert_eq!(json["name"], "none/small");
    assert_eq!(json["claims"][0]["measured"], 11520.0);
    assert_eq!(json["claims"][0]["paper"], 11500.0);
    assert_eq!(json["claims"][0]["met"], true);
    let lost = json["claims"][1]["measured"].as_f64().unwrap();
    // There are 11520 interrupts in 4 million cycles. Each takes from 35 cycles (avr-gcc 14.2) to
    // 44 (5.4).
    assert!((9.8..13.0).contains(&lost), "{lost}");
    assert_eq!(
        content(&root.path().join("tmp")),
        [] as [&Path; 0],
        "left behind"
    );
}

#[test]
fn results_take_the_place_of_earlier_ones_and_of_nothing_else() {
    let root = repository(EXPERIMENT);
    let results = root.path().join("results/none");
    let reproduce = |more: &[&str], code: i32| {
        let arguments = [&["none/small"], more].concat();
        said(&reproduce(root.path(), &arguments).assert().code(code))
    };
    reproduce(&[], 0);
    reproduce(&[], 0);
    for name in ["small.json", "small.svg"] {
        std::fs::write(results.join(name), "of great value").unwrap();
        let text = reproduce(&[], 2);
        assert!(text.contains("it is there already"), "{text}");
        assert_eq!(
            std::fs::read(results.join(name)).unwrap(),
            b"of great value"
        );
        reproduce(&["--force"], 0);
    }
    let text = reproduce(&["--out", "no/such"], 2);
    assert!(text.contains("the folder no does not exist"), "{text}");
    assert!(!root.path().join("no").exists());
    let text = reproduce(&["--out", "core/../papers/experiments/none/small.toml"], 2);
    assert!(text.contains("it is no folder"), "{text}");
}

/// Add a new option that takes a path to one of these lists, and add a test for what the option
/// writes.
#[test]
fn every_option_that_takes_a_path_is_an_input_or_obeys_the_rule_for_outputs() {
    let (inputs, outputs) = (["reproduce root"], ["reproduce out"]);
    let commands = weir_lab::commands::Cli::command();
    let path = std::any::TypeId::of::<std::path::PathBuf>();
    let paths = commands.get_subcommands().flat_map(|command| {
        let paths = command
            .get_arguments()
            .filter(|of| of.get_value_parser().type_id() == path);
        paths.map(move |of| format!("{} {}", command.get_name(), of.get_id()))
    });
    let mut paths: Vec<String> = paths.collect();
    let mut known = [&inputs[..], &outputs].concat();
    paths.sort();
    known.sort_unstable();
    assert_eq!(paths, known);
}

#[test]
fn a_claim_that_is_not_met_is_exit_code_1_and_the_results_are_written() {
    let root = repository(&EXPERIMENT.replace("at_most = 50", "at_most = 5"));
    let assert = reproduce(root.path(), &["none/small", "--json", "--out", "elsewhere"])
        .assert()
        .code(1);
    let json: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert_eq!(json["claims"][1]["met"], false);
    assert!(root.path().join("elsewhere/none/small.json").is_file());
}

#[test]
fn a_goal_that_is_known_to_be_missed_fails_only_behind_today() {
    for (today, code, says) in [("40", 0, "missed, as known"), ("6", 1, "behind today's")] {
        let claim = format!("at_most = 5, today = {today}");
        let root = repository(&EXPERIMENT.replace("at_most = 50", &claim));
        let assert = reproduce(root.path(), &["none/small"]).assert().code(code);
        let text = said(&assert);
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn an_unknown_experiment_lists_those_that_exist() {
    let root = repository(EXPERIMENT);
    let assert = reproduce(root.path(), &["none/large"]).assert().code(2);
    let text = said(&assert);
    assert!(
        text.contains("none/large") && text.contains("none/small"),
        "{text}"
    );
    assert!(!root.path().join("results").exists());
    let assert = reproduce(root.path(), &["--list"]).assert().code(0);
    assert!(said(&assert).contains("none/small A small one"));
}

#[test]
fn outside_a_repository_the_way_to_name_one_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let assert = reproduce(folder.path(), &["none/small"]).assert().code(2);
    assert!(said(&assert).contains("--root"), "{}", said(&assert));
}

#[test]
fn a_mistake_in_the_file_is_shown_at_its_line_and_nothing_is_written() {
    let root = repository(&EXPERIMENT.replace("warmup", "warm_up"));
    let assert = reproduce(root.path(), &["none/small"]).assert().code(2);
    let text = said(&assert);
    assert!(
        text.contains("small.toml:13") && text.contains("warm_up"),
        "{text}"
    );
    assert!(!root.path().join("results").exists());
}

#[test]
fn without_a_compiler_it_says_what_installs_one() {
    let root = repository(EXPERIMENT);
    let assert = reproduce(root.path(), &["none/small"])
        .env("PATH", root.path().join("tmp"))
        .assert()
        .code(2);
    assert!(
        said(&assert).contains("scripts/bootstrap.sh"),
        "{}",
        said(&assert)
    );
    assert!(!root.path().join("results").exists());
}

/// Waits until the condition holds. Fails after a time limit.
#[cfg(unix)]
fn until(what: &str, condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends SIGINT to the program and to the processes that it started, as a terminal does for Ctrl-C.
/// Waits first until `begun` is true of the program's temporary folder.
#[cfg(unix)]
fn interrupted_when(root: &tempfile::TempDir, begun: impl Fn(&Path) -> bool) {
    use std::os::unix::process::CommandExt;
    let tmp = root.path().join("tmp");
    let mut child = Process::new(env!("CARGO_BIN_EXE_weir-lab"))
        .current_dir(root.path())
        .env("TMPDIR", &tmp)
        .args(["reproduce", "none/small"])
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    until("it never began", || begun(&tmp));
    // Use the shell's built-in kill: a minimal Debian has no kill program.
    let sent = Process::new("sh")
        .args(["-c", "kill -s INT -- -$0", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let left = content(&tmp);
    assert!(left.is_empty(), "left behind: {left:?}");
    assert!(!root.path().join("results").exists());
}

/// A repository with an experiment that takes long enough to be interrupted.
#[cfg(unix)]
fn long() -> tempfile::TempDir {
    repository(&EXPERIMENT.replace("length = \"20ms\"", "length = \"1000s\""))
}

#[cfg(unix)]
#[test]
fn an_interruption_while_it_compiles_leaves_nothing_behind() {
    /// Whether the folder contains a temporary file of the compiler, so that the compiler is
    /// running.
    fn compiles(folder: &Path) -> bool {
        // Ignore errors: other folders appear and disappear in the meantime.
        std::fs::read_dir(folder).is_ok_and(|entries| {
            entries.flatten().any(|entry| {
                entry.file_name().to_string_lossy().starts_with("cc") || compiles(&entry.path())
            })
        })
    }
    interrupted_when(&long(), compiles);
}

#[cfg(unix)]
#[test]
fn an_interruption_while_it_runs_leaves_nothing_behind() {
    interrupted_when(&long(), |tmp| {
        content(tmp)
            .iter()
            .any(|folder| folder.join("c.none.elf").is_file())
    });
}

#[cfg(unix)]
#[test]
fn an_interruption_while_a_guest_runs_leaves_nothing_behind() {
    use std::os::unix::fs::PermissionsExt;
    let root = repository(GUESTS);
    let scripts = root.path().join("boards/linux");
    std::fs::create_dir_all(&scripts).unwrap();
    // A script that takes the guest's place. It starts before the interruption and is ended by it.
    for (name, text) in [
        ("build.sh", "#!/bin/sh\necho kernel >version\npwd\n"),
        (
            "run.sh",
            "#!/bin/sh\ntrap ': >\"$4/sent\"; exit 2' INT\nmkdir -p \"$4\"\n: >\"$4/console\"\nsleep 60\n",
        ),
    ] {
        let path = scripts.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    interrupted_when(&root, |tmp| {
        content(tmp)
            .iter()
            .any(|folder| folder.join("out/console").is_file())
    });
}
