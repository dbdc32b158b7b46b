// SPDX-License-Identifier: GPL-3.0-or-later
//! Helpers for tests: a small repository with one experiment, and `weir-lab reproduce` in it.
use std::path::Path;

use assert_cmd::Command;

const FIRMWARE: &str = r#"
#include <avr/interrupt.h>
#include <stdint.h>
volatile uint32_t progress;
volatile uint16_t handled;
ISR(INT0_vect) { handled++; }
int main(void)
{
    EICRA = 0x03;
    EIMSK = 1;
    sei();
    for (;;) {
        progress++;
    }
}
"#;

pub const EXPERIMENT: &str = r#"
title = "A small one"
paper = "none"
section = "1"
about = "One source, one firmware."
kind = "firmware"
claim = [
    { id = "serial.rate", what = "its rate", unit = "Hz", paper = 11500, within = [11000, 12000] },
    { id = "c.none.most_lost", what = "what it takes", unit = "%", at_most = 50 },
]
[run]
clock = "4MHz"
warmup = "1ms"
length = "20ms"
[firmware]
measure = [{ id = "VARIANT.most_lost", value = "VARIANT.max" }]
[[firmware.flood]]
rates = ["x"]
series = [{ id = "VARIANT", y = "CPU lost, %", value = "100 * VARIANT.lost", where = "x > 11000 && x < 12000" }]
[flavour.c]
sources = ["papers/experiments/none/node.c"]
[[variant]]
id = "c.none"
role = "unprotected"
[[panel]]
title = "all"
x-scale = "logarithmic"
curves = [{ of = "c.none", label = "unprotected", colour = "black" }]
"#;

/// A repository with the experiment `none/small`, whose file has this text.
pub fn repository(experiment: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("papers/experiments/none");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(root.path().join("core")).unwrap();
    std::fs::create_dir_all(root.path().join("tmp")).unwrap();
    std::fs::write(folder.join("node.c"), FIRMWARE).unwrap();
    std::fs::write(folder.join("small.toml"), experiment).unwrap();
    root
}

pub fn reproduce(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-lab"));
    command
        .current_dir(root)
        .env("TMPDIR", root.join("tmp"))
        .arg("reproduce")
        .args(arguments);
    command
}

/// The output on stdout and stderr, without the line breaks that miette inserts.
pub fn said(assert: &assert_cmd::assert::Assert) -> String {
    let output = assert.get_output();
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(text)
        .unwrap()
        .replace('│', " ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
