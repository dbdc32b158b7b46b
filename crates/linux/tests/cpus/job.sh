# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=dash
#
# In the guest: each mode runs under load while CPU 1 goes and comes back, and begins while it is
# offline. The job prints what it sees, in lines of the form MODE/BEGIN WHEN WHAT ..., where BEGIN
# is what CPU 1 is when the mode begins; main.rs judges them.

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

# The CPUs that the threads of the card may receive on, as a mask.
receive_on() {
    for process in /proc/[0-9]*; do
        case $(cat "$process/comm" 2>/dev/null) in
        # That of 0 only sends.
        napi/*-0) ;;
        napi/*) taskset -p "$1" "${process#/proc/}" >&2 || give_up "no thread can receive on the CPUs $1" ;;
        esac
    done
}

# begin MODE: Weir in this mode, with the top half $top_half, and the receivers.
begin() {
    sed "s/MODE/$1/" /run/system.toml >/run/node.toml
    echo "top_half = $top_half" >>/run/node.toml
    # The output of the mode before would say that this mode is ready.
    rm -f /run/weir.out /run/*.err
    # Vanilla is the kernel alone.
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
        # The one of 5002 is not in the file.
        policy=other
        [ $port != 5001 ] || policy=fifo:80
        weir-load receive $port --policy $policy --for 600s --json >/run/$port.json 2>/run/$port.err &
        receivers="$receivers $!"
        until grep -qs ready /run/$port.err; do usleep 10000; done
    done
    sleep 3
}

# end RUN
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

# A receiver that is late on a busy host loses nothing at its socket.
sysctl -q -w net.core.rmem_default=16777216

number=0
for mode in vanilla native predicted exact; do
    number=$((number + 1))
    run=$mode/online
    threads $run before
    # Of predicted a cap is refused.
    top_half='{ runtime = "5ms", period = "10ms" }'
    [ $mode != predicted ] || top_half='{ urgency = 80 }'
    begin $mode
    threads $run begun
    # For 15 s, so that it has ended at `ended`.
    flood "$number"
    sleep 1
    cpu_1 0
    sleep 4
    threads $run gone
    cpu_1 1
    sleep 4
    threads $run back
    # So fast that nobody sees it.
    cpu_1 0
    cpu_1 1
    sleep 4
    threads $run again
    sleep 3
    threads $run ended
    end $run
    threads $run after
done

# With accounting = "time" the account charges processes only for the packets that mode exact counts
# at each port.
sed -i 's/^mode = .*/&\naccounting = "time"/' /run/system.toml
# A thread with a cap may not be kept to some CPUs.
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
    # All packets come in on the CPU that was offline, for 3 s.
    receive_on 2
    flood "$number"
    sleep 6
    receive_on 3
    threads $run ended
    end $run
    threads $run after
done
