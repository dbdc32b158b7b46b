#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Tests the programs of papers/ themselves: Clippy, their own tests, and what the node refuses.
set -euo pipefail
cd "$(dirname "$0")/../../papers"

cargo clippy --locked --workspace --all-targets
cargo test --locked
../boards/mps2-an385/node/test.sh
