// SPDX-License-Identifier: GPL-3.0-or-later
//! The inputs of experiments: everything that can change a result. These are the sources of
//! firmware, programs and emulators, the experiment's files, the costs, and the versions of tools.
use std::process::Command;

use weir_report::checksum;

use super::work::Work;
use crate::experiment::{Checkout, ExperimentError};

/// The inputs that all kinds of experiments share: the limiter's sources, and the crates.
const COMMON: &[&str] = &[
    "core/include",
    "core/src",
    "crates/arrivals/src",
    "crates/boards/src",
    "crates/model/src",
    "Cargo.lock",
    "papers/lab/src",
    "papers/Cargo.lock",
];

/// The further inputs of a kind, relative to the repository's root.
fn sources(kind: &str) -> &'static [&'static str] {
    const AVR: &[&str] = &["boards/atmega128", "crates/emulate/src", "ports/avr"];
    match kind {
        "firmware" | "constants" => &[
            "boards/atmega128",
            "boards/soc",
            "crates/emulate/src",
            "papers/experiments/regehr2005/firmware",
            "papers/experiments/regehr2005/firmware-soc",
            "ports/avr",
            "ports/riscv",
            "rtl/limit/src",
        ],
        "bounds" => &[
            "boards/atmega128",
            "crates/analysis/src",
            "crates/emulate/src",
            "crates/generate/src",
            "crates/sim/src",
            "papers/experiments/regehr2005/firmware",
            "ports/avr",
        ],
        "simulation" => &["crates/sim/src", "core"],
        "area" => &["rtl/limit"],
        "linux" => &[
            "boards/linux",
            "crates/linux/src",
            "crates/linux/load/src",
            "papers/experiments/lee2010/systems",
            "papers/experiments/regehr2005/systems",
            "papers/experiments/zhang2006/systems",
        ],
        "node" => &[
            "boards/mps2-an385",
            "crates/analysis/src",
            "crates/emulate/plugin/src",
            "papers/experiments/behnke2021/node",
            "ports/freertos",
        ],
        // The long tests depend on all of the product.
        "long" => &[
            "Cargo.toml",
            "boards",
            "core",
            "crates",
            "examples",
            "ports",
            "requirements.lock",
            "rtl",
            "scripts",
        ],
        _ => AVR,
    }
}

/// The names of folders beside an experiment's file that contain its system files.
const SYSTEMS: [&str; 2] = ["systems", "tone"];

/// A checksum over the inputs of some work at a commit. It covers files under version control, not
/// what is built from them.
///
/// # Errors
/// Returns an error if the commit does not exist or git is missing.
pub fn checksum_at(place: &Checkout, commit: &str, work: &Work) -> Result<String, ExperimentError> {
    let mut paths: Vec<String> = COMMON
        .iter()
        .chain(sources(&work.kind))
        .map(ToString::to_string)
        .collect();
    if work.long_test().is_none() {
        let (paper, name) = work.name.split_once('/').unwrap_or(("", &work.name));
        let folder = format!("papers/experiments/{paper}");
        let mut files = vec![name.to_owned()];
        files.extend(work.bases.iter().cloned());
        paths.extend(files.iter().map(|name| format!("{folder}/{name}.toml")));
        paths.extend(SYSTEMS.iter().map(|systems| format!("{folder}/{systems}")));
    }
    let mut git = Command::new("git");
    git.arg("-C")
        .arg(place.path(""))
        .args(["ls-tree", "-r", commit, "--"])
        .args(&paths);
    let listed = git.output().map_err(|cause| ExperimentError::Read {
        path: place.path(".git"),
        cause,
    })?;
    if !listed.status.success() {
        let said = String::from_utf8_lossy(&listed.stderr);
        return Err(ExperimentError::Evaluation(format!(
            "git cannot list the files of {commit}: {}",
            said.trim()
        )));
    }
    Ok(checksum(&listed.stdout))
}

/// The tools of a kind, each with the version that it prints. Tools that are not installed are left
/// out.
#[must_use]
pub fn tools(kind: &str) -> Vec<String> {
    let named: &[&str] = match kind {
        "firmware" | "constants" | "bounds" => &["avr-gcc", "riscv64-unknown-elf-gcc"],
        "node" => &["arm-none-eabi-gcc", "qemu-system-arm"],
        "linux" => &["qemu-system-x86_64", "gcc", "clang"],
        "long" => &[
            "avr-gcc",
            "arm-none-eabi-gcc",
            "qemu-system-arm",
            "gcc",
            "clang",
            "rustc",
        ],
        _ => &[],
    };
    let version = |tool: &&str| {
        let said = Command::new(tool).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let mut words = text.lines().next()?.split_whitespace().map(str::to_owned);
        // Ignore the date, which Arm's compiler prints after its version.
        let is_number = |word: &String| {
            word.contains('.') && word.chars().all(|of| of.is_ascii_digit() || of == '.')
        };
        let number = words.rfind(is_number)?;
        Some(format!("{tool} {number}"))
    };
    named.iter().filter_map(version).collect()
}
