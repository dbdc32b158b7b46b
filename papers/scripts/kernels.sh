#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Provides the kernels of an experiment on Linux: downloads those that its file names, and builds
# them for the guest.
#
#   papers/scripts/kernels.sh PAPER/NAME
#
# Exit: 0 they are there; 2 one cannot be built, or there is no such experiment; 3 one cannot be
# downloaded.
set -euo pipefail
[[ ${1-} != @(-h|--help) ]] || exec sed -n '4,/^set /s/^# \{0,1\}//p' "$0"
cd "$(dirname "$0")/../.."
file=papers/experiments/${1-}.toml
[ -e "$file" ] || {
    echo "papers/scripts/kernels.sh: name an experiment; there is none '${1-}'" >&2
    exit 2
}

# The first kernel is the experiment's own. The baseline `rt` uses the same version with PREEMPT_RT.
# An experiment without a kernel uses that of its base.
if ! grep -q '^kernel = ' "$file"; then
    base=$(sed -n 's/^base = "\(.*\)"$/\1/p' "$file")
    [ -z "$base" ] || exec "$0" "$(dirname "$1")/$base"
fi
for kernel in $(sed -n 's/^kernel = "\(.*\)"$/\1/p; /^like = "rt"$/s/.*/-rt/p' "$file" | awk 'NR == 1 { own = $0 } /^-/ { $0 = own $0 } 1' | sort -u); do
    boards/linux/build.sh "$kernel" >/dev/null
done
