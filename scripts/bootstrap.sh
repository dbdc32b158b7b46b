#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Installs the system packages that Weir needs, on Debian and Ubuntu, and checks the Rust toolchain.
#
#   scripts/bootstrap.sh [PART...]          install what the parts need and is missing; all parts if
#                                        none is named
#   scripts/bootstrap.sh --list [PART...]   print the packages, one a line, and stop
#
# Parts: format core host avr arm rtl linux demo, the ones of `make test` and `make demo`; papers,
# the needs of `make papers`; fresh, those of scripts/fresh.sh. Safe to run twice: installed
# packages are left alone, and if nothing is missing, neither root nor the network is needed. Asks
# no question. Downloads are tried three times, Rust's packages included. With
# WEIR_NETWORK_FAILURES, a network that fails is noted
# (scripts/network.sh).
# Exit: 0 everything is installed; 1 apt failed; 3 the network failed; 2 something is missing that
# cannot be installed from here, and the message says what to do.
set -eu

RUST_NEEDED=1.85
ALL_PARTS='format core host avr arm rtl linux demo'

# Packages per part, by the names that are common to Debian (from 12 on) and Ubuntu (from 22.04 on).
# The names have no version: clang, not clang-14.
packages_of() {
    case $1 in
    # Cargo links with gcc. Gcc brings ASan's and UBSan's run-time libraries.
    build) echo git make gcc libc6-dev ;;
    # The crate simavr-ffi compiles simavr (make, gcc, avr-libc's chip headers), links these
    # libraries (found by pkg-config) and reads simavr's headers through libclang. gcc-avr compiles
    # the firmware.
    board) echo gcc-avr binutils-avr avr-libc pkg-config libelf-dev zlib1g-dev libzstd-dev libclang-dev ;;
    # Clang compiles the BPF programs; libbpf links the libraries and needs their headers.
    bpf) echo clang linux-libc-dev pkg-config libelf-dev zlib1g-dev ;;
    # Clippy checks every crate, the board's too, so it must be able to build them. The other
    # linters are Python packages (requirements.lock).
    format) packages_of build && packages_of board && packages_of bpf && echo perl python3-venv ;;
    # Both compilers and avr-gcc compile the machine; the fuzzer needs clang, whose run-time library
    # has a versioned name: see below.
    core) packages_of build && echo clang gcc-avr binutils-avr avr-libc ;;
    # A Python package is the reference for the analysis.
    host) packages_of build && echo python3-venv ;;
    demo) packages_of build && packages_of board ;;
    # The RISC-V board's firmware is compiled, too: the tests run it.
    avr) packages_of build && packages_of board && echo g++ perl python3-venv gcc-riscv64-unknown-elf ;;
    # The plugin runs in QEMU, whose guests the tests compile; one of them uses a C library, and
    # unmodified clients talk to it.
    arm) packages_of build && packages_of board && echo qemu-system-arm gcc-arm-none-eabi libnewlib-arm-none-eabi python3-venv curl ;;
    # The tests make network namespaces; the experiments run Debian's kernels in a guest of QEMU,
    # whose programs are busybox' and ours. The systemd unit is compared with the system calls of
    # runs.
    linux) packages_of build && packages_of board && packages_of bpf && echo iproute2 qemu-system-x86 busybox-static xz-utils zstd strace systemd ;;
    # Verilator's C++ is compiled here; Icarus simulates unknown values. The tools for silicon are
    # Python packages (requirements.lock).
    rtl) packages_of build && packages_of board && echo g++ perl python3-venv iverilog gcc-riscv64-unknown-elf ;;
    papers) packages_of avr && packages_of arm && packages_of rtl && packages_of linux ;;
    # The Debian that scripts/fresh.sh makes contains everything else.
    fresh) echo git debootstrap ;;
    esac
}

say() { echo "bootstrap: $*" >&2; }

fail() {
    say "$@"
    exit 2
}

list=no
parts=
for argument; do
    case $argument in
    --list) list=yes ;;
    -h | --help)
        sed -n '4,/^set /s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    format | core | host | avr | arm | rtl | linux | demo | papers | fresh) parts="$parts $argument" ;;
    *) fail "'$argument' is no part; the parts are: $ALL_PARTS papers fresh. See scripts/bootstrap.sh --help." ;;
    esac
done
parts=${parts:-$ALL_PARTS}
here=$(cd "$(dirname "$0")" && pwd)

packages=$(for part in $parts; do packages_of "$part"; done | tr ' ' '\n' | sort -u)

if [ $list = yes ]; then
    echo "$packages"
    exit 0
fi

# ---------------------------------------------------------------------------------- system packages

# Two calls at once (make -j) wait for each other here; the lock ends with the process.
if command -v flock >/dev/null; then
    exec 9<"$0"
    flock 9
fi

# Prints those of the given packages that are not installed.
missing_of() {
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p') || true
    for package; do
        echo "$installed" | grep -qxF -e "$package" || echo "$package"
    done
}

# Runs apt-get with the given arguments as root, without a question; shows its output only if it
# fails.
run_apt() {
    "$here/network.sh" $as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a apt-get -y -qq -o DPkg::Lock::Timeout=600 "$@"
}

install() {
    line="apt-get install -y --no-install-recommends $*"
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        as_root='sudo -n'
    else
        say "packages are missing, and installing them needs root. Run this line as root (or with sudo before it), then try again:"
        echo "$line"
        exit 2
    fi
    say "installing: $*"
    # Old lists name packages that the mirror no longer has. Without the network the install below
    # reports the error, and only that one is noted as the network's failure.
    (unset WEIR_NETWORK_FAILURES && run_apt update) || say "apt-get update failed; trying with the package lists that are there"
    code=0
    run_apt install --no-install-recommends "$@" || code=$?
    case $code in
    0) ;;
    3) exit 3 ;;
    *)
        say "apt-get could not install the packages; its message is above. The line was: $line"
        exit 1
        ;;
    esac
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "this system has no apt. Install the counterparts of these Debian packages:"
    echo "$packages"
    fail "then run make with BOOTSTRAP=true, which leaves this check out."
fi

# Package names hold no blanks: the lists are split into words on purpose, here and below.
# shellcheck disable=SC2086
missing=$(missing_of $packages)
# shellcheck disable=SC2086
[ -z "$missing" ] || install $missing

# cocotb loads Python into the simulators from a shared library, whose package is named after its
# version.
case " $parts " in
*' rtl '* | *' papers '*)
    version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    case $(command -v python3) in
    # Only Debian's own Python needs the package: another Python brings its library with it.
    /usr/bin/python3)
        missing=$(missing_of "libpython$version")
        [ -z "$missing" ] || install "$missing"
        ;;
    esac
    ;;
esac

# clang's sanitizers and fuzzer are in a package named after its version; older releases have them
# in libclang-common-*-dev. Only the installed clang knows its version.
case " $parts " in
*' core '*)
    runtime=$(clang -print-file-name=libclang_rt.fuzzer-"$(uname -m)".a)
    if [ ! -e "$runtime" ]; then
        version=$(clang -dumpversion | cut -d. -f1)
        package=libclang-rt-$version-dev
        apt-cache show "$package" >/dev/null 2>&1 || package=libclang-common-$version-dev
        install "$package"
    fi
    ;;
esac

# --------------------------------------------------------------------------------------------- Rust

case $parts in ' fresh') exit 0 ;; esac

how='With rustup (https://rustup.rs): rustup update stable'
command -v cargo >/dev/null || fail "cargo is not in PATH; Weir needs Rust $RUST_NEEDED or newer. $how. If Rust is installed, add the folder of cargo (often ~/.cargo/bin) to PATH."
rust=$(rustc --version | cut -d' ' -f2)
major=${rust%%.*}
minor=${rust#*.}
minor=${minor%%.*}
if [ "$major" -lt "${RUST_NEEDED%.*}" ] || { [ "$major" = "${RUST_NEEDED%.*}" ] && [ "$minor" -lt "${RUST_NEEDED#*.}" ]; }; then
    fail "Rust is $rust; Weir needs $RUST_NEEDED or newer. $how."
fi

case " $parts " in
*' format '*)
    for tool in fmt clippy; do
        cargo $tool --version >/dev/null 2>&1 || absent="${absent-} $tool"
    done
    if [ -n "${absent-}" ]; then
        if command -v rustup >/dev/null; then
            say "adding rustfmt and clippy to the Rust toolchain"
            rustup component add rustfmt clippy >&2 </dev/null || fail "rustup could not add them. Run: rustup component add rustfmt clippy"
        elif dpkg-query -S "$(command -v rustc)" >/dev/null 2>&1; then
            install rustfmt rust-clippy
        else
            fail "cargo has no$absent. Install rustfmt and clippy where this Rust came from ($(command -v cargo))."
        fi
    fi
    ;;
esac

# Downloads all packages of every part at once: a later failure is not the network's.
triple=$(rustc -vV | sed -n 's/^host: //p')
fetch() {
    cd "$1" || exit
    code=0
    "$here/network.sh" cargo fetch --quiet --locked ${triple:+--target "$triple"} || code=$?
    case $code in
    0) ;;
    3) exit 3 ;;
    *) fail "cargo could not download the packages of Cargo.lock; its message is above" ;;
    esac
}
fetch "$here/.."
case " $parts " in
*' papers '*) fetch "$here/../papers" ;;
esac
