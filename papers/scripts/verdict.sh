# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
#
# Counts what passed and what failed; sourced by papers/scripts/test.sh.
passed=0
failed=0

# Counts NAME as passed if CODE is 0. Otherwise prints that it failed.
#
#   verdict CODE NAME
verdict() {
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $2" >&2
    fi
}

# Prints how many WHAT passed and failed, followed by MORE. Succeeds if none failed.
#
#   verdicts WHAT [MORE]
verdicts() {
    echo "$1: $passed passed, $failed failed${2:-}"
    [ $failed = 0 ]
}
