#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The demonstration: one program for the ATmega128, without Weir and with it, while its sensor's
# wire comes loose. First what `weir run` shows at 100 kHz, then what is left of the processor at
# each rate.
set -euo pipefail
cd "$(dirname "$0")/.."

# Builds only the program that `weir run` starts, because a newcomer waits for it. The build is the
# same as the tests'.
cargo build --locked -p weir-emulate
run=${CARGO_TARGET_DIR:-target}/debug/weir-run
build=build/demo
mkdir -p $build

firmware=boards/atmega128/firmware
compile() {
    avr-gcc -mmcu=atmega128 -std=c11 -Os -ffunction-sections -Wl,--gc-sections -DF_CPU=4000000UL -DWEIR_TICK_BITS=16 -DWEIR_LIMIT_RECORD=0 \
        -DNODE_WORK=250 -I core/include -I ports/avr/include $firmware/node.c "$@"
}
compile $firmware/unprotected.c -o $build/without.elf
compile $firmware/limited.c core/src/limit.c -DNODE_CHANNEL=TIMER1A -DNODE_PRESCALER=256 -DNODE_INTERVAL=16 -DNODE_BURST=4 \
    -DNODE_POLICY=WEIR_LIMIT_BUCKET -DNODE_TIMING=WEIR_LIMIT_LAZY -o $build/weir.elf

flood() {
    echo
    echo "== $1"
    echo "   $run $2 --board atmega128 --flood INT0=100kHz --clock 4MHz --counter progress --counter handled"
    $run "$2" --board atmega128 --flood INT0=100kHz --clock 4MHz --counter progress --counter handled
}
flood "Without Weir: a wire at 100 kHz takes the whole processor" $build/without.elf
flood "Behind Weir: 976 requests a second are served, the background goes on" $build/weir.elf

# Prints the number of turns of the background loop of the firmware $1 in half a second, under the
# flood given by further arguments, if any.
progress() {
    $run "$1" --clock 4MHz --for 500ms --counter progress ${2:+--flood "INT0=$2"} --json | tr -d ' \n' |
        sed -n 's/.*"progress":{"count":\([0-9]*\)[,}].*/\1/p'
}
echo
echo "== What the background loop gets of the processor"
printf '%9s  %-27s %s\n' 'wire' 'without Weir' 'behind Weir'
alone=$(progress $build/without.elf)
for rate in 500Hz 1kHz 2kHz 5kHz 10kHz 13kHz 20kHz 50kHz 100kHz 200kHz; do
    row=
    for elf in without weir; do
        left=$((100 * $(progress $build/$elf.elf $rate) / alone))
        row+=$(printf '%3d %% %-20s  ' $left "$(printf '%*s' $((left / 5)) '' | tr ' ' '#')")
    done
    printf '%9s  %s\n' "$rate" "$row"
done
echo
echo "The same as a picture: docs/images/loose-wire.svg (weir reproduce demo/loose-wire draws it)"
