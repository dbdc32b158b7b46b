#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The demonstration: one program for the ATmega128, without Weir and with it, while its sensor's
# wire comes loose. First in the terminal at 100 kHz, then as a picture over all rates.
set -euo pipefail
cd "$(dirname "$0")/.."

# Builds only the program that `weir run` and `weir reproduce` start, because a newcomer waits for
# it. The build is the same as the tests'.
cargo build --locked -p weir-lab
weir_lab=${CARGO_TARGET_DIR:-target}/debug/weir-lab
build=build/demo
mkdir -p $build

firmware=papers/experiments/regehr2005/firmware
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
    echo "   $weir_lab run $2 --board atmega128 --flood INT0=100kHz --clock 4MHz --counter progress --counter handled"
    $weir_lab run "$2" --board atmega128 --flood INT0=100kHz --clock 4MHz --counter progress --counter handled
}
flood "Without Weir: a wire at 100 kHz takes the whole processor" $build/without.elf
flood "Behind Weir: 976 requests a second are served, the background goes on" $build/weir.elf

echo
$weir_lab reproduce demo/loose-wire
echo
echo "The picture: $PWD/results/demo/loose-wire.svg (any browser shows it)"
echo "More: $weir_lab reproduce regehr2005/fig1 draws the paper's Figure 1, its algorithms beside ours."
