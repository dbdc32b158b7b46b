#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs a command that downloads something, and tries again if the network failed.
#
#   scripts/network.sh COMMAND [ARGUMENT...]
#
# Tries three times, and shows the command's output if it fails. A failure for another reason is not
# tried again. If WEIR_NETWORK_FAILURES names a file, each command that was given up adds a line to
# it. WEIR_NETWORK_PAUSE is the pause in seconds before the second try (10); it doubles before the
# third.
# Exit: the command's own code; 3 if the network failed three times.
set -eu

# The messages of apt, pip, cargo and debootstrap when a server cannot be reached or the connection
# breaks.
signs='Could not resolve|Temporary failure (in name resolution|resolving)|Could not connect|Unable to connect|Connection (refused|reset|timed out|failed)|[Cc]onnection broken|ConnectionError|[Tt]imed out|Network is unreachable|Failed to fetch|Hash Sum mismatch|spurious network error|failed to download|download of .* failed|[Cc]ould not connect to server|Retrying \(Retry|(50[0234]|429) +[A-Z]|Failed getting release|Couldn.t download|Couldn.t retrieve'

said=$(mktemp)
trap 'rm -f "$said"' EXIT
trap 'rm -f "$said"; trap - INT; kill -INT $$' INT
trap 'rm -f "$said"; trap - TERM; kill -TERM $$' TERM

pause=${WEIR_NETWORK_PAUSE:-10}
try=1
while :; do
    code=0
    "$@" >"$said" 2>&1 </dev/null || code=$?
    [ $code != 0 ] || exit 0
    if ! grep -qE "$signs" "$said"; then
        cat "$said" >&2
        exit $code
    fi
    [ $try -lt 3 ] || break
    echo "network: try $try of 3 failed, the next one is in $pause s: $*" >&2
    sleep "$pause"
    pause=$((pause * 2))
    try=$((try + 1))
done
cat "$said" >&2
echo "network: given up after three tries: $*" >&2
[ -z "${WEIR_NETWORK_FAILURES-}" ] || echo "$*" >>"$WEIR_NETWORK_FAILURES"
exit 3
