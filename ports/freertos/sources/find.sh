#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Prints the folder where Cargo has unpacked a crate that Cargo.toml names, and fetches it if need
# be. Nothing of it is copied here.
#
#   find.sh CRATE      freertos-next (FreeRTOS 11.2) or lwip (lwIP 2.2.1)
#
# Exit: 0; 2 there is no such crate, and the message says why; 3 the network failed.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../../.. && pwd)

fail() {
    echo "ports/freertos/sources/find.sh: $*" >&2
    exit 2
}

[ $# = 1 ] || fail 'the name of a crate is missing: freertos-next or lwip'
metadata() { cargo metadata --locked --offline --format-version 1 --filter-platform thumbv7m-none-eabi; }
if ! found=$(metadata 2>/dev/null); then
    "$root/scripts/network.sh" cargo fetch --locked || { [ $? != 3 ] || exit 3 && fail "cargo's message is above"; }
    found=$(metadata) || fail "cargo's message is above"
fi
folder=$(python3 -c '
import json, os, sys
print(*(os.path.dirname(p["manifest_path"]) for p in json.load(sys.stdin)["packages"] if p["name"] == sys.argv[1]))' "$1" <<<"$found")
[ -n "$folder" ] || fail "Cargo.toml names no crate $1: freertos-next or lwip"
echo "$folder"
