#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds the QEMU plugin that drives the board's lines and counts executed instructions
# (crates/emulate/plugin), and prints the plugin's path. Cargo builds it only if something has
# changed, and reports on stderr. Exit: 0 the plugin exists; 2 it cannot be built, and the message
# says what to do.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v cargo >/dev/null || {
    echo "boards/mps2-an385/build.sh: cargo is missing; install Rust 1.85 or newer" >&2
    exit 2
}
cargo build --locked --release -p weir-peer >&2 || exit 2
echo "$(realpath "${CARGO_TARGET_DIR:-target}")/release/libweir_peer.so"
