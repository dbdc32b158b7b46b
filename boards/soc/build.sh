#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds the simulator of the board soc, unless it exists already, and prints its path:
# build/soc/HASH/weir-soc. HASH covers all inputs of the build. Several callers at once wait for
# each other. A build takes about half a minute and is announced on stderr. Exit: 0 the simulator
# exists; 2 it cannot be built, and the message says what to do.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() {
    echo "boards/soc/build.sh: $*" >&2
    exit 2
}

for tool in g++ perl flock sha256sum; do
    command -v "$tool" >/dev/null || fail "$tool is missing; scripts/bootstrap.sh installs it"
done
environment=$(scripts/python-env.sh rtl) || exit 2
packages=("$environment"/lib/python3*/site-packages)
processor=${packages[0]}/pythondata_cpu_vexriscv/verilog/VexRiscv_Min.v
verilator=${packages[0]}/verilator
{ [ -e "$processor" ] && [ -e "$verilator/bin/verilator" ]; } ||
    fail "the Python environment $environment has no VexRiscv or no Verilator; remove it and run scripts/python-env.sh rtl"

# SystemVerilog packages come before the modules that use them. If sim/ has a faster form of a
# module, the module in rtl/limit is left out.
rtl=(rtl/limit/registers/generated/*.sv)
for file in rtl/limit/src/*.sv; do
    [ -e "boards/soc/sim/${file##*/}" ] || rtl+=("$file")
done
rtl+=(boards/soc/rtl/*.sv boards/soc/sim/*.sv)
simulator=(boards/soc/sim/*.cpp)
hash=$({ cat boards/soc/build.sh "${rtl[@]}" boards/soc/sim/* requirements.lock && g++ --version; } | sha256sum | cut -c 1-16)
folder=$PWD/build/soc/$hash
program=$folder/weir-soc

mkdir -p build/soc
exec 9>build/soc/lock
flock 9
if [ ! -x "$program" ]; then
    echo "boards/soc/build.sh: building the simulator of the board soc, once" >&2
    rm -rf "$folder"
    mkdir -p "$folder/model"
    "$environment/bin/verilator-cli" --cc --flatten -O3 -Wall --noassert --x-assign fast --x-initial 0 --Mdir "$folder/model" --top-module soc_probe \
        --prefix Vsoc boards/soc/sim/public.vlt "${rtl[@]}" "$processor" >"$folder/log" 2>&1 ||
        { cat "$folder/log" >&2 && fail 'Verilator does not accept the RTL; its message is above'; }
    # The generated code and Verilator's library are compiled without our warnings. Verilator's
    # makefile is not used, because it names the compiler that built Verilator.
    compile() {
        g++ -std=c++17 -isystem "$folder/model" -isystem "$verilator/include" -isystem "$verilator/include/vltstd" "$@" >>"$folder/log" 2>&1 ||
            { cat "$folder/log" >&2 && fail 'the C++ compiler cannot compile the simulator; its message is above'; }
    }
    for source in "$folder"/model/*.cpp "$verilator"/include/verilated{,_dpi,_threads}.cpp; do
        # Most of the generated code runs only once per simulation and need not be fast.
        case $source in *Slow.cpp | *Syms* | *Dpi*) level=-O0 ;; "$verilator"/*) level=-O1 ;; *) level=-O3 ;; esac
        compile "$level" -c "$source" -o "$folder/model/$(basename "$source" .cpp).o"
    done
    compile -O3 -Wall -Wextra -Wpedantic -Werror "${simulator[@]}" "$folder"/model/*.o -pthread -o "$program.new"
    mv "$program.new" "$program"
    rm -r "$folder/model" "$folder/log"
fi
echo "$program"
