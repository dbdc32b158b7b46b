#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds weir-linux and weir-load for a guest, and prints their paths, one a line. The libraries
# that they need go into the guest, too (boards/linux/build.sh). The processor is this machine's.
# Exit: 0 they are built; 2 they cannot be built, and cargo's message is above.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
# The same build as that of `make test-linux`, so that it happens once.
cargo build --locked -p weir-linux -p weir-load >&2 || exit 2
built=$target/debug
mkdir -p "$built/stripped"
for program in weir-linux weir-load; do
    # The programs pass through an emulator's memory, so their debug information is removed. They
    # are renamed into place, because several builds may run at once.
    strip -o "$built/stripped/$program.$$" "$built/$program" || exit 2
    mv "$built/stripped/$program.$$" "$built/stripped/$program"
    echo "$built/stripped/$program"
done
