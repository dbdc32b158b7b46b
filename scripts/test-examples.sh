#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Compiles every example for the ATmega128 as a user would, floods it, and checks its counters;
# checks that README.md and docs/firmware.md show these programs and no others; and runs the
# commands of README.md.
#
# examples/NAME/expect: the first line that is no comment holds the arguments of `weir run`, each
# further line a counter: NAME LEAST MOST. An example without main.c is a system without a board: it
# is checked, and simulated under the flood in its file flood. If an example has a system.toml,
# `weir generate` makes the header that main.c includes, and states the clock for it. A line
# `avr-objcopy …` in the comment of a main.c is run on the objects before they are linked, as the
# comment tells the reader to do.
set -euo pipefail
cd "$(dirname "$0")/.."

passed=0
failed=0
pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    echo "FAILED: $*" >&2
}

# This build exists already if the tests have run.
cargo build --locked -p weir-emulate -p weir-cli
weir_run=${CARGO_TARGET_DIR:-target}/debug/weir-run
weir=${CARGO_TARGET_DIR:-target}/debug/weir
build=build/examples
mkdir -p $build

root=$PWD

# Builds the example in the folder $1 as the ELF file $2. Stops at the first command that fails.
compile() (
    set -e
    objects=$build/$(basename "$1").o
    rm -rf "$objects"
    mkdir -p "$objects"
    clock=4000000
    if [ -f "$1/system.toml" ]; then
        "$weir" generate "$1/system.toml" --chip atmega128 --output "$objects/weir_system.h" --json >"$objects/generated.json"
        clock=$(sed -n 's/^ *"clock_hz": \([0-9]*\),$/\1/p' "$objects/generated.json")
    fi
    for source in "$1"/*.c core/src/limit.c; do
        avr-gcc -mmcu=atmega128 -std=c11 -Os -ffunction-sections -Wall -Wextra -Wconversion -Wpedantic -Werror -DF_CPU="${clock}UL" \
            -DWEIR_TICK_BITS=16 -I core/include -I ports/avr/include -I "$objects" -c "$source" -o "$objects/$(basename "${source%.c}").o"
    done
    sed -n 's/^ \* *\(avr-objcopy .*\)$/\1/p' "$1/main.c" >"$objects/told"
    (cd "$objects" && sh -e told)
    avr-gcc -mmcu=atmega128 -Wl,--gc-sections "$objects"/*.o -o "$2"
)

for folder in examples/*; do
    name=$(basename "$folder")
    # Examples with a script `run` are for another board. scripts/test-rtl.sh runs them.
    compgen -G "$folder/run.*" >/dev/null && continue
    # Examples for mps2-an385 are built and flooded by crates/emulate/tests/cortex_m/generate.rs and
    # crates/emulate/plugin/tests/node.
    grep -qs '^board = "mps2-an385"' "$folder/system.toml" && continue
    if [ ! -f "$folder/main.c" ]; then
        # A system without a board: no firmware runs on it, but its guarantees must hold, also in a
        # flood of its loudest source.
        if "$weir" check "$folder/system.toml" >"$build/$name.txt" && "$weir" simulate "$folder/system.toml" --duration 2s \
            --flood "$(grep -v "^#" "$folder/flood")" >>"$build/$name.txt"; then
            pass
        else
            fail "$name: see $build/$name.txt"
        fi
        continue
    fi
    elf=$root/$build/$name.elf
    # This call must not be part of a condition, which would disable `set -e` inside the function.
    set +e
    compile "$folder" "$elf"
    code=$?
    set -e
    if [ $code != 0 ]; then
        fail "$name does not compile"
        continue
    fi
    if [ ! -f "$folder/expect" ]; then
        fail "$folder/expect is missing, which has to state the counters of $name"
        continue
    fi

    mapfile -t expect < <(grep -vE '^ *(#|$)' "$folder/expect")
    read -ra arguments <<<"${expect[0]}"
    counters=()
    for line in "${expect[@]:1}"; do
        counters+=(--counter "${line%% *}")
    done
    if ! result=$("$weir_run" "$elf" --board atmega128 "${arguments[@]}" "${counters[@]}" --json); then
        fail "$name does not run"
        continue
    fi
    for line in "${expect[@]:1}"; do
        read -r counter least most <<<"$line"
        # The object of the counters looks like "NAME":{"count":4000,...}
        value=$(tr -d ' \n' <<<"$result" | sed -n "s/.*\"counters\":{.*\"$counter\":{\"count\":\([0-9]*\)[,}].*/\1/p")
        if [ -n "$value" ] && [ "$value" -ge "$least" ] && [ "$value" -le "$most" ]; then
            pass
        else
            fail "$name: $counter is '${value}', not $least to $most, with ${expect[0]}"
        fi
    done
done

# The blocks of C in README.md and docs/firmware.md must be the text of an example's main.c, from
# its first #include on.
body() { sed -n '/^#include/,$p' "$1"; }
rm -f $build/shown-*.c
for page in README.md docs/firmware.md; do
    name=$(basename $page .md)
    awk -v at="$build/shown-$name-" '/^```c$/ { n++; file = at n ".c"; printf "" >file; next } /^```$/ { file = "" } file { print >file }' $page
    [ -e "$build/shown-$name-1.c" ] || fail "$page shows no C program"
done
for block in "$build"/shown-*.c; do
    shown=
    for main in examples/*/main.c; do
        cmp -s <(body "$block") <(body "$main") && shown=$main
    done
    if [ -n "$shown" ]; then
        pass
    else
        fail "$(basename "${block%.c}"), a C program of README.md or docs/firmware.md, is no examples/*/main.c"
    fi
done

# The README's commands, as a user types them at the root of a clone: those of its block `sh`, then
# those of its table. They write into a folder of their own. `weir linux` has its own tests, and the
# boards soc and mps2-an385 are tested by scripts/test-rtl.sh and crates/emulate/tests/mps2.
clone=$build/readme
rm -rf $clone
mkdir -p $clone/bin
for name in core ports rtl boards examples papers; do
    ln -s "$root/$name" $clone/$name
done
ln -s "$(realpath "$weir")" "$(realpath "$weir_run")" $clone/bin/
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' README.md >$clone/block.sh
awk -F'|' '/^\| you have / { on = 1; next } !/^\|/ { on = 0 } on { print $4 }' README.md | sed -n 's/^ `\(weir .*\)` $/\1/p' |
    grep -v -e '^weir linux' -e '^weir reproduce' -e '--board ' >$clone/table.sh
ln -s limit-a-line.elf $clone/firmware.elf
for script in block table; do
    [ -s $clone/$script.sh ] || fail "README.md has no $script of commands"
    if (cd $clone && PATH=$root/$clone/bin:$PATH bash -e $script.sh) >$clone/$script.txt 2>&1; then
        pass
    else
        fail "README.md's $script of commands: see $clone/$script.txt"
    fi
done

echo "examples: $passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
