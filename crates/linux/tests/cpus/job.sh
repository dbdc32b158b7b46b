# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=dash
#
# Runs in the guest: each mode runs under load while CPU 1 goes offline and comes back. Then each
# mode begins while CPU 1 is offline. The job prints its observations as lines of the form
# MODE/BEGIN WHEN WHAT ..., which tests/cpus/mod.rs checks. BEGIN is `online` or `offline`: the
# state of CPU 1 when the mode begins.

give_up() {
    cat /run/*.err >&2
    echo "$*" >&2
    exit 1
}

# threads RUN WHEN: prints the threads that do the work of interrupts, with name, real-time
# priority, number of the policy, and CPUs.
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

# cpu_1 STATE: takes CPU 1 offline (0) or online (1).
cpu_1() {
    echo "$1" >/sys/devices/system/cpu/cpu1/online || give_up "CPU 1 cannot be turned to $1"
}

# receive_on MASK: restricts the card's receiving threads to these CPUs.
receive_on() {
    for process in /proc/[0-9]*; do
        case $(cat "$process/comm" 2>/dev/null) in
        # A thread with the number 0 only cleans up after sending.
        napi/*-0) ;;
        napi/*) taskset -p "$1" "${process#/proc/}" >&2 || give_up "no thread can receive on the CPUs $1" ;;
        esac
    done
}

# begin MODE: starts Weir in this mode, with the top half $top_half, and the receivers.
begin() {
    sed "s/MODE/$1/" /run/system.toml >/run/node.toml
    echo "top_half = $top_half" >>/run/node.toml
    # Otherwise the output of the previous mode would say that this mode is ready.
    rm -f /run/weir.out /run/*.err
    # In the mode `vanilla` the kernel runs without Weir.
    weir=
    if [ "$1" != vanilla ]; then
        weir-linux run /run/node.toml --json --yes-xdp >/run/weir.out 2>/run/weir.err &
        weir=$!
        until grep -qs '"event":"ready"' /run/weir.out; do
            kill -0 $weir || give_up 'weir-linux has ended'
            usleep 10000
        done
    fi
    receivers=
    for port in 5000 5001 5002; do
        # The receiver of port 5002 is not in the system file.
        policy=other
        [ $port != 5001 ] || policy=fifo:80
        weir-load receive $port --policy $policy --for 600s --json >/run/$port.json 2>/run/$port.err &
        receivers="$receivers $!"
        until grep -qs ready /run/$port.err; do usleep 10000; done
    done
    sleep 3
}

# end RUN: ends the receivers and Weir, and prints what they report.
end() {
    # shellcheck disable=SC2086
    kill -TERM $receivers
    # shellcheck disable=SC2086
    wait $receivers
    for port in 5000 5001 5002; do
        echo "$1" received $port "$(sed -n 's/.*"packets": \([0-9]*\).*/\1/p' /run/$port.json | head -n 1)"
    done
    [ -n "$weir" ] || return 0
    kill -0 $weir || give_up 'weir-linux has ended'
    echo "$1" status "$(weir-linux status --json | tr -d '\n')"
    kill -INT $weir
    wait $weir || give_up 'weir-linux has put back too little'
    echo "$1" left nothing "$(find /run/weir -type f | wc -l)"
}

# The buffer is so large that a receiver loses no packets at its socket, even if a busy host delays
# it.
sysctl -q -w net.core.rmem_default=16777216

number=0
for mode in vanilla native predicted exact; do
    number=$((number + 1))
    run=$mode/online
    threads $run before
    # In mode predicted a cap is refused.
    top_half='{ runtime = "5ms", period = "10ms" }'
    [ $mode != predicted ] || top_half='{ urgency = 80 }'
    begin $mode
    threads $run begun
    # The flood lasts 15 s, so it is over when the job prints `ended`.
    flood "$number"
    sleep 1
    cpu_1 0
    sleep 4
    threads $run gone
    cpu_1 1
    sleep 4
    threads $run back
    # CPU 1 goes offline and comes back so fast that Weir does not notice.
    cpu_1 0
    cpu_1 1
    sleep 4
    threads $run again
    sleep 3
    threads $run ended
    end $run
    threads $run after
done

# With accounting = "time" processes are charged only for the packets that mode exact counts at each
# port.
sed -i 's/^mode = .*/&\naccounting = "time"/' /run/system.toml
# There is no cap, since the kernel does not let a thread with a cap be restricted to some CPUs.
top_half='{ urgency = 80 }'
for mode in native predicted exact; do
    number=$((number + 1))
    run=$mode/offline
    threads $run before
    cpu_1 0
    begin $mode
    threads $run begun
    cpu_1 1
    sleep 4
    threads $run back
    # For 3 s, all packets arrive on the CPU that was offline.
    receive_on 2
    flood "$number"
    sleep 6
    receive_on 3
    threads $run ended
    end $run
    threads $run after
done
