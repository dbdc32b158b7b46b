// SPDX-License-Identifier: MIT OR Apache-2.0
//! Embeds every folder of boards/ that has a board.toml in the program, so that a new board needs
//! no new code.
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let boards = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../boards");
    println!("cargo::rerun-if-changed={}", boards.display());
    let mut folders: Vec<_> = fs::read_dir(&boards)
        .expect("boards/ is a part of the repository")
        .map(|entry| entry.expect("boards/ can be read").path())
        .filter(|folder| folder.join("board.toml").is_file())
        .collect();
    folders.sort();
    let mut list = String::from("&[\n");
    for folder in folders {
        let (facts, costs) = (folder.join("board.toml"), folder.join("costs.toml"));
        println!("cargo::rerun-if-changed={}", facts.display());
        println!("cargo::rerun-if-changed={}", costs.display());
        let name = folder.file_name().and_then(|name| name.to_str());
        let name = name.expect("a folder's name is UTF-8");
        writeln!(
            list,
            "({name:?}, include_str!({facts:?}), include_str!({costs:?})),"
        )
        .expect("a string takes any text");
    }
    list.push(']');
    let to = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join("boards.rs");
    fs::write(to, list).expect("cargo's folder can be written");
}
