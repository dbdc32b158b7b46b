// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `weir verify`.

use std::path::Path;

use crate::common::{Printed, weir};
use serde_json::Value;
use tempfile::TempDir;

/// A system file with the output of `weir check --json` about it, in a temporary folder.
struct Proof {
    folder: TempDir,
    json: Value,
}

impl Proof {
    /// Makes the proof of the node that the tests of `weir check` use.
    fn of_node() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("system.toml");
        std::fs::write(&path, include_str!("data/node.toml")).unwrap();
        let printed = run("check", folder.path(), &["system.toml", "--json"], "");
        let json = serde_json::from_str(&printed.out).unwrap();
        Self { folder, json }
    }

    fn verify(&self, arguments: &[&str]) -> Printed {
        std::fs::write(self.folder.path().join("proof.json"), self.json.to_string()).unwrap();
        run(
            "verify",
            self.folder.path(),
            &[&["proof.json"], arguments].concat(),
            "",
        )
    }

    fn certificate(&mut self) -> &mut Value {
        &mut self.json["certificate"]
    }
}

fn run(command: &str, folder: &Path, arguments: &[&str], input: impl Into<Vec<u8>>) -> Printed {
    crate::common::run(
        weir()
            .arg(command)
            .args(arguments)
            .current_dir(folder)
            .write_stdin(input),
    )
}

#[test]
fn what_check_says_is_valid_and_of_its_file() {
    let printed = Proof::of_node().verify(&["--system", "system.toml"]);
    assert_eq!(printed.code, Some(0), "{}{}", printed.out, printed.err);
    assert!(printed.out.starts_with("valid: "), "{}", printed.out);
    assert!(
        printed.out.contains("is guaranteed") && printed.out.contains("units"),
        "{}",
        printed.out
    );
}

#[test]
fn a_bare_certificate_comes_by_standard_input_too() {
    let mut proof = Proof::of_node();
    let bare = proof.certificate().to_string();
    let folder = proof.folder.path();
    let printed = run("verify", folder, &["-", "--system", "system.toml"], bare);
    assert_eq!(printed.code, Some(0), "{}{}", printed.out, printed.err);
}

#[test]
fn without_a_system_file_it_is_valid_of_an_unnamed_system() {
    let printed = Proof::of_node().verify(&[]);
    assert_eq!(printed.code, Some(3), "{}{}", printed.out, printed.err);
    assert!(
        printed.out.starts_with("valid, of an unnamed system: ")
            && printed.out.contains("--system"),
        "{}",
        printed.out
    );
}

#[test]
fn a_smaller_response_is_rejected_with_its_place() {
    let mut proof = Proof::of_node();
    let rows = proof.certificate()["rows"].as_array_mut().unwrap();
    let row = rows
        .iter_mut()
        .find(|row| row["unit"][0] == "task")
        .unwrap();
    let response = &mut row["outcome"]["bound"]["response"];
    *response = (response.as_u64().unwrap() - 1).into();
    let printed = proof.verify(&[]);
    assert_eq!(printed.code, Some(1), "{}{}", printed.out, printed.err);
    assert!(
        printed.out.starts_with("rejected: ")
            && printed.out.contains("task `")
            && printed.out.contains("response: "),
        "{}",
        printed.out
    );
    let json: Value = serde_json::from_str(&proof.verify(&["--json"]).out).unwrap();
    assert_eq!(json["valid"], false);
    // The row beside the certificate contains another number, too.
    assert_eq!(json["rejections"].as_array().unwrap().len(), 2);
}

#[test]
fn a_row_around_the_certificate_says_what_the_certificate_shows() {
    for (key, value) in [
        ("response_cycles", 1.into()),
        ("deadline_cycles", 9_000_000.into()),
        ("name", Value::from("another")),
        ("state", "missed".into()),
    ] {
        let mut proof = Proof::of_node();
        let row = proof.json["rows"]
            .as_array_mut()
            .unwrap()
            .last_mut()
            .unwrap();
        row[key] = value;
        let printed = proof.verify(&[]);
        assert_eq!(printed.code, Some(1), "{key}: {}", printed.out);
        assert!(
            printed.out.contains("beside the certificate, rows["),
            "{}",
            printed.out
        );
    }
    let mut proof = Proof::of_node();
    proof.json["sentence"] = "guaranteed: everything".into();
    let printed = proof.verify(&[]);
    assert_eq!(printed.code, Some(3));
    assert!(printed.out.contains("not checked") && printed.out.contains("sentence"));
    let printed = proof.verify(&["--system", "system.toml"]);
    assert_eq!(printed.code, Some(1));
    assert!(
        printed.out.contains("beside the certificate, sentence"),
        "{}",
        printed.out
    );
}

#[test]
fn another_file_and_another_description_are_rejected() {
    let mut proof = Proof::of_node();
    let file = proof.folder.path().join("system.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n# changed\n")).unwrap();
    let printed = proof.verify(&["--system", "system.toml"]);
    assert_eq!(printed.code, Some(1));
    assert!(printed.out.contains("system.sha256: "), "{}", printed.out);

    // No claim depends on the clock, so that only the file can reveal the change.
    std::fs::write(&file, text).unwrap();
    proof.certificate()["system"]["cpu"]["clock_hz"] = 7.into();
    proof.json = proof.certificate().clone();
    assert_eq!(proof.verify(&[]).code, Some(3));
    let printed = proof.verify(&["--system", "system.toml"]);
    assert_eq!(printed.code, Some(1));
    assert!(
        printed.out.contains("system.cpu.clock_hz: "),
        "{}",
        printed.out
    );
}

#[test]
fn what_is_no_certificate_is_bad_input() {
    let proof = Proof::of_node();
    let folder = proof.folder.path();
    for (input, part) in [
        ("", "certificate"),
        ("\u{0}\u{1}", "certificate"),
        ("{\"certificate\": 1}", "version 1"),
        ("{\"certificate\": 2}", "missing field"),
    ] {
        let printed = run("verify", folder, &["-"], input);
        assert_eq!(printed.code, Some(2), "{input}: {}", printed.out);
        assert!(printed.err.contains(part), "{input}: {}", printed.err);
        assert!(!printed.err.contains("panicked"), "{}", printed.err);
    }
    let missing = run("verify", folder, &["missing.json"], "");
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("missing.json"), "{}", missing.err);
}
