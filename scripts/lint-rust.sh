#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs Clippy over every crate of a workspace: the root, or the folder that is named. Its findings
# fail with the oldest Rust that we promise (Cargo.toml, rust-version). A newer Rust has lints that
# did not exist when the code was written: these are only shown, because they must not break a
# user's tests.
set -euo pipefail
cd "$(dirname "$0")/../${1-}"

oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
case $(rustc --version) in
"rustc $oldest".*) strict=(-- -D warnings) ;;
*)
    strict=()
    echo "this is $(rustc --version | cut -d' ' -f 1,2): its lints are shown, but only those of Rust $oldest make this check fail" >&2
    ;;
esac
cargo clippy --locked --workspace --all-targets "${strict[@]}"
