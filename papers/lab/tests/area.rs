// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of experiments that judge committed place-and-route runs, through the command line.
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const EXPERIMENT: &str = r#"
title = "A small one"
paper = "none"
section = "1"
about = "One processor on one device."
kind = "area"
claim = [
    { id = "cpu.fpga.cells", what = "cells", unit = "cells", paper = 59, at_most = 36 },
    { id = "cpu.fpga.cells_percent", what = "of the system", unit = "%", at_most = 4 },
    { id = "cpu.fpga.pairs", what = "pairs", unit = "pairs", at_least = 20 },
    { id = "cpu.fpga.fmax_bound", what = "bound", unit = "%", paper = -3.5, at_least = -1 },
    { id = "source.fpga.further_luts", what = "further", unit = "LUT4", at_most = 17 },
    { id = "memory.fpga.luts_per_source_64", what = "memory", unit = "LUT4", at_most = 6 },
]
[area]
data = "data"
flow = "flow"
processors = ["cpu"]
devices = ["fpga"]
memory = [64]
sources = 3
margin = -1
paper = -3.5
"#;

const COUNTS: &str = "\
design,device,pins,sources,clock_mhz,phase_bits,rate_bits,luts,carries,flip_flops,memories,cells
cpu,fpga,1,1,12,15,10,900,0,0,0,1030
source,fpga,1,0,,,,3,0,0,,
source,fpga,1,1,12,15,10,35,0,0,,
source,fpga,2,0,,,,5,0,0,,
source,fpga,2,2,12,15,10,52,0,0,,
source,fpga,3,0,,,,7,0,0,,
source,fpga,3,3,12,15,10,71,0,0,,
memory,fpga,64,64,,16,16,320,0,0,2,
";

/// The text of runs.csv for this number of seeds, with and without a limiter. With a limiter, a
/// system is slower by `slower` percent on average. The frequency varies by 2 % from seed to seed.
fn runs(seeds: u32, slower: f64) -> String {
    let mut text = "cpu,device,sources,seed,cells,flip_flops,fmax_mhz,netlist\n".to_owned();
    for seed in 1..=seeds {
        let noise = if seed % 2 == 0 { 2.0 } else { -2.0 };
        let with = 50.0 * (1.0 + (noise - slower) / 100.0);
        writeln!(
            text,
            "cpu,fpga,0,{seed},1000,,50.0,a\ncpu,fpga,1,{seed},1030,,{with},b"
        )
        .unwrap();
    }
    text
}

/// A repository with the experiment `none/small` and this runs.csv. `None` leaves the file out.
fn repository(runs: Option<&str>) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for folder in ["papers/experiments/none", "core", "data"] {
        std::fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    std::fs::write(
        root.path().join("papers/experiments/none/small.toml"),
        EXPERIMENT,
    )
    .unwrap();
    std::fs::write(root.path().join("data/counts.csv"), COUNTS).unwrap();
    if let Some(runs) = runs {
        std::fs::write(root.path().join("data/runs.csv"), runs).unwrap();
    }
    root
}

fn reproduce(root: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir-lab"))
        .current_dir(root)
        .args(["reproduce", "none/small"])
        .args(arguments)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(text).unwrap().replace('│', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_runs_are_judged_by_the_bound_of_their_mean_and_drawn() {
    let root = repository(Some(&runs(112, 0.0)));
    let output = reproduce(root.path(), &["--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let measured: Vec<f64> = json["claims"]
        .as_array()
        .unwrap()
        .iter()
        .map(|claim| claim["measured"].as_f64().unwrap())
        .collect();
    let [cells, share, pairs, bound, further, memory] = measured[..] else {
        panic!("{json}");
    };
    assert_eq!((cells, pairs, further, memory), (30.0, 112.0, 17.0, 5.0));
    assert!((share - 3.0).abs() < 1e-9, "{share}");
    // The expected bound is 0 - t(0.95, 111) * 2.009 / sqrt(112), with t = 1.659 from standard
    // tables.
    assert!((bound + 0.3149).abs() < 1e-3, "{bound}");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let svg = std::fs::read_to_string(root.path().join("results/none/small.svg")).unwrap();
    assert_eq!(svg.matches("<circle").count(), 3 * 112, "every placement");
    assert!(said(&reproduce(root.path(), &[])).contains("cpu.fpga 1000 30.0 3.00 112"));
}

#[test]
fn too_few_pairs_or_a_slower_system_are_no_proof() {
    for (runs, unmet) in [(runs(12, 0.0), vec![2, 3]), (runs(112, 0.8), vec![3])] {
        let root = repository(Some(&runs));
        let output = reproduce(root.path(), &["--json"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found: Vec<usize> = (0..6)
            .filter(|&claim| json["claims"][claim]["met"] == false)
            .collect();
        assert_eq!(found, unmet, "{json}");
    }
}

#[test]
fn without_runs_the_way_to_them_is_told_and_goes() {
    let root = repository(None);
    let output = reproduce(root.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("--measure") && said(&output).contains("runs.csv"),
        "{}",
        said(&output)
    );

    let flow = root.path().join("flow");
    std::fs::write(root.path().join("new.csv"), runs(40, 0.0)).unwrap();
    let write = |script: &str| {
        std::fs::write(&flow, script).unwrap();
        std::fs::set_permissions(&flow, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    write("#!/bin/sh\necho 'nextpnr is missing' >&2\nexit 2\n");
    let output = reproduce(root.path(), &["--measure"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("nextpnr is missing"),
        "{}",
        said(&output)
    );
    write("#!/bin/sh\necho noise\necho placing >&2\ncp new.csv data/runs.csv\n");
    let output = reproduce(root.path(), &["--measure", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("placing\n"));
    serde_json::from_slice::<Value>(&output.stdout).unwrap();
}

#[test]
fn there_is_no_quick_form_of_a_judgement() {
    let root = repository(Some(&runs(20, 0.0)));
    let output = reproduce(root.path(), &["--quick"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("has no quick form"),
        "{}",
        said(&output)
    );
}
