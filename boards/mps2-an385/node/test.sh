#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Tests that the node's run.sh rejects wrong arguments with exit code 2 and a message that says why.
set -euo pipefail
cd "$(dirname "$0")"

passed=0
failed=0
refuses() {
    local words=$1 code=0 said
    shift
    said=$(./run.sh "$@" 2>&1) || code=$?
    if [ $code = 2 ] && [[ $said == *"$words"* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: run.sh $*: exit $code: $said" >&2
    fi
}
plan=$(mktemp)
trap 'rm -f "$plan"' EXIT
echo '{"end": "1500ms"}' >"$plan"
refuses "there is no plan \`nowhere/plan\`" nowhere/plan
refuses "the plan ended before the node's report" "$plan" windows=2
refuses "node: \`task=none,windows=3\`" "$plan" task=none,windows=3
refuses "node: \`pace\`" "$plan" pace=1
export BUILD="-DNODE_WEIR -DNODE_HARDENED"
refuses "node: \`server-urgency\`" "$plan" driver=demux modbus=apart server-urgency=12
refuses "node: \`limit-hz\`" "$plan" limit-hz=1 limit=bursty limit-burst=43
refuses "node: \`limit-hz\`" "$plan" driver=demux change-ms=50 limit-hz=2 limit-burst=43
refuses "node: \`neighbour\`" "$plan" address=dhcp neighbour=10.0.0.1/52:54:00:00:00:01
refuses "node: \`neighbour\`" "$plan" address=10.0.0.2 neighbour=10.1.0.1/52:54:00:00:00:01
refuses "node: \`address=224.0.0.1\`" "$plan" address=224.0.0.1
refuses "node: \`address=10.0.0.255\`" "$plan" address=10.0.0.255
refuses "node: \`work, gather-us, budget\`" "$plan" budget=5
refuses "node: \`limit, limit-burst\`" "$plan" limit=bursty
refuses "node: \`server-urgency\`" "$plan" server=off server-urgency=5
refuses "node: \`server-urgency=2\`" "$plan" driver=demux server-urgency=2
export SHIFT=99
refuses "SHIFT=99: it is to be" "$plan"
unset SHIFT

echo "node: $passed passed, $failed failed"
[ $failed = 0 ]
