#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs one of the product's long tests: a test of `make test` with all cases instead of its short
# form, or a proof, search or simulation that takes too long for `make test`.
#
#   scripts/long.sh --list     prints their names
#   scripts/long.sh NAME       runs it
#
# Exit: 0 it passed; 1 it failed; 2 there is no such test.
set -euo pipefail
cd "$(dirname "$0")/.."
export WEIR_LONG=1

declare -A tests=(
    [core]='make -C core test'
    [freertos]='make -C ports/freertos test'
    [host]='cargo test --locked -p weir-model -p weir-arrivals -p weir-sim -p weir-analysis -p weir-verify -p weir-report -p weir-generate -p weir-cli'
    [emulate]='cargo test --locked -p weir-emulate'
    [scan]='rtl/limit/proof/run.py --quick --long scan'
    [cells]='rtl/limit/area/run.py --check'
    [largest]='rtl/limit/test/run.sh --largest'
)
case ${1-} in
--list)
    printf '%s\n' "${!tests[@]}" | sort
    exit
    ;;
-h | --help)
    sed -n '4,/^set /s/^# \{0,1\}//p' "$0"
    exit
    ;;
esac
[ $# = 1 ] && [ -n "$1" ] && [ -n "${tests[$1]-}" ] || {
    echo "long: name one of these tests: $(printf '%s\n' "${!tests[@]}" | sort | tr '\n' ' ')" >&2
    exit 2
}
read -ra command <<<"${tests[$1]}"
"${command[@]}" || exit 1
