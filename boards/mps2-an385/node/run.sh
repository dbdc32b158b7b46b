#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs the node under a plan for the peer (crates/emulate/plugin), and prints a JSON object: the
# counts of the node (`node`) and those of the peer (`peer`).
#
#   run.sh PLAN [OPTION...]      options of the node, such as driver=packet
#
# SHIFT is the logarithm of the nanoseconds of an instruction (3: 8 ns), BUILD has the options of
# build.sh.
# Exit: 0; 2 the node, the plugin or QEMU is missing or refuses something; 3 the node has failed,
# and the object says how; 124 it took ten minutes of the host's processor, or two hours.
set -euo pipefail
[ $# -ge 1 ] || {
    echo "boards/mps2-an385/node/run.sh: a plan is missing: run.sh PLAN [OPTION...]" >&2
    exit 2
}
plan=$(realpath -e "$1" 2>/dev/null) || {
    echo "boards/mps2-an385/node/run.sh: there is no plan \`$1\`" >&2
    exit 2
}
shift
[[ ${SHIFT:-3} =~ ^([0-9]|10)$ ]] || {
    echo "boards/mps2-an385/node/run.sh: SHIFT=$SHIFT: it is to be a number from 0 to 10" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
read -ra build <<<"${BUILD:-}"
node=$("$here/build.sh" "${build[@]}")
plugin=$("$here/../build.sh" 2>/dev/null) || {
    echo "boards/mps2-an385/node/run.sh: boards/mps2-an385/build.sh fails" >&2
    exit 2
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
code=0
# On a busy host a run may wait for a long time, so the limit is on processor time.
ulimit -S -t 600
timeout 7200 qemu-system-arm -M mps2-an385 -nodefaults -no-user-config -display none -icount "shift=${SHIFT:-3},sleep=off" -seed 1 \
    -netdev hubport,id=net,hubid=0 -net nic,netdev=net,model=lan9118 -kernel "$node" \
    -chardev "file,id=out,path=$folder/node" -semihosting-config "enable=on,target=native,chardev=out,arg=node$(printf ',arg=%s' "${@//,/,,}")" \
    -plugin "$plugin,plan=${plan//,/,,},report=$folder/peer" </dev/null >/dev/null 2>"$folder/said" || code=$?
[ $code != 152 ] || code=124 # SIGXCPU
if [ $code = 0 ] && ! { [ -s "$folder/peer" ] && [ -s "$folder/node" ]; }; then
    echo "boards/mps2-an385/node/run.sh: the plan ended before the node's report: let \`end\` be" \
        "later than begin-ms and all windows, and \`windows\` 1 at least" >&2
    exit 2
fi
if [ -s "$folder/peer" ] && [ -s "$folder/node" ] && { [ $code = 0 ] || [ $code = 3 ]; }; then
    echo "{\"node\": $(cat "$folder/node"), \"peer\": $(cat "$folder/peer")}"
else
    cat "$folder/said" "$folder/node" >&2
fi
exit $code
