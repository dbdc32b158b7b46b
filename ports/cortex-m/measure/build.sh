#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds the program that measures, on a chip, the costs of the chip's limits.
#
#   build.sh CHIP OUTPUT [FLASH RAM RAM_END] [OPTION...]
#
# CHIP is the chip's header, such as mps2-an385.h; OUTPUT the ELF file. FLASH and RAM are where the
# chip's memories begin (0 and 0x20000000), RAM_END where the second ends (0x20004000). Options go
# to the compiler: -mcpu=cortex-m4, -O2, what the product is compiled with. Without them it gets
# -mcpu=cortex-m3 -Os.
# Exit: 0; 2 it cannot be built, and the message says why.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
root=$folder/../../..

fail() {
    echo "ports/cortex-m/measure/build.sh: $*" >&2
    exit 2
}

[ $# -ge 2 ] || fail 'usage: build.sh CHIP OUTPUT [FLASH RAM RAM_END] [OPTION...]'
chip=$1 output=$2
shift 2
places=(0 0x20000000 0x20004000)
if [[ ${1:-} =~ ^(0x)?[0-9a-fA-F]+$ ]]; then
    [ $# -ge 3 ] || fail "after $1 the beginning and the end of the RAM are missing"
    places=("${@:1:3}")
    shift 3
fi
[ -e "$chip" ] || chip=$folder/$chip
[ -e "$chip" ] || fail "there is no $chip: name the chip's header, such as mps2-an385.h"
chip=$(realpath "$chip")
command -v arm-none-eabi-gcc >/dev/null || fail 'arm-none-eabi-gcc is missing; scripts/bootstrap.sh arm installs it'

arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -Os -std=c11 -Wall -Wextra -ffreestanding -nostdlib \
    -ffunction-sections -fdata-sections "-DCHIP=\"$chip\"" "-DSTACK_END=${places[2]}" -DWEIR_LIMIT_RECORD=0 \
    -I"$root/core/include" -I"$root/ports/cortex-m/include" -I"$folder" "$@" \
    -Wl,--gc-sections,--nmagic "-Wl,--defsym=FLASH=${places[0]},--defsym=RAM=${places[1]}" -T "$folder/measure.ld" \
    "$folder/measure.c" "$root/core/src/limit.c" -lgcc -o "$output" || fail "the compiler's message is above"
