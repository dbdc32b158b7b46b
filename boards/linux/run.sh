#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs a job in a guest and prints what the job has written to its standard output.
#
#   boards/linux/run.sh GUEST JOB FLOODS OUT [CPUS|wire=CARD] [ring=PACKETS]
#
# GUEST is a folder that boards/linux/build.sh has printed, JOB a script for busybox' sh
# (boards/linux/init says what it finds), FLOODS what it can start (boards/linux/packets.c says how
# it is written; /dev/null holds none). OUT is a folder for what comes out: `result` (what is
# printed), `console` and `sent`. CPUS is 1 unless it is given. Several have the host's clock and no
# other: with one that counts instructions, a CPU that waits for another one would do so until the
# next timer, and the guest not even boot in minutes. So nothing is to be measured then, only tried.
# With a CARD (virtio-net or e1000) the guest has one CPU and two more cards, eth1 and eth2, joined
# by a wire. PACKETS (256, 512 or 1024) is
# for how many its own card, eth0, has room; 256 unless it is given.
# Exit: 0 the guest has ended by itself; 2 it has not, and its console is shown.
set -euo pipefail

usage() {
    sed -n 's/^# \{0,1\}//; 4,14p' "$0" >&2
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

# The job is a second archive behind the first, which the kernel unpacks over it. Neither contains
# times or places of its creation: every digit would take another branch, and a boot that takes some
# nanoseconds longer meets the flood at another phase.
mkdir -p "$out/added"
cp "$job" "$out/added/job"
chmod 644 "$out/added/job"
touch -d @0 "$out/added/job"
{ cat "$guest/initramfs" && (cd "$out/added" && echo job | busybox cpio -o -H newc --ignore-devno --renumber-inodes 2>/dev/null); } >"$out/initramfs"

# One instruction is a nanosecond of the guest's time, and nothing that the guest can see depends on
# the host: not its clock, not what it takes for random, not when its devices are served (an
# ioeventfd is another thread's). `rep movs` and `rep stos` would count one instruction per byte, so
# the kernel is not told to use them.
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
    # A timer of the guest's clock sends packets: otherwise QEMU would send them whenever the host
    # has time.
    virtio-net) card=virtio-net-pci,ioeventfd=off,tx=timer,x-txtimer=5000 ;;
    # Packets arrive at once.
    e1000) card=e1000 ;;
    esac
    # shellcheck disable=SC2054
    options+=(
        -netdev hubport,id=left,hubid=1 -device "$card,romfile=,netdev=left,mac=52:54:00:12:34:61"
        -netdev hubport,id=right,hubid=1 -device "$card,romfile=,netdev=right,mac=52:54:00:12:34:62"
    )
fi
code=0
# In the foreground Ctrl-C reaches QEMU, too, which ends by itself: there is nothing to complain of.
trap 'exit 130' INT
timeout --foreground 900 qemu-system-x86_64 "${options[@]}" >"$out/qemu" 2>&1 || code=$?
rm -r "$out/initramfs" "$out/added"
if [ $code != 0 ] || ! grep -q 'Power down' "$out/console"; then
    tail -n 40 "$out/qemu" "$out/console" >&2
    echo "boards/linux/run.sh: the guest has not ended by itself (QEMU: $code); its console is above" >&2
    exit 2
fi
cat "$out/result"
