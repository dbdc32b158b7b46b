#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Shows how a change affects results: compares the output of every experiment but those of Linux,
# byte by byte.
#
#   papers/scripts/compare-results.sh COMMIT        this tree against COMMIT
#
# Left out are experiments with a line "# In make bench only."; an experiment with a quick form runs
# in that form. COMMIT is built once, below build/compare; its results are kept there.
# Exit: 0 all is the same, 1 something differs, 2 it could not be compared.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "compare-results: $*" >&2
    exit 2
}
[ $# = 1 ] || fail "name one commit: papers/scripts/compare-results.sh COMMIT"
commit=$(git rev-parse --verify --quiet "$1^{commit}") || fail "$1 is no commit of this repository"

# Writes the results of the tree $1 into $2.
results() {
    local tree=$1 to=$2 file name quick
    # The experiments run in a copy, because table2 writes the board's costs. Its path is always the
    # same, because messages name it.
    local copy=$PWD/build/compare/copy
    rm -rf "$to" "$copy"
    mkdir -p "$to" "$copy"
    cp -r "$tree/core" "$tree/ports" "$tree/boards" "$tree/experiments" "$tree/rtl" "$copy"
    (cd "$tree" && cargo build --quiet --locked -p weir-cli -p weir-lab) || fail "$tree cannot be built"
    local weir=${CARGO_TARGET_DIR:-$tree/target}/debug/weir
    for file in "$tree"/experiments/*/*.toml; do
        ! grep -qE '^(kind = "linux"|# In make bench only\.)' "$file" || continue
        name=${file#"$tree"/experiments/}
        name=${name%.toml}
        echo "compare-results: $name" >&2
        mkdir -p "$to/$(dirname "$name")"
        quick=()
        ! grep -qE '^\[.*\.quick\]' "$file" || quick=(--quick)
        # A missed claim is a result, too.
        (cd "$copy" && "$weir" reproduce "$name" --json "${quick[@]}" >"$to/$name.out" 2>"$to/$name.err") || [ $? = 1 ] ||
            fail "$name failed: see $to/$name.err"
    done
    cp -r "$copy/results" "$copy/boards/atmega128/costs.toml" "$to"
    rm -rf "$copy"
}

# All experiments use one simulator of the board soc.
WEIR_SOC=$(boards/soc/build.sh) || fail "the board soc cannot be built"
export WEIR_SOC
before=$PWD/build/compare/$commit
if [ ! -d "$before/results" ]; then
    [ -d "$before/tree" ] || git worktree add --quiet --detach "$before/tree" "$commit"
    results "$before/tree" "$before/results"
    git worktree remove --force "$before/tree"
fi
results "$PWD" "$PWD/build/compare/now"
diff -r "$before/results" "$PWD/build/compare/now" || exit 1
echo "compare-results: all results are the same as those of $1"
