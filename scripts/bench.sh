#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Reproduces every experiment and times the commands. (The placements of regehr2005/table3 are data:
# rtl/limit/area/run.py repeats them.) All experiments run, then the exit code tells whether every
# claim was met.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --locked --release -p weir-cli -p weir-lab

# The experiment that measures the costs comes first: the curves of the paper's equations need them.
experiments=(regehr2005/table2)
for file in papers/experiments/*/*.toml; do
    name=${file#experiments/}
    name=${name%.toml}
    [ "$name" = regehr2005/table2 ] || experiments+=("$name")
done

unmet=()
for name in "${experiments[@]}"; do
    "${CARGO_TARGET_DIR:-target}/release/weir" reproduce "$name" || unmet+=("$name")
done

cargo bench --locked -p weir-cli --bench speed || unmet+=("the speed of the commands")
cargo bench --locked -p weir-bench --bench sim || unmet+=("the speed of the simulator")
cargo bench --locked -p weir-bench --bench arrivals
cargo bench --locked -p weir-lab --bench speed || unmet+=("the speed of the board soc")
WEIR_RANDOM=1 cargo test --locked -p weir-emulate --test main avr::random:: || unmet+=("the contracts of limits drawn at random")
rtl/limit/proof/run.py --quick --long scan || unmet+=("the proof of the limiter's scan with 16 and 24 sources")
rtl/limit/area/run.py --check || unmet+=("the cells of the limiter in systems")
rtl/limit/test/run.sh --largest || unmet+=("the limiter in silicon with 1,024 sources")

if [ ${#unmet[@]} -gt 0 ]; then
    echo "these goals were missed, or could not be measured: ${unmet[*]}" >&2
    exit 1
fi
