#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs the short forms of experiments on stock kernels in the guest (boards/linux), and tests that
# cannot run on this machine. The first run downloads the kernels and builds the guest's programs.
#
#   scripts/test-guest.sh [--if-there] [EXPERIMENT...]   all, and the other tests, if none is named
#
# With --if-there, an experiment is skipped if its kernel cannot be downloaded.
set -euo pipefail
cd "$(dirname "$0")/.."

if_there=
if [ "${1-}" = --if-there ]; then
    if_there=1
    shift
fi
names=("$@")
if [ $# = 0 ]; then
    for file in papers/experiments/*/*.toml; do
        grep -qx 'kind = "linux"' "$file" || continue
        name=${file#experiments/}
        names+=("${name%.toml}")
    done
fi

# The tests have made this build already; most of the time is QEMU's.
cargo build --locked -p weir-cli -p weir-lab
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac

. scripts/verdict.sh
skipped=0

# Checks that the kernels of an experiment are there, or can be downloaded.
has_kernels() {
    local kernel code file="papers/experiments/$1.toml"
    # The first is the experiment's own; the baseline `rt` has the same with PREEMPT_RT.
    for kernel in $(sed -n 's/^kernel = "\(.*\)"$/\1/p; /^like = "rt"$/s/.*/-rt/p' "$file" | awk 'NR == 1 { own = $0 } /^-/ { $0 = own $0 } 1' | sort -u); do
        code=0
        boards/linux/build.sh "$kernel" >/dev/null || code=$?
        [ $code != 3 ] || return 1
    done
}

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for name in "${names[@]}"; do
    if [ -n "$if_there" ] && ! has_kernels "$name"; then
        echo "skipped: $name; its kernel cannot be downloaded"
        skipped=$((skipped + 1))
        continue
    fi
    code=0
    "$target/debug/weir" reproduce "$name" --quick --out "$out" || code=$?
    verdict $code "$name"
done

if [ $# = 0 ]; then
    code=0
    WEIR_GUEST=1 cargo test --locked -p weir-load -p weir-linux --test cpus || code=$?
    verdict $code 'a CPU that goes and comes'

    code=0
    WEIR_GUEST=1 cargo test --locked -p weir-load -p weir-linux --test card || code=$?
    verdict $code 'a card that steers'
fi

verdicts guest ", $skipped skipped"
