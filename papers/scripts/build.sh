#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds `weir` and `weir-lab` into the same folder.
#
#   papers/scripts/build.sh [--release]      builds them
#   papers/scripts/build.sh --path [--release]    prints the folder
set -euo pipefail
[[ ${1-} != @(-h|--help) ]] || exec sed -n '4,/^set /s/^# \{0,1\}//p' "$0"
cd "$(dirname "$0")/../.."

path=
profile=()
folder=debug
for argument; do
    case $argument in
    --path) path=1 ;;
    --release) profile=(--release) folder=release ;;
    *)
        echo "papers/scripts/build.sh: '$argument' is no option; they are --path and --release" >&2
        exit 2
        ;;
    esac
done
# Both workspaces must build into the same folder, so a relative path is made absolute first.
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR
if [ -n "$path" ]; then
    echo "$CARGO_TARGET_DIR/$folder"
    exit
fi
cargo build --locked "${profile[@]}" -p weir-cli
cd papers && cargo build --locked "${profile[@]}" -p weir-lab
