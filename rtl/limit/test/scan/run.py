#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Simulates the memory form in the shapes of test_scan.py. `rtl/limit/test/run.sh` starts it, in the environment of `scripts/python-env.sh rtl`."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    # The model of a source is shared with the register form.
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", str(HERE / "test_scan.py"), *sys.argv[1:]]))
