#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs the tests of stock Linux: on this kernel, between network namespaces of their own (skipped
# without root), and one experiment on a kernel in an emulated machine: the cost of a packet in each
# mode, beside XDP_DROP's. The experiment runs beside the tests: its time is virtual, so that they
# do not disturb it, and at the lowest priority it does not disturb them. Its output comes at the
# end.
#
#   scripts/test-linux.sh -p PACKAGE...     the packages whose tests they are, as cargo takes them
#
# Exit: 0 all passed; another code if not.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp -d)
# The experiment has a process group of its own, which ends with this script.
set -m
guest=
trap '[ -z "$guest" ] || kill -- "-$guest" 2>/dev/null; rm -rf "$out"' EXIT
trap 'exit 130' INT TERM HUP

nice -n 19 scripts/test-guest.sh --if-there lee2010/linux-cost >"$out/guest.log" 2>&1 &
guest=$!
code=0
# The tests run one after the other: weir-linux's tests fork, and change settings that the machine
# has only once.
RUST_TEST_THREADS=1 cargo test --locked "$@" || code=$?
wait "$guest" || code=$?
guest=
cat "$out/guest.log"
exit $code
