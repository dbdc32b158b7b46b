#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs a job in a guest and prints what the job has written to its standard output.
#
#   boards/linux/run.sh GUEST JOB FLOODS OUT [CPUS|wire=CARD] [ring=PACKETS]
#
# GUEST is a folder that boards/linux/build.sh has printed. JOB is a script for busybox' sh
# (boards/linux/init describes its surroundings). FLOODS is a file with the floods that the job can
# start, in the format of boards/linux/packets.c; /dev/null contains none. The folder OUT gets the
# files `result` (the job's output), `console` and `sent`.
# CPUS is 1 by default. With several CPUs the guest uses the host's clock, so it is good for tests,
# and not for measurements. With a clock that counts instructions, a CPU would wait for another one
# until the next timer, and the guest would not even boot in minutes.
# With a CARD (virtio-net or e1000) the guest has one CPU and two more cards, eth1 and eth2, joined
# by a wire. PACKETS (256, 512 or 1024) is the number of packets for which the guest's own card,
# eth0, has room. The default is 256.
# The exit code is 0 if the guest has ended by itself. Otherwise it is 2, and the guest's console is
# shown.
set -euo pipefail

usage() {
    sed -n 's/^# \{0,1\}//; 4,19p' "$0" >&2
    exit 2
}
[ $# -ge 4 ] || usage
guest=$1 job=$2 floods=$3 out=$4
shift 4
cpus='' wire='' ring=256
for option; do
    case $option in
    wire=virtio-net | wire=e1000) wire=${option#wire=} ;;
    [1-9]) cpus=$option ;;
    ring=256 | ring=512 | ring=1024) ring=${option#ring=} ;;
    *) usage ;;
    esac
done
[ -z "$cpus" ] || [ -z "$wire" ] || usage
cpus=${cpus:-1}
mkdir -p "$out"

# The job is a second archive after the first one, and the kernel unpacks both. Neither of them
# contains the time or the place of its creation. Each different digit would take the kernel through
# another branch, and a boot that takes some nanoseconds longer meets the flood at another phase.
mkdir -p "$out/added"
cp "$job" "$out/added/job"
chmod 644 "$out/added/job"
touch -d @0 "$out/added/job"
{ cat "$guest/initramfs" && (cd "$out/added" && echo job | busybox cpio -o -H newc --ignore-devno --renumber-inodes 2>/dev/null); } >"$out/initramfs"

# One instruction takes one nanosecond of the guest's time. Nothing that the guest can see depends
# on the host: neither its clock, nor its random numbers, nor the times at which its devices are
# served. ioeventfd is off, since another thread would serve it. The flags erms and fsrm are off, so
# that the kernel does not use `rep movs` and `rep stos`, which would count as one instruction per
# byte.
clock=(-icount 'shift=0,sleep=off')
[ "$cpus" = 1 ] || clock=(-accel 'tcg,thread=single')
# shellcheck disable=SC2054
options=(
    -nodefaults -no-user-config -no-reboot -display none -machine pc,hpet=off -cpu max,-erms,-fsrm -m 512 -smp "$cpus"
    "${clock[@]}" -rtc clock=vm,base=2026-01-01 -seed 1
    -kernel "$guest/vmlinux" -initrd "$out/initramfs"
    -append 'console=ttyS0 quiet nokaslr init_on_alloc=0 mitigations=off panic=-1 tsc=reliable random.trust_cpu=on'
    -netdev hubport,id=net,hubid=0 -device virtio-net-pci,netdev=net,mac=52:54:00:12:34:56,ioeventfd=off,rx_queue_size="$ring",romfile=
    -serial "file:$out/console" -serial "file:$out/result"
    -plugin "$guest/packets.so,netdev=net,floods=$floods,sent=$out/sent"
)
if [ -n "$wire" ]; then
    case $wire in
    # A timer of the guest's clock sends the packets. Otherwise QEMU would send them whenever the
    # host has time.
    virtio-net) card=virtio-net-pci,ioeventfd=off,tx=timer,x-txtimer=5000 ;;
    # This card sends its packets at once.
    e1000) card=e1000 ;;
    esac
    # shellcheck disable=SC2054
    options+=(
        -netdev hubport,id=left,hubid=1 -device "$card,romfile=,netdev=left,mac=52:54:00:12:34:61"
        -netdev hubport,id=right,hubid=1 -device "$card,romfile=,netdev=right,mac=52:54:00:12:34:62"
    )
fi
code=0
# Ctrl-C also reaches QEMU, which runs in the foreground and then ends by itself. This is no error.
trap 'exit 130' INT
timeout --foreground 900 qemu-system-x86_64 "${options[@]}" >"$out/qemu" 2>&1 || code=$?
rm -r "$out/initramfs" "$out/added"
if [ $code != 0 ] || ! grep -q 'Power down' "$out/console"; then
    tail -n 40 "$out/qemu" "$out/console" >&2
    echo "boards/linux/run.sh: the guest has not ended by itself (QEMU: $code); its console is above" >&2
    exit 2
fi
cat "$out/result"
