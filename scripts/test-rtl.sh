#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs the tests of everything for silicon: rtl/, boards/soc, ports/riscv, and the output of `weir
# generate --rtl`. All of them run; then a table says which passed and how long each took. The long
# runs are in scripts/long.sh.
#
#   scripts/test-rtl.sh [STEP...]     all steps if none is named
set -euo pipefail
cd "$(dirname "$0")/.."

export TARGET=${CARGO_TARGET_DIR:-$PWD/target}
steps=(lint registers simulation proof cells board port generate)

lint() { rtl/limit/lint.sh; }
registers() { rtl/limit/registers/generate.py --check; }
simulation() { rtl/limit/test/run.sh; }
proof() { rtl/limit/proof/run.py; }
cells() { rtl/limit/area/run.py --quick; }
board() { boards/soc/tests/run.sh; }
port() { ports/riscv/tests/run.py; }
generate() {
    cargo build --locked -p weir-cli && scripts/test-rtl-generate.sh &&
        examples/limit-in-silicon/run.py build/generate/limit-in-silicon
}

for step; do
    case " ${steps[*]} " in
    *" $step "*) ;;
    *)
        echo "test-rtl: '$step' is no step; the steps are: ${steps[*]}" >&2
        exit 2
        ;;
    esac
done
[ $# = 0 ] || steps=("$@")

# The environment is made before the clock runs, because the first run installs packages.
scripts/python-env.sh rtl >/dev/null

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# Each step has a process group of its own, which ends with this script; no other process is
# affected.
set -m
trap 'for step in $(jobs -pr); do kill -- "-$step"; done; exit 130' INT TERM

# Runs a step, and writes its verdict and its duration to $out.
run() {
    local step=$1 begun=$SECONDS verdict=passed code
    # The step runs in a subshell with `set -e`, as a command of its own: a function in a condition
    # would run past its first failure.
    set +e
    (
        set -e
        "$step"
    ) >"$out/$step.log" 2>&1
    code=$?
    set -e
    [ $code = 0 ] || verdict=FAILED
    printf '%-12s %-7s %4d s\n' "$step" "$verdict" $((SECONDS - begun)) >"$out/$step.verdict"
    # The outputs are printed one after the other, so that those of two steps are not mixed.
    {
        flock 9
        echo "== $step"
        cat "$out/$step.log"
    } 9>"$out/lock"
}

# As many steps run at once as there are processors: most steps use one.
for step in "${steps[@]}"; do
    while [ "$(jobs -pr | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
    echo "== $step begins"
    run "$step" &
done
wait

echo
for step in "${steps[@]}"; do cat "$out/$step.verdict"; done
failed=$(cat "$out"/*.verdict | grep -c FAILED || true)
echo "rtl: $((${#steps[@]} - failed)) passed, $failed failed"
[ "$failed" = 0 ]
