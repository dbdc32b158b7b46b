// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the BPF programs of src/bpf into objects that `weir-linux` contains.
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let variable = |name: &str| env::var(name).map_err(|error| format!("{name}: {error}"));
    let out = PathBuf::from(variable("OUT_DIR")?);
    let core = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../core/include");
    // libbpf's own headers, in the version that is linked.
    let libbpf = variable("DEP_BPF_INCLUDE")?;
    // Debian keeps the kernel headers that differ between processors in this folder. Other
    // distributions have no such folder and do not need it.
    let machine = format!(
        "/usr/include/{}-linux-gnu",
        variable("CARGO_CFG_TARGET_ARCH")?
    );
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed={}", core.display());
    for entry in fs::read_dir("src/bpf")? {
        let source = entry?.path();
        let Some(name) = source
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".bpf.c"))
        else {
            continue;
        };
        let object = out.join(format!("{name}.bpf.o"));
        let compiled = Command::new("clang")
            .args([
                "-target",
                "bpf",
                "-mcpu=v3",
                "-std=gnu11",
                "-ffreestanding",
                "-O2",
                "-g",
                "-c",
            ])
            .args(["-Wall", "-Wextra", "-Wno-unused-function", "-Werror"])
            .arg("-I")
            .arg(&core)
            .args(["-isystem", &libbpf, "-isystem", &machine])
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .status()
            .map_err(|error| {
                format!("clang cannot be started ({error}); scripts/bootstrap.sh installs it")
            })?;
        if !compiled.success() {
            return Err(format!(
                "clang does not take {}; its message is above",
                source.display()
            )
            .into());
        }
    }
    Ok(())
}
