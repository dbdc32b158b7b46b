// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference in docs/ is the one that the definitions give, and its examples are right.

use std::path::{Path, PathBuf};

/// With this set, the files are written in place of being compared.
const RENEW: &str = "WEIR_RENEW";

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/generated")
        .join(name)
}

fn is_up_to_date(name: &str, wanted: &str) {
    let path = docs(name);
    if std::env::var_os(RENEW).is_some() {
        std::fs::write(&path, wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/generated/{name} is not what crates/model defines: {RENEW}=1 cargo test -p weir-model reference::"
    );
}

#[test]
fn the_page_is_up_to_date() {
    is_up_to_date("system-file.md", &weir_model::reference::markdown());
}

#[test]
fn the_schema_is_up_to_date() {
    is_up_to_date(
        "system-file.schema.json",
        &weir_model::reference::json_schema(),
    );
}
