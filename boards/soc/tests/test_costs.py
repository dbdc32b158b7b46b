# SPDX-License-Identifier: MIT OR Apache-2.0
"""costs.toml is what is measured."""

import subprocess
import tomllib

import pytest
from conftest import ROOT

BOARD = ROOT / "boards/soc"
COSTS = tomllib.loads((BOARD / "costs.toml").read_text())


def test_costs_are_what_is_measured():
    said = subprocess.run(["riscv64-unknown-elf-gcc", "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    compiler = f"riscv64-unknown-elf-gcc {said.split()[-1]}"
    if compiler not in COSTS["compilers"]:
        pytest.skip(f"they were measured with {' and '.join(COSTS['compilers'])}, and this is {compiler}")
    done = subprocess.run([BOARD / "measure/run.py", "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
