#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs the product's long tests, proofs and fuzzers, and times its commands. All of them run, then
# the exit code tells whether each passed.
set -euo pipefail
cd "$(dirname "$0")/.."

unmet=()
cargo bench --locked -p weir-cli --bench speed || unmet+=("the speed of the commands")
WEIR_LONG=1 cargo test --locked -p weir-emulate || unmet+=("the long tests of the emulated boards")
rtl/limit/proof/run.py --quick --long scan || unmet+=("the proof of the limiter's scan with 16 and 24 sources")
rtl/limit/area/run.py --check || unmet+=("the cells of the limiter in systems")
rtl/limit/test/run.sh --largest || unmet+=("the limiter in silicon with 1,024 sources")

if [ ${#unmet[@]} -gt 0 ]; then
    echo "these goals were missed, or could not be measured: ${unmet[*]}" >&2
    exit 1
fi
