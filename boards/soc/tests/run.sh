#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Tests the board soc: runs small firmware on the simulator, and checks the simulator's messages for
# wrong command lines. Arguments go to pytest. Exit: 0 all passed; 1 a test failed; 2 something is
# missing, and the message says what to do.
set -euo pipefail
cd "$(dirname "$0")/../../.."

command -v riscv64-unknown-elf-gcc >/dev/null || {
    echo "boards/soc/tests: riscv64-unknown-elf-gcc is missing; scripts/bootstrap.sh rtl installs it" >&2
    exit 2
}
environment=$(scripts/python-env.sh rtl) || exit 2
WEIR_SOC=$(boards/soc/build.sh) || exit 2
export WEIR_SOC
exec "$environment/bin/python" -B -m pytest -q -rs -p no:cacheprovider "$@" boards/soc/tests
