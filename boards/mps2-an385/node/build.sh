#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds the node, unless it exists already, and prints its path: build/node/HASH/node.elf. HASH
# covers all inputs of the build. Several callers at once wait for each other.
#
#   build.sh [OPTION...]      options for the compiler, such as -Os or -DPBUF_POOL_SIZE=128
#
# Exit: 0 the node exists; 2 it cannot be built, and the message says what to do; 3 the network
# failed.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../../.. && pwd)

fail() {
    echo "boards/mps2-an385/node/build.sh: $*" >&2
    exit 2
}

command -v arm-none-eabi-gcc >/dev/null || fail 'arm-none-eabi-gcc is missing; scripts/bootstrap.sh arm installs it'
hash=$({ cat build.sh ../memory.ld ../src/*.[ch] "$root"/ports/freertos/sources/Cargo.lock ./*.[ch] include/arch/*.h weir/*.[ch] "$root"/ports/freertos/{include/weir,src}/*.[ch] "$root"/core/{include/weir,src}/*.[ch] && arm-none-eabi-gcc --version && echo "$@"; } | sha256sum | cut -c 1-16)
folder=$root/build/node/$hash
node=$folder/node.elf
# Most calls find the node already built, because every run of an experiment calls this script.
[ ! -e "$node" ] || {
    echo "$node"
    exit
}

for tool in cargo python3 flock sha256sum; do
    command -v "$tool" >/dev/null || fail "$tool is missing; scripts/bootstrap.sh arm installs it"
done
echo '#include <string.h>' | arm-none-eabi-gcc -x c -E - >/dev/null 2>&1 ||
    fail 'arm-none-eabi-gcc has no C library; scripts/bootstrap.sh arm installs libnewlib-arm-none-eabi'

sources=$root/ports/freertos/sources/find.sh
freertos=$("$sources" freertos-next)/FreeRTOS-Kernel
lwip=$("$sources" lwip)
[ -e "$freertos/tasks.c" ] || fail "$freertos has no tasks.c: is this freertos-next 0.12?"
[ -e "$lwip/src/api/tcpip.c" ] || fail "$lwip has no src/api/tcpip.c: is this lwip 0.4?"

flags=(-mcpu=cortex-m3 -mthumb -std=c11 -O2 -g "$@" -ffunction-sections -fdata-sections -I. -Iinclude -I../src
    -isystem "$freertos/include" -isystem "$freertos/portable/GCC/ARM_CM3"
    -isystem "$lwip/src/include" -isystem "$lwip/contrib/ports/freertos/include")
ours=(*.c ../src/*.c)
# With -DNODE_WEIR the node gets driver=demux, and its kernel calls ports/freertos.
weir=()
if [[ " $* " = *" -DNODE_WEIR "* ]]; then
    flags+=(-DWEIR_TICK_BITS=32 -DWEIR_CLASSES=8 -DWEIR_LIMIT_RECORD=0 -I"$root/core/include" -I"$root/ports/freertos/include" -Iweir
        -DWEIR_FREERTOS_CLOCK='(~*(volatile uint32_t *) 0x40001004)')
    weir=(weir/*.c "$root"/ports/freertos/src/*.c "$root"/core/src/{demux,limit,moderate}.c)
fi
theirs=("$freertos"/{tasks,queue,list}.c "$freertos"/portable/GCC/ARM_CM3/port.c "$freertos"/portable/MemMang/heap_4.c
    "$lwip"/src/api/*.c "$lwip"/src/core/*.c "$lwip"/src/core/ipv4/*.c "$lwip"/src/netif/ethernet.c
    "$lwip"/src/apps/http/{httpd,fs}.c "$lwip"/contrib/ports/freertos/sys_arch.c)

mkdir -p "$root/build/node"
exec 9>"$root/build/node/lock"
flock 9
if [ ! -e "$node" ]; then
    rm -rf "$folder"
    mkdir -p "$folder/objects"
    compile() {
        local object
        object=$folder/objects/$1-$(basename "$2" .c).o
        arm-none-eabi-gcc "${flags[@]}" "${@:3}" -c "$2" -o "$object" 2>>"$folder/log" || { cat "$folder/log" >&2 && fail "$2 does not compile"; }
    }
    for source in "${ours[@]}"; do
        compile ours "$source" -Wall -Wextra -Werror -Wconversion -Wno-sign-conversion
    done
    for source in "${weir[@]}"; do
        compile weir "$source" -O3 -Wall -Wextra -Werror -Wconversion -Wno-sign-conversion
    done
    for source in "${theirs[@]}"; do
        compile theirs "$source" -w
    done
    arm-none-eabi-gcc "${flags[@]}" -nostartfiles -T ../memory.ld -Wl,--gc-sections "$folder"/objects/*.o -o "$node.new" 2>>"$folder/log" ||
        { cat "$folder/log" >&2 && fail 'the node does not link'; }
    rm -r "$folder/objects"
    mv "$node.new" "$node"
fi
echo "$node"
