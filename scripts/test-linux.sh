#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs the tests of stock Linux: on this kernel, between network namespaces of their own (skipped
# without root), and two experiments on kernels in an emulated machine: what the account says of a
# flood, and what a cap leaves to the receivers (scripts/test-guest.sh has all). They run beside the
# tests: their time is virtual, so that the tests do not disturb them, and at the lowest priority
# they do not disturb the tests. Their output comes at the end.
#
#   scripts/test-linux.sh -p PACKAGE...     the packages whose tests they are, as cargo takes them
#
# Exit: 0 all passed; another code if not.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp -d)
# The experiments have a process group of their own, which ends with this script.
set -m
guest=
trap '[ -z "$guest" ] || kill -- "-$guest" 2>/dev/null; rm -rf "$out"' EXIT
trap 'exit 130' INT TERM HUP

nice -n 19 scripts/test-guest.sh --if-there zhang2006/linux-accounting regehr2005/linux-cap >"$out/guest.log" 2>&1 &
guest=$!
code=0
# The tests run one after the other: weir-linux's tests fork, and change settings that the machine
# has only once.
RUST_TEST_THREADS=1 cargo test --locked "$@" || code=$?
wait "$guest" || code=$?
guest=
cat "$out/guest.log"
exit $code
