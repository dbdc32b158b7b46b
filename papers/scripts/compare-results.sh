#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Shows how a change affects results: compares the output of experiments, byte by byte.
#
#   papers/scripts/compare-results.sh COMMIT [PAPER/NAME...]    this tree against COMMIT
#
# If none is named, all are compared but those with a line "# In make bench only.". An experiment
# with a quick form runs in that form. COMMIT is built once, below build/compare; its results are
# kept there. An experiment on Linux is compared if its kernel is there or can be downloaded.
# Exit: 0 all is the same, 1 something differs, 2 it could not be compared.
set -euo pipefail
[[ ${1-} != @(-h|--help) ]] || exec sed -n '4,/^set /s/^# \{0,1\}//p' "$0"
cd "$(dirname "$0")/../.."
. papers/scripts/forms.sh

fail() {
    echo "compare-results: $*" >&2
    exit 2
}
[ $# -ge 1 ] || fail "name a commit: papers/scripts/compare-results.sh COMMIT"
commit=$(git rev-parse --verify --quiet "$1^{commit}") || fail "$1 is no commit of this repository"
shift
names=("$@")
if [ $# = 0 ]; then
    for file in papers/experiments/*/*.toml; do
        ! grep -q '^# In make bench only\.' "$file" || continue
        name=${file#papers/experiments/}
        names+=("${name%.toml}")
    done
fi

for name in "${names[@]}"; do
    [ -e "papers/experiments/$name.toml" ] || fail "there is no experiment '$name'; weir reproduce --list has all"
done

# Builds `weir` and `weir-lab` of the tree $1, and prints their folder. Before papers/ was a
# workspace of its own, the tree had one.
build() (
    cd "$1"
    unset CARGO_TARGET_DIR
    if [ -d papers ]; then
        papers/scripts/build.sh >&2
    else
        cargo build --quiet --locked -p weir-cli -p weir-lab >&2
    fi
    echo "$PWD/target/debug"
)

# Writes the results of the tree $1 into $2, unless they exist already.
results() {
    local tree=$1 to=$2 built name file experiments=papers/experiments
    [ -d "$tree/papers" ] || experiments=experiments
    built=$(build "$tree") || fail "$tree cannot be built"
    mkdir -p "$to"
    for name in "${names[@]}"; do
        [ ! -e "$to/$name.done" ] || continue
        echo "compare-results: $name" >&2
        mkdir -p "$to/$(dirname "$name")"
        quick=()
        file=$tree/$experiments/$name.toml
        ! has_short_form "$file" || quick=(--quick)
        # A missed claim is a result, too. table2 writes the board's costs.
        (cd "$tree" && "$built/weir" reproduce "$name" --json "${quick[@]}" --out "$to" >"$to/$name.out" 2>"$to/$name.err") || [ $? = 1 ] ||
            fail "$name failed: see $to/$name.err"
        # Remove what differs in messages between two runs: paths of the tree, and durations.
        sed -i "/ of [0-9]* runs/d; s#$to/##; s#$tree/##; s#papers/experiments#experiments#g" "$to/$name".{out,err}
        [ "$name" != regehr2005/table2 ] || grep -v '^#' "$tree/boards/atmega128/costs.toml" >"$to/$name.costs"
        git -C "$tree" checkout --quiet -- boards/atmega128/costs.toml
        touch "$to/$name.done"
    done
}

# All experiments share one simulator of the board soc.
WEIR_SOC=$(boards/soc/build.sh) || fail "the board soc cannot be built"
export WEIR_SOC
before=$PWD/build/compare/$commit
if [ ! -d "$before/tree" ]; then
    git worktree prune
    git worktree add --quiet --force --detach "$before/tree" "$commit"
fi
results "$before/tree" "$before/results"
rm -rf "$PWD/build/compare/now"
results "$PWD" "$PWD/build/compare/now"
code=0
for name in "${names[@]}"; do
    for now in "$PWD/build/compare/now/$name".* "$PWD/build/compare/now/$name"-*; do
        [ ! -e "$now" ] || diff "$before/results/${now#"$PWD/build/compare/now/"}" "$now" || code=1
    done
done
[ $code = 0 ] || exit 1
echo "compare-results: the results of ${#names[@]} experiments are the same"
