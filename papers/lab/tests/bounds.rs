// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of experiments that compare bounds with the worst attacks found, in a short form: one case
//! and few runs. `weir reproduce regehr2005/bounds` runs all cases.
use std::os::unix::fs::symlink;
use std::path::Path;

use assert_cmd::Command;

const EXPERIMENT: &str = r#"
title = "A small one"
paper = "none"
section = "1"
about = "One limit."
kind = "bounds"
claim = [
    { id = "min_ratio", what = "nothing is longer than its bound", unit = "x", at_least = 1 },
    { id = "strict-lazy.ratio", what = "nor much shorter", unit = "x", at_most = 1.15 },
]
[run]
clock = "4MHz"
warmup = "1ms"
length = "1ms"
[bounds]
runs = 80
seed = 1
[bounds.system]
schema = 1
cpu = { board = "atmega128", clock = "4MHz" }
source = { handler = { measured = true }, registers = "0 cycles", max_work = 1 }
receiver = { name = "job", urgency = 1, period = "100000 cycles", wcet = { measured = true } }
[[bounds.case]]
name = "strict-lazy"
of = "c"
watch = "job"
about = ""
source = [{ name = "a", vector = "INT0", handler = { worst = "400 cycles" }, limit = { policy = "strict", timing = "lazy", interval = "2000 cycles", timer = "TIMER1A", prescaler = 1 } }]
receiver = [{ wcet = { worst = "16000 cycles" } }]
[flavour.c]
sources = ["firmware/bounds.c", "core/src/limit.c"]
includes = ["core/include", "ports/avr/include"]
defines = ["WEIR_TICK_BITS=16", "WEIR_LIMIT_RECORD=0"]
flags = ["-fno-ipa-icf"]
"#;

/// A repository with the experiment `none/small`, whose file is `experiment`.
fn repository(experiment: &str) -> tempfile::TempDir {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("papers/experiments/none");
    std::fs::create_dir_all(&folder).unwrap();
    for (from, to) in [
        ("core", "core"),
        ("ports", "ports"),
        ("papers/experiments/regehr2005/firmware", "firmware"),
    ] {
        symlink(
            here.join(from).canonicalize().unwrap(),
            root.path().join(to),
        )
        .unwrap();
    }
    std::fs::write(folder.join("small.toml"), experiment).unwrap();
    root
}

/// Runs `weir-lab reproduce`. Returns the exit code, and the output without line breaks.
fn reproduce(root: &Path, options: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_weir-lab"))
        .current_dir(root)
        .args(["reproduce", "none/small"])
        .args(options)
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let text = text.replace('│', " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    (output.status.code().unwrap(), words.join(" "))
}

#[test]
fn no_attack_goes_beyond_the_bound_and_the_same_ones_are_found_again() {
    let root = repository(EXPERIMENT);
    let (code, said) = reproduce(root.path(), &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("observed, cycles"), "{said}");
    let (_, again) = reproduce(root.path(), &[]);
    assert_eq!(said, again);
}

#[test]
fn what_the_system_file_states_is_held_against_the_board() {
    let stated = |from: &str, to: &str| {
        assert!(EXPERIMENT.contains(from));
        reproduce(repository(&EXPERIMENT.replace(from, to)).path(), &[])
    };
    let (code, said) = stated("\"400 cycles\"", "\"401 cycles\"");
    assert_eq!(code, 0, "another body is compiled: {said}");
    let (code, said) = stated("\"400 cycles\"", "\"779 cycles\"");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("a body takes 14 to 778 cycles"), "{said}");
    let (code, said) = stated("name = \"a\"", "name = \"z\"");
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("knows no source `z`") && said.contains("a, b, c, watched"),
        "{said}"
    );
}

#[test]
fn a_bound_that_is_too_small_is_found_out() {
    let cpu = "clock = \"4MHz\" }\nsource";
    let costs = "clock = \"4MHz\", costs = { strict = { lazy = { request_served = \"20 cycles\", request_refused = \"20 cycles\", expiry_served = \"20 cycles\", expiry_empty = \"20 cycles\" } } } }\nsource";
    assert!(EXPERIMENT.contains(cpu));
    let root = repository(&EXPERIMENT.replace(cpu, costs));
    let (code, said) = reproduce(root.path(), &[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("not met: min_ratio"), "{said}");
}

#[test]
fn the_quick_form_has_fewer_runs_if_it_has_a_number_of_its_own() {
    let quick = |number| EXPERIMENT.replace("runs = 80", &format!("runs = 80\nquick = {number}"));
    let shown = |experiment: &str, options: &[&str]| {
        let root = repository(experiment);
        reproduce(root.path(), options)
    };
    let few = shown(&EXPERIMENT.replace("runs = 80", "runs = 20"), &[]);
    assert_eq!(shown(&quick(20), &["--quick"]).1, few.1);
    assert_eq!(shown(&quick(100), &["--quick"]), shown(EXPERIMENT, &[]));
    let (code, said) = shown(EXPERIMENT, &["--quick"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("has no quick form"), "{said}");
    let (code, said) = shown(&quick(0), &["--quick"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("nonzero"), "{said}");
}
