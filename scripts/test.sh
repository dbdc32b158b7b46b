#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs parts of `make test`, as many at once as there are processors, all of them even if one fails,
# and prints what ran, failed and was skipped.
#
#   scripts/test.sh PART...     targets of the Makefile, such as test-core test-rtl
#
# The output of a part is kept in build/test/PART.log. A skipped test must be on the list
# scripts/skipped; otherwise it counts as failed. Tests report a skip by a line `skipped: NAME;
# REASON`, pytest by `SKIPPED [N] PLACE: REASON`.
# Exit: 0 all passed; 1 not.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1-} in
-h | --help)
    sed -n '4,/^set /s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
rows=()
# Prints a line per part that has ended, with its result.
table() {
    [ ${#rows[@]} -gt 0 ] || return 0
    echo
    printf '%-12s %-7s %8s %7s %7s %8s\n' part verdict time passed failed skipped
    for row in "${rows[@]}"; do echo "$row"; done
}
# Ctrl-C ends the running part, and no other part starts.
trap 'table; exit 130' INT TERM HUP
parts=$(sed -n 's/^TEST_PARTS := //p' Makefile)
[ $# -gt 0 ] || {
    echo "test: name one part or several, such as test-core; 'make help' lists them" >&2
    exit 2
}
for part; do
    tr ' ' '\n' <<<"$parts" | grep -qxF -e "$part" || {
        echo "test: '$part' is no part of make test; the parts are: $parts" >&2
        exit 2
    }
done
logs=build/test
rm -rf $logs
mkdir -p $logs

# Prints the sum of the numbers after = in those lines of standard input that begin with $1.
sum_of() { { grep -E "^$1" || true; } | cut -d= -f2 | awk '{ sum += $1 } END { print sum + 0 }'; }

# The sum of the numbers for the word $2 (passed or failed) in the closing lines of test runners in
# the log $1: cargo's "12 passed; 0 failed", pytest's and our scripts' "12 passed, 1 failed",
# unittest's "Ran 12 tests" and "failures=1".
count() {
    local runs='^test result: |^[a-z]+: [0-9]+ passed, |^=* ?[0-9]+ (passed|failed)'
    local sum
    sum=$({ grep -aE "$runs" "$1" || true; } | grep -oE "[0-9]+ $2" | awk '{ sum += $1 } END { print sum + 0 }')
    local others
    others=$(sed -nE 's/^FAILED \((.*)\)$/\1/p; s/^OK \((.*)\)$/\1/p' "$1" | grep -oE '(failures|errors|skipped)=[0-9]+' || true)
    case $2 in
    passed) sum=$((sum + $(sed -nE 's/^Ran ([0-9]+) tests? in .*/\1/p' "$1" | awk '{ sum += $1 } END { print sum + 0 }') - $(sum_of '' <<<"$others"))) ;;
    failed) sum=$((sum + $(sum_of '(failures|errors)' <<<"$others"))) ;;
    esac
    echo "$sum"
}

# Prints the skipped tests in the log $1 as NAME; REASON. Cargo calls them "ignored", and unittest
# prints only their number.
skips() {
    sed -nE 's/^test (.*) \.\.\. ignored.*/\1; ignored/p; s/^(OK|FAILED) \(.*skipped=([0-9]+).*\)$/unittest; it skipped \2/p' "$1"
    sed -nE 's/^skipped: (.*)$/\1/p; s/^SKIPPED \[[0-9]+\] ([^:]*)[0-9:]*: (.*)$/\1; \2/p' "$1"
}

# A test's name may have its module before it.
is_listed() { grep -v '^#' scripts/skipped | sed 's/: .*//' | grep -qxF -e "${1##*::}"; }

# Makes a part, and records its exit code and its duration in seconds.
make_part() {
    local begun=$SECONDS code=0
    make --no-print-directory "$1" 2>&1 || code=$?
    echo "$code $((SECONDS - begun))" >"$logs/$1.end"
}

passed=0
failed=0
skipped=0
# Prints the result of a part.
judge() {
    local part=$1 log=$logs/$1.log code seconds
    read -r code seconds <"$logs/$part.end"
    local part_passed part_failed unlisted=0 part_skipped=0 verdict=passed line
    part_passed=$(count "$log" passed)
    part_failed=$(count "$log" failed)
    # A part can fail without counting a failure, for example if its build fails.
    [ "$code" = 0 ] || [ "$part_failed" -gt 0 ] || part_failed=1
    while IFS= read -r line; do
        part_skipped=$((part_skipped + 1))
        if ! is_listed "${line%%;*}"; then
            echo "test: a skipped test is not on the list scripts/skipped: $line" >&2
            unlisted=$((unlisted + 1))
        fi
    done < <(skips "$log")
    if [ "$part_passed" = 0 ] && [ "$part_failed" = 0 ]; then
        echo "test: $part ran no test" >&2
        part_failed=1
    fi
    part_failed=$((part_failed + unlisted))
    [ "$code" = 0 ] && [ $part_failed = 0 ] || verdict=FAILED
    part_skipped=$((part_skipped - unlisted))
    rows+=("$(printf '%-12s %-7s %6d s %7d %7d %8d' "$part" $verdict "$seconds" "$part_passed" "$part_failed" $part_skipped)")
    passed=$((passed + part_passed))
    failed=$((failed + part_failed))
    skipped=$((skipped + part_skipped))
}

# As many parts run at once as there are processors. The tests of Linux wait in real time: they
# begin first, and the others, which compute, have the lowest priority.
waits=test-linux
declare -A running=()
# Each part has a process group of its own, which ends with this script.
trap 'for process in "${!running[@]}"; do kill -- "-$process" 2>/dev/null; done' EXIT
# What several parts need is built first, once and by all processors. If that build fails, its part
# fails later. Ctrl-C reaches the build and then this script.
begun=$SECONDS
[ $# = 1 ] || make --no-print-directory build-tests || [ $? = 2 ]
set -m

# Waits until a part ends, then prints its output and what has become of it.
finish_one() {
    local process part
    wait -n -p process "${!running[@]}" || true
    part=${running[$process]}
    unset "running[$process]"
    echo "=== $part"
    cat "$logs/$part.log"
    judge "$part"
    echo "${rows[-1]}"
}

for part; do
    while [ ${#running[@]} -ge "$(nproc)" ]; do finish_one; done
    echo "=== $part begins"
    (
        [ "$part" = $waits ] || [ $# = 1 ] || renice -n 19 $BASHPID >/dev/null
        make_part "$part"
    ) >"$logs/$part.log" </dev/null &
    running[$!]=$part
done
while [ ${#running[@]} -gt 0 ]; do finish_one; done

table
echo
echo "tests: $passed passed, $failed failed, $skipped skipped, in $((SECONDS - begun)) s"
[ $failed = 0 ]
