#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Tests the programs of papers/. Then runs as many experiments and long tests as fit into the given
# time (weir-lab due --help).
#
#   papers/scripts/due.sh [MINUTES]      20 if none is given
set -euo pipefail
[[ ${1-} != @(-h|--help) ]] || exec sed -n '4,/^set /s/^# \{0,1\}//p' "$0"
cd "$(dirname "$0")/../.."

[[ ${1-20} =~ ^[1-9][0-9]{0,3}$ ]] || {
    echo "due: '$1' is no number of minutes from 1 to 9999" >&2
    exit 2
}
begun=$SECONDS
papers/scripts/build.sh
code=0
papers/scripts/check.sh || code=1
left=$((${1-20} - (SECONDS - begun + 59) / 60))
"$(papers/scripts/build.sh --path)/weir-lab" due --minutes $((left > 0 ? left : 0)) || code=$?
exit $code
