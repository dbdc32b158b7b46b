#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Tests scripts/bootstrap.sh against a simulated system: a PATH that holds only the shims made here
# and a few plain tools. Nothing is installed on this machine. The shims keep their state in files:
# `installed` (the packages that dpkg knows), `calls` (the calls of apt-get).
set -euo pipefail
cd "$(dirname "$0")/.."

passed=0
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

shim() {
    cat >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# Makes a system with an up-to-date Rust, clang, apt, root, and the packages named.
system() {
    rm -rf "${work:?}"/*
    mkdir "$work/bin"
    for tool in sh env sed sort tr grep cut cat mktemp rm flock uname dirname sleep; do
        ln -s "$(command -v $tool)" "$work/bin/$tool"
    done
    : >"$work/calls"
    printf '%s\n' "$@" >"$work/installed"
    shim id <<<'echo 0'
    shim cargo <<<'exit 0'
    shim true <<<'exit 0'
    shim python3 <<<'echo 3.11'
    shim rustc <<<'echo "rustc 1.85.0 (4d91de4e4 2025-02-17)"'
    shim apt-cache <<<'exit 0'
    : >"$work/libclang_rt.fuzzer.a"
    shim clang <<<"#!/bin/sh
        case \$1 in -dumpversion) echo 14.0.6 ;; *) echo $work/libclang_rt.fuzzer.a ;; esac"
    shim dpkg-query <<<"#!/bin/sh
        shift 3
        for package; do grep -qxF \$package $work/installed && echo installed \$package; done
        exit 1"
    # The shim knows `install`: it notes the packages, that is the words that neither begin with a
    # dash nor belong to an option.
    shim apt-get <<<"#!/bin/sh
        echo \"\$*\" >>$work/calls
        [ ! -e $work/apt-fails ] || { echo 'E: no such mirror'; exit 100; }
        case \" \$* \" in *' install '*) for word; do case \$word in -* | install | DPkg*) ;; *) echo \$word >>$work/installed ;; esac; done ;; esac"
}

# Runs bootstrap in the simulated system; sets code, out and err.
bootstrap() {
    code=0
    out=$(PATH=$work/bin scripts/bootstrap.sh "$@" 2>"$work/err" </dev/null) || code=$?
    err=$(cat "$work/err")
}

# check WHAT CONDITION...: CONDITION is a command that must succeed.
check() {
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s\n  code %s\n  out: %s\n  err: %s\n  apt-get: %s\n' "$what" "$code" "$out" "$err" "$(cat "$work/calls")" >&2
    fi
}

asked_apt() { [ -s "$work/calls" ]; }
not() { ! "$@"; }
says() { grep -qF -e "$1" <<<"$err"; }

export WEIR_NETWORK_PAUSE=0
everything=$(scripts/bootstrap.sh --list)

system
bootstrap --list
check '--list names packages' [ "$(wc -l <<<"$out")" -gt 10 ]
check '--list names what each part needs' [ "$(scripts/bootstrap.sh --list format core host avr arm rtl linux demo)" = "$out" ]
check '--list of a part is shorter' [ "$(scripts/bootstrap.sh --list host | wc -l)" -lt "$(wc -l <<<"$out")" ]
check '--list installs nothing' not asked_apt

system git make gcc
bootstrap
check 'what is missing is installed' [ "$code" = 0 ]
check 'exactly what was missing' [ "$(sort -u "$work/installed")" = "$everything" ]
check 'what is there is not asked for again' [ "$(sort "$work/installed" | uniq -d)" = "" ]
check 'apt-get cannot ask' grep -q -e ' -y \|^-y ' "$work/calls"
: >"$work/calls"
bootstrap
check 'a second run succeeds' [ "$code" = 0 ]
check 'a second run asks apt-get nothing' not asked_apt
check 'a second run says nothing' [ "$out$err" = "" ]

# shellcheck disable=SC2086
system $everything
rm "$work/libclang_rt.fuzzer.a"
bootstrap core
check "clang's run-time library is installed in clang's version" grep -q ' libclang-rt-14-dev$' "$work/calls"
shim apt-cache <<<'exit 100'
bootstrap core
check 'or under its older name' grep -q ' libclang-common-14-dev$' "$work/calls"

system git make gcc
shim id <<<'echo 1000'
bootstrap demo
check 'without root and sudo: exit 2' [ "$code" = 2 ]
check 'and the line to run' grep -q '^apt-get install .*gcc-avr' <<<"$out"
check 'and nothing is tried' not asked_apt
shim sudo <<<'exit 1'
bootstrap demo
check 'a sudo that wants a password: exit 2' [ "$code" = 2 ]
check 'and the line to run again' grep -q '^apt-get install .*gcc-avr' <<<"$out"
# shellcheck disable=SC2016
shim sudo <<<'shift; exec "$@"'
bootstrap demo
check 'a sudo without password installs' [ "$code" = 0 ]
check 'as asked' grep -q '^gcc-avr$' "$work/installed"

system git
touch "$work/apt-fails"
bootstrap host
check 'apt-get fails: exit 1' [ "$code" = 1 ]
check "and apt-get's message" says 'no such mirror'

system git
rm "$work/bin/apt-get"
bootstrap avr
check 'no apt: exit 2' [ "$code" = 2 ]
check 'and the packages' grep -qx gcc-avr <<<"$out"
check 'and how to go on' says 'BOOTSTRAP=true'

for old in 1.84.1 0.99.0; do
    # shellcheck disable=SC2086
    system $everything
    shim rustc <<<"echo 'rustc $old (x)'"
    bootstrap
    check "Rust $old is too old: exit 2" [ "$code" = 2 ]
    check 'and what is needed' says "Rust is $old; Weir needs 1.85 or newer"
done
for new in 1.85.0 1.100.1 2.0.0-nightly; do
    # shellcheck disable=SC2086
    system $everything
    shim rustc <<<"echo 'rustc $new (x)'"
    bootstrap
    check "Rust $new is new enough" [ "$code" = 0 ]
done
# shellcheck disable=SC2086
system $everything
rm "$work/bin/cargo"
bootstrap
check 'no cargo: exit 2' [ "$code" = 2 ]
check 'and where Rust comes from' says rustup

# shellcheck disable=SC2086
system $everything
shim cargo <<<'exit 101'
bootstrap
check 'no clippy: exit 2' [ "$code" = 2 ]
check 'and what is missing' says 'cargo has no fmt clippy'
# shellcheck disable=SC2016
shim rustup <<<"echo \"\$*\" >>$work/rustup"
bootstrap
check 'rustup adds clippy' grep -qx 'component add rustfmt clippy' "$work/rustup"
bootstrap host
check 'which the host part does not need' [ "$(wc -l <"$work/rustup")" = 1 ]

system
bootstrap kernel
check 'an unknown part: exit 2' [ "$code" = 2 ]
check 'and the parts there are' says 'format core host avr arm rtl linux demo papers fresh'

# A failure of the network is distinguished from all others, and only it is tried again.
system git
shim apt-get <<<"#!/bin/sh
    echo \"\$*\" >>$work/calls
    case \" \$* \" in *' update '*) exit 0 ;; esac
    echo 'E: Failed to fetch the package: Temporary failure resolving the mirror'; exit 100"
export WEIR_NETWORK_FAILURES=$work/failures
bootstrap host
unset WEIR_NETWORK_FAILURES
check 'a network that fails: exit 3' [ "$code" = 3 ]
check 'after three tries' [ "$(grep -c ' install ' "$work/calls")" = 3 ]
check 'which is noted' grep -q apt-get "$work/failures"
system git
touch "$work/apt-fails"
bootstrap host
check 'another failure is not tried again' [ "$(grep -c ' install ' "$work/calls")" = 1 ]

# shellcheck disable=SC2086
system $everything
shim cargo <<<"#!/bin/sh
    case \$1 in fetch) echo 'error: failed to download from the registry' >&2; exit 101 ;; esac"
bootstrap host
check 'packages of Rust that cannot be loaded: exit 3' [ "$code" = 3 ]
shim cargo <<<"#!/bin/sh
    case \$1 in fetch) echo 'error: the lock file needs to be updated' >&2; exit 101 ;; esac"
bootstrap host
check 'a lock file that is wrong: exit 2' [ "$code" = 2 ]

echo "bootstrap: $passed passed, $failed failed"
[ "$failed" = 0 ]
