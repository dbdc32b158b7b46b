#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds the example from the output of `weir generate`, and prints the path of its ELF file.
#
#   build.sh FOLDER      which has weir_system.h and weir_system.c; rtos-node.elf goes there, too
#
# Exit: 0; 2 something is missing or does not compile, and the message says what.
set -euo pipefail
fail() {
    echo "examples/rtos-node/build.sh: $*" >&2
    exit 2
}
[ $# = 1 ] || fail 'a folder is missing: that of weir_system.h'
[ -e "$1/weir_system.c" ] || fail "$1 has no weir_system.c: weir generate examples/rtos-node/system.toml --chip cortex-m3 --rtos freertos -o $1/weir_system.h"
made=$(cd "$1" && pwd)
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
# The board's clock and card.
board=$root/boards/mps2-an385
sources=$root/ports/freertos/sources/find.sh
freertos=$("$sources" freertos-next)/FreeRTOS-Kernel
lwip=$("$sources" lwip)

flags=(-mcpu=cortex-m3 -mthumb -std=c11 -O2 -ffunction-sections -fdata-sections -I. -I"$made" -I"$board/src"
    -DWEIR_TICK_BITS=32 -DWEIR_CLASSES=8 -DWEIR_LIMIT_RECORD=0 -DWEIR_FREERTOS_CLOCK='(~*(volatile uint32_t *) 0x40001004)'
    -DWEIR_FREERTOS_CLOCK_HZ=25000000
    -I"$root/core/include" -I"$root/ports/cortex-m/include" -I"$root/ports/freertos/include"
    -isystem "$freertos/include" -isystem "$freertos/portable/GCC/ARM_CM3"
    -isystem "$lwip/src/include" -isystem "$lwip/contrib/ports/freertos/include")
ours=("$PWD/main.c" "$made/weir_system.c" "$board"/src/{board,card}.c "$root"/ports/freertos/src/*.c "$root"/core/src/{demux,limit,moderate}.c)
theirs=("$freertos"/{tasks,queue,list}.c "$freertos"/portable/GCC/ARM_CM3/port.c "$freertos"/portable/MemMang/heap_4.c
    "$lwip"/src/core/*.c "$lwip"/src/core/ipv4/*.c "$lwip"/src/netif/ethernet.c "$lwip"/src/api/{err,tcpip}.c
    "$lwip"/contrib/ports/freertos/sys_arch.c)
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
compile() {
    arm-none-eabi-gcc "${flags[@]}" "${@:2}" -c "$1" -o "$objects/of-$(basename "$(dirname "$1")")-$(basename "$1").o" || fail "$1 does not compile"
}
for source in "${ours[@]}"; do
    compile "$source" -Wall -Wextra -Werror -Wconversion -Wno-sign-conversion
done
for source in "${theirs[@]}"; do
    compile "$source" -w
done
arm-none-eabi-gcc "${flags[@]}" -nostartfiles -T "$board/memory.ld" -Wl,--gc-sections "$objects"/*.o -o "$made/rtos-node.elf" || fail 'it does not link'
echo "$made/rtos-node.elf"
