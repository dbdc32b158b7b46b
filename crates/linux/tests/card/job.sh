# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=dash
#
# Runs in the guest: tries mode native on cards that steer packets. Each card is a case. The job
# prints its observations as lines of the form CASE WHAT ..., which tests/card/mod.rs checks.

give_up() {
    cat /run/*.err >&2
    echo "$*" >&2
    exit 1
}

# plan CASE WHEN: prints the output of `weir-linux plan`.
plan() {
    weir-linux plan /run/node.toml --json >/run/plan.json 2>/run/plan.err || give_up 'there is no plan'
    echo "$1 $2 $(tr -d '\n' </run/plan.json)"
}

# threads CASE WHAT: prints the numbers of the card's NAPI instances, and the real-time priorities
# of their threads.
threads() {
    for process in /proc/[0-9]*; do
        case $(cat "$process/comm" 2>/dev/null) in
        napi/card0-*) echo "$1 $2 $(sed 's/^[^-]*-//' "$process/comm") $(sed 's/.*) //' "$process/stat" | cut -d ' ' -f 38)" ;;
        esac
    done
}

# try CASE SELECTOR OPTIONS...: tries a card with these options of its module. SELECTOR selects the
# packets of the urgent receiver.
try() {
    case=$1
    sed "s/SELECTOR/$2/" /run/system.toml >/run/node.toml
    shift 2
    insmod /run/weir_card.ko "$@"
    unshare -n sleep 1000 &
    peer=$!
    until [ "$(readlink /proc/$peer/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do usleep 1000; done
    ip link set wire0 netns $peer
    there() { nsenter -t $peer -n "$@"; }
    ip address add 10.0.1.1/24 dev card0
    ip link set card0 up
    # IPv6 is off, so that the only packets are those that are sent below.
    there sysctl -q -w net.ipv6.conf.all.disable_ipv6=1
    there ip address add 10.0.1.2/24 dev wire0
    there ip link set wire0 up
    there arp -s 10.0.1.1 "$(cat /sys/class/net/card0/address)"
    plan "$case" before
    rm -f /run/weir.out /run/*.err
    weir-linux run /run/node.toml --json >/run/weir.out 2>/run/weir.err &
    weir=$!
    until grep -qs '"event":"ready"' /run/weir.out; do
        kill -0 $weir || give_up 'weir-linux has ended'
        usleep 10000
    done
    plan "$case" running
    receivers=
    for port in 5000 5001; do
        weir-load receive $port --for 600s --json >/run/$port.json 2>/run/$port.err &
        receivers="$receivers $!"
        until grep -qs ready /run/$port.err; do usleep 10000; done
    done
    there weir-load send 10.0.1.1:5000 --pattern 1kHz --for 20ms --json >/dev/null
    echo "$case first $(cat /sys/module/weir_card/parameters/received)"
    there weir-load send 10.0.1.1:5001 --pattern 1kHz --for 200ms --json >/dev/null
    echo "$case urgent $(cat /sys/module/weir_card/parameters/received)"
    for from in 1 2 3 4 5 6 7 8; do
        there weir-load send 10.0.1.1:5000 --pattern 1kHz --for 25ms --json >/dev/null || give_up "sending fails for the ${from}th time"
    done
    echo "$case others $(cat /sys/module/weir_card/parameters/received)"
    threads "$case" thread
    # shellcheck disable=SC2086
    kill -TERM $receivers
    # shellcheck disable=SC2086
    wait $receivers
    for port in 5000 5001; do
        echo "$case received $port $(sed -n 's/.*"packets": \([0-9]*\).*/\1/p' /run/$port.json | head -n 1)"
    done
    kill -INT $weir
    wait $weir || give_up 'weir-linux has put back too little'
    plan "$case" after
    threads "$case" left
    kill $peer
    wait $peer
    rmmod weir_card
}

to_port='{ protocol = "udp", port = 5001 }'
try steers "$to_port"
try silent "$to_port" tells=0
try refuses "$to_port" takes=2
try ethernet '{ ethertype = 0x8892 }' takes=2
