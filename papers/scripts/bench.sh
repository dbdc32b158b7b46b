#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Reproduces every experiment whole. (The placements of regehr2005/table3 are data:
# rtl/limit/area/run.py repeats them.) All run, then the exit code tells whether every claim was
# met.
set -euo pipefail
cd "$(dirname "$0")/../.."

papers/scripts/build.sh --release
weir=$(papers/scripts/build.sh --path --release)/weir

# The experiment that measures the costs comes first: the curves of the paper's equations need them.
experiments=(regehr2005/table2)
for file in papers/experiments/*/*.toml; do
    name=${file#papers/experiments/}
    name=${name%.toml}
    [ "$name" = regehr2005/table2 ] || experiments+=("$name")
done

unmet=()
for name in "${experiments[@]}"; do
    "$weir" reproduce "$name" || unmet+=("$name")
done

cd papers
cargo bench --locked -p weir-bench --bench sim || unmet+=("the speed of the simulator")
cargo bench --locked -p weir-bench --bench arrivals
cargo bench --locked -p weir-lab --bench speed || unmet+=("the speed of the board soc")

if [ ${#unmet[@]} -gt 0 ]; then
    echo "these goals were missed, or could not be measured: ${unmet[*]}" >&2
    exit 1
fi
