#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Tests the programs of papers/ themselves: runs Clippy and their own tests, and checks which
# arguments the node rejects.
set -euo pipefail
[[ ${1-} != @(-h|--help) ]] || exec sed -n '4,/^set /s/^# \{0,1\}//p' "$0"
cd "$(dirname "$0")/../.."
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR
cd papers

../scripts/lint-rust.sh papers
cargo test --locked
../boards/mps2-an385/node/test.sh
