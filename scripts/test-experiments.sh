#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Tests every claim of every experiment, in its short form if it has one, but for those of silicon
# (scripts/test-rtl.sh), of Linux (scripts/test-guest.sh), of the node (scripts/test-node.sh) and
# those with a line "# In make bench only.", and the board's costs as they stand in the repository.
# Both are stated for the compilers that boards/atmega128/costs.toml names: with another compiler
# the experiments must run, but their claims are only shown.
set -euo pipefail
cd "$(dirname "$0")/.."

# The tests have made this build already.
cargo build --locked -p weir-cli -p weir-lab
weir=$PWD/${CARGO_TARGET_DIR:-target}/debug/weir
case ${CARGO_TARGET_DIR:-} in /*) weir=$CARGO_TARGET_DIR/debug/weir ;; esac

# The experiments run in a copy, because table2 writes the board's costs.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r core ports boards experiments "$copy"
compiler=$(avr-gcc -dumpversion)
is_stated=
if grep -q "^compilers = .*\"avr-gcc $compiler\"" boards/atmega128/costs.toml; then
    is_stated=1
else
    echo "skipped: claims and costs of the atmega128; this is avr-gcc $compiler, and boards/atmega128/costs.toml has no column for it"
fi

. scripts/verdict.sh

# Whether the experiment of this file, or the one that it is based on, has a short form.
has_short_form() {
    local base
    ! grep -q '^quick = ' "$1" || return 0
    base=$(sed -n 's/^base = "\(.*\)"$/\1/p' "$1")
    [ -n "$base" ] && has_short_form "$(dirname "$1")/$base.toml"
}

for file in papers/experiments/*/*.toml; do
    ! grep -qE '^(board = "soc"|kind = "(area|linux|node)"|# In make bench only\.)' "$file" || continue
    name=${file#experiments/}
    name=${name%.toml}
    quick=()
    ! has_short_form "$file" || quick=(--quick)
    code=0
    (cd "$copy" && "$weir" reproduce "$name" "${quick[@]}") || code=$?
    [ -n "$is_stated" ] || [ $code != 1 ] || code=0
    verdict $code "$name"
done

if [ -n "$is_stated" ]; then
    code=0
    diff -u boards/atmega128/costs.toml "$copy/boards/atmega128/costs.toml" || code=1
    verdict $code "boards/atmega128/costs.toml is not what is measured: weir reproduce regehr2005/table2 writes it anew"
fi

verdicts experiments
