# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=dash
#
# In the guest: each mode runs under load while CPU 1 goes and comes back. What is seen is printed, a line each: MODE WHEN WHAT ...; main.rs judges it.

give_up() {
    cat /run/*.err >&2
    echo "$*" >&2
    exit 1
}

# The threads that do the work of interrupts: name, real-time priority, number of the policy, CPUs.
threads() {
    for process in /proc/[0-9]*; do
        name=$(cat "$process/comm" 2>/dev/null) || continue
        case $name in
        ksoftirqd/* | napi/* | cpumap/*)
            policy=$(sed 's/.*) //' "$process/stat" | cut -d ' ' -f 38,39)
            cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "$process/status")
            echo "$1 $2 $name $policy $cpus"
            ;;
        esac
    done
}

cpu_1() {
    echo "$1" >/sys/devices/system/cpu/cpu1/online || give_up "CPU 1 cannot be turned to $1"
}

# A receiver that is late on a busy host loses nothing at its socket.
sysctl -q -w net.core.rmem_default=16777216

number=0
for mode in native predicted exact; do
    number=$((number + 1))
    threads $mode before
    sed "s/MODE/$mode/" /run/system.toml >/run/node.toml
    # Of predicted it is refused.
    if [ $mode != predicted ]; then
        echo 'top_half = { runtime = "5ms", period = "10ms" }' >>/run/node.toml
    fi
    # Those of the mode before would say that this one is ready.
    rm -f /run/weir.out /run/*.err
    weir-linux run /run/node.toml --json --yes-xdp >/run/weir.out 2>/run/weir.err &
    weir=$!
    until grep -qs '"event":"ready"' /run/weir.out; do
        kill -0 $weir || give_up 'weir-linux has ended'
        usleep 10000
    done
    receivers=
    for port in 5000 5001 5002; do
        # The one of 5002 is not in the file.
        policy=other
        [ $port != 5001 ] || policy=fifo:80
        weir-load receive $port --policy $policy --for 600s --json >/run/$port.json 2>/run/$port.err &
        receivers="$receivers $!"
        until grep -qs ready /run/$port.err; do usleep 10000; done
    done
    sleep 3
    threads $mode begun
    # For 15 s, so that it has ended at `ended`.
    flood $number
    sleep 1
    cpu_1 0
    sleep 4
    threads $mode gone
    cpu_1 1
    sleep 4
    threads $mode back
    # So fast that nobody sees it.
    cpu_1 0
    cpu_1 1
    sleep 4
    threads $mode again
    sleep 3
    threads $mode ended
    kill -0 $weir || give_up 'weir-linux has ended'
    # shellcheck disable=SC2086
    kill -TERM $receivers
    # shellcheck disable=SC2086
    wait $receivers
    for port in 5000 5001 5002; do
        echo $mode received $port "$(sed -n 's/.*"packets": \([0-9]*\).*/\1/p' /run/$port.json | head -n 1)"
    done
    kill -INT $weir
    wait $weir || give_up 'weir-linux has put back too little'
    echo $mode left nothing "$(find /run/weir -type f | wc -l)"
    threads $mode after
done
