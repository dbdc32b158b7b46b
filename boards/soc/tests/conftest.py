# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compiles firmware, moves wires, runs the simulator."""

import json
import os
import struct
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parents[2]
WEIR_SOC = os.environ["WEIR_SOC"]


class Firmware:
    """One of firmware/NAME.c, compiled with these definitions."""

    def __init__(self, folder, name, **definitions):
        stem = name + "".join(f".{key}={value}" for key, value in definitions.items())
        self.elf = folder / f"{stem}.elf"
        self.image = folder / f"{stem}.bin"
        start = ROOT / "ports/riscv/start"
        subprocess.run(
            ["riscv64-unknown-elf-gcc", "-std=c11", "-O2", "-march=rv32i_zicsr", "-mabi=ilp32", "-ffreestanding", "-nostdlib", "-Wl,--no-warn-rwx-segments", "-Wall", "-Wextra", "-Werror"]
            + [f"-D{key}={value}" for key, value in definitions.items()]
            + [f"-I{ROOT / 'boards/soc/include'}", f"-Wl,-T,{start / 'soc.ld'}", start / "start.S", TESTS / f"firmware/{name}.c", "-o", self.elf],
            check=True,
        )
        subprocess.run(["riscv64-unknown-elf-objcopy", "-O", "binary", self.elf, self.image], check=True)
        lines = subprocess.run(["riscv64-unknown-elf-nm", self.elf], check=True, capture_output=True, text=True).stdout.splitlines()
        self.symbols = {line.split()[2]: int(line.split()[0], 16) for line in lines}


class Board:
    def __init__(self, folder):
        self.folder = folder

    def firmware(self, name, **definitions):
        return Firmware(self.folder, name, **definitions)

    def moves(self, edges, high=2, end_high=False):
        """A file of moves: the wire rises at each of these cycles and is high for `high` cycles; it may rise once more, at cycle 0 if never before."""
        moves = [move for edge in edges for move in (edge << 1 | 1, (edge + high) << 1)]
        if end_high:
            moves.append((moves[-1] + 2 if moves else 0) | 1)
        path = self.folder / f"{len(list(self.folder.iterdir()))}.moves"
        path.write_bytes(struct.pack(f"<{len(moves)}Q", *moves))
        return path

    def run(self, firmware, cycles, *arguments, lines={}, watch={}, mark=(), trace=False):
        """The simulator's report. `lines`: the edges of each line; `watch`: variables and their sizes."""
        command = [WEIR_SOC, "--image", firmware.image, "--cycles", str(cycles), *arguments]
        for line, edges in lines.items():
            command += ["--moves", f"{line}={self.moves(edges)}"]
        for name, size in watch.items():
            command += ["--watch", f"{name}={firmware.symbols[name]}:{size}"]
        for name in mark:
            command += ["--mark", f"{name}={firmware.symbols[name]}"]
        done = subprocess.run(command + ["--trace"] * trace, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return json.loads(done.stdout)

    def passes(self, firmware, cycles, *arguments, **options):
        """As run, for firmware that checks itself: its exit code is 0, or the line of the check that failed."""
        report = self.run(firmware, cycles, *arguments, **options)
        assert report["exit"] == 0, f"exit code {report['exit']}: the line of the check, if it is no trap"
        return report


@pytest.fixture
def board(tmp_path):
    return Board(tmp_path)


def cycles_of(report, event, line=None):
    """When this kind of event was."""
    return [each["cycle"] for each in report["events"] if each["event"] == event and line in (None, each.get("line"))]
