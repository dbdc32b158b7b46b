// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that begin with a UTF-8 byte order mark, which some editors write, are read like files
//! without one.

use crate::common::{Printed, node, run, weir};
use tempfile::TempDir;

/// Runs `weir` with `arguments` in a folder with `files`.
fn answer(files: &[(&str, String)], arguments: &[&str]) -> Printed {
    let folder = TempDir::new().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    run(weir().args(arguments).current_dir(folder.path()))
}

#[test]
fn every_file_may_begin_with_a_mark() {
    let system = || ("system.toml", node(&[]));
    let proof = answer(&[system()], &["check", "system.toml", "--json"]).out;
    let name = "button";
    let flood = format!("{name}=trace:recording.csv");
    let recording = "time_us\n100\n5000\n".to_owned();
    let seen = format!("{{\"work\": {{\"{name}\": 1}}}}");
    for (file, others, arguments) in [
        (system(), vec![], &["check", "system.toml"][..]),
        (system(), vec![], &["tune", "system.toml"]),
        (
            ("proof.json", proof),
            vec![system()],
            &["verify", "proof.json", "--system", "system.toml"],
        ),
        (
            ("seen.json", seen),
            vec![system()],
            &["check", "system.toml", "--observed", "seen.json"],
        ),
        (
            ("recording.csv", recording),
            vec![system()],
            &[
                "simulate",
                "system.toml",
                "--duration",
                "10ms",
                "--flood",
                &flood,
            ],
        ),
    ] {
        let (name, content) = file;
        let with = |content: String| {
            let mut files = others.clone();
            files.push((name, content));
            answer(&files, arguments)
        };
        let (plain, marked) = (with(content.clone()), with(format!("\u{feff}{content}")));
        assert_ne!(plain.code, Some(2), "{arguments:?} {}", plain.err);
        assert_eq!(plain.code, marked.code, "{arguments:?} {}", marked.err);
        assert_eq!(plain.out, marked.out, "{arguments:?}");
    }
}
