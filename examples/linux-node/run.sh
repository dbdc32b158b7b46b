#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs the example without disturbing this machine, in a network namespace whose eth0 is not
# connected to any network. It needs root, ip and ethtool. WEIR_LINUX names the program.
set -euo pipefail
cd "$(dirname "$0")"
weir=${WEIR_LINUX:-weir-linux}
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
export weir state
unshare --net bash -euo pipefail -c '
    ip link add eth0 type veth peer name other
    ip link set other up
    ip link set eth0 up
    # A veth device has a NAPI thread only if GRO is on.
    ethtool -K eth0 gro on
    "$weir" plan system.toml
    "$weir" run system.toml --state "$state" &
    until "$weir" status --state "$state"; do
        kill -0 $!
        sleep 0.2
    done
    "$weir" stop --state "$state"
    wait
'
