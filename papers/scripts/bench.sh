#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs every experiment in each of its forms, and the product's long tests, and records the results
# in papers/ledger.json. Then measures the speed of the commands, of the simulator and of the board
# soc. (The placements of regehr2005/table3 are committed data; rtl/limit/area/run.py repeats them.)
# A failure stops nothing. The exit code tells whether every claim was met.
set -euo pipefail
[[ ${1-} != @(-h|--help) ]] || exec sed -n '4,/^set /s/^# \{0,1\}//p' "$0"
cd "$(dirname "$0")/../.."
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR

papers/scripts/build.sh --release
unmet=()
"$(papers/scripts/build.sh --path --release)/weir-lab" bench || unmet+=("experiments and long tests; papers/LEDGER.md has them")
cargo bench --locked -p weir-cli --bench speed || unmet+=("the speed of the commands")
cd papers
cargo bench --locked -p weir-bench --bench sim || unmet+=("the speed of the simulator")
cargo bench --locked -p weir-bench --bench arrivals
cargo bench --locked -p weir-lab --bench speed || unmet+=("the speed of the board soc")

if [ ${#unmet[@]} -gt 0 ]; then
    echo "these goals were missed, or could not be measured: ${unmet[*]}" >&2
    exit 1
fi
