#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs the short forms of the experiments on the node of papers/experiments/behnke2021, and tests their
# claims. Those with a line "# In make bench only." and those without a short form are left out.
# Then tries what the node's run.sh has to refuse.
set -euo pipefail
cd "$(dirname "$0")/.."

# The tests have made this build already; most of the time is QEMU's.
cargo build --locked -p weir-lab
target=${CARGO_TARGET_DIR:-target}

passed=0
failed=0
for file in papers/experiments/*/*.toml; do
    grep -qx 'kind = "node"' "$file" || continue
    grep -q '^quick = ' "$file" || continue
    ! grep -qx '# In make bench only.' "$file" || continue
    name=${file#experiments/}
    if "$target/debug/weir-lab" reproduce --quick "${name%.toml}"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name" >&2
    fi
done
# Tries arguments that the node's run.sh refuses: with exit 2, and with these words.
refuses() {
    local words=$1 code=0 said
    shift
    said=$(boards/mps2-an385/node/run.sh "$@" 2>&1) || code=$?
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
