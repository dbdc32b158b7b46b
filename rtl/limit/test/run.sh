#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The limiter's simulations: the register form in the shapes of test_limit.py, and the memory form
# (scan/).
#
#   rtl/limit/test/run.sh [ARGUMENTS OF PYTEST]      with arguments, only the register form's tests
#   rtl/limit/test/run.sh --largest                  only the memory form with 1,024 sources, which
#                                                 takes a minute or two: for scripts/long.sh
#
# WEIR_LIMIT_CLOCKS: the length of the comparison with core/ in clocks. WEIR_SEED: the seed of the
# random numbers (1).
set -eu
cd "$(dirname "$0")"
python=$(../../../scripts/python-env.sh rtl)
PATH=$python/bin:$PATH
export PATH PYTHONDONTWRITEBYTECODE=1

echo "test: WEIR_SEED=${WEIR_SEED:-1}"
[ "${1-}" != --largest ] || exec python3 scan/run.py -k largest
pytest -q -rs -p no:cacheprovider test_limit.py "$@"
[ $# != 0 ] || python3 scan/run.py -k 'not largest'
