#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures what an interrupt costs on the board soc, and writes the column of the compiler that is installed into boards/soc/costs.toml.

    boards/soc/measure/run.py              writes the file
    boards/soc/measure/run.py --check      says whether it is what is measured

handlers.c runs under requests at random on all lines. Exit: 0 it is written, or right; 1 it is wrong; 2 it could not be measured.
"""

import argparse
import json
import random
import struct
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BOARD = ROOT / "boards/soc"
COSTS = BOARD / "costs.toml"
COMPILER = "riscv64-unknown-elf-gcc"
LINES, SEEDS, CYCLES = 8, 8, 400_000
# BEGIN: the cycle of the first request, when all lines are enabled. GAPS: the range of gaps on a
# line, from several requests per interrupt to long pauses.
BEGIN, GAPS = 2_000, (12, 6_000)
# After an interrupt the processor fetches again the instructions that it had fetched ahead. This
# takes up to this many cycles per interrupt, which the simulator charges to the interrupted program
# (boards/soc/README.md).
FETCHED_AGAIN = 2
# The cycles from a wire's edge to the earliest cycle in which the processor holds back an
# instruction (boards/soc/README.md). The wait for the end of an instruction comes in addition.
LATENCY = 7


class CannotMeasure(Exception):
    pass


def call(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotMeasure(f"{command[0]} failed:\n{done.stderr}")
    return done.stdout


def compile_into(folder):
    """The image, and the addresses of its symbols."""
    elf, image = folder / "handlers.elf", folder / "handlers.bin"
    start = ROOT / "ports/riscv/start"
    includes = [f"-I{ROOT / include}" for include in ("core/include", "ports/riscv/include")]
    flags = ["-std=c11", "-O2", "-fno-ipa-icf", "-march=rv32i_zicsr", "-mabi=ilp32", "-ffreestanding", "-nostdlib", "-Wl,--no-warn-rwx-segments"]
    warnings = ["-Wall", "-Wextra", "-Werror"]
    sources = [start / "start.S", BOARD / "measure/handlers.c"]
    call(COMPILER, *flags, *warnings, "-DWEIR_LIMIT_RECORD=0", *includes, f"-Wl,-T,{start / 'soc.ld'}", *sources, "-o", elf)
    call("riscv64-unknown-elf-objcopy", "-O", "binary", elf, image)
    words = [line.split() for line in call("riscv64-unknown-elf-nm", elf).splitlines()]
    return image, {name: int(address, 16) for address, _, name in words}


def moves(seed, line):
    """Pulses of a line at random."""
    chance = random.Random(f"{seed} {line}")
    words, cycle = [], BEGIN
    while cycle < CYCLES:
        cycle += chance.randrange(*GAPS)
        words += [cycle << 1 | 1, (cycle + 3) << 1]
    return struct.pack(f"<{len(words)}Q", *words)


def measure():
    """The longest interrupt, and the longest instruction, in cycles."""
    simulator = call(BOARD / "build.sh").strip()
    longest, instruction = 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        image, symbols = compile_into(folder)
        command = [simulator, "--image", image, "--cycles", CYCLES]
        for mark in ("before_shift", "shift_itself"):
            command += ["--mark", f"{mark}={symbols[mark]}"]
        for seed in range(SEEDS):
            attack = []
            for line in range(LINES):
                file = folder / f"{line}.moves"
                file.write_bytes(moves(seed, line))
                attack += ["--moves", f"{line}={file}"]
            report = json.loads(call(*command, *attack))
            taken = {use["line"]: use["longest_cycles"] for use in report["interrupts"]}
            if set(taken) != set(range(LINES)) or report["exceptions"] or report["bus_errors"]["count"]:
                raise CannotMeasure(f"the firmware did not take every line's interrupts without an error: {report}")
            longest = max(longest, *taken.values())
            # The smallest number of cycles belongs to a round without interrupts. The first round
            # is such a round.
            marks = report["marks"]
            instruction = max(instruction, marks["shift_itself"][0] - marks["before_shift"][0])
    return longest + FETCHED_AGAIN, instruction


def to_toml(request_served):
    """The file: what was measured beside the columns of other compilers that it has."""
    version = call(COMPILER, "--version").splitlines()[0].split()[-1]
    columns = {}
    if COSTS.exists():
        columns = tomllib.loads(COSTS.read_text())["limiter"]["c"]["off"]["request_served"]
    columns[version] = request_served
    versions = sorted(columns, key=lambda number: [int(part) for part in number.split(".")])
    compilers = json.dumps([f"{COMPILER} {number}" for number in versions])
    cells = ", ".join(f'"{number}" = {columns[number]}' for number in versions)
    return f"""\
# SPDX-License-Identifier: MIT OR Apache-2.0
# The cost of an interrupt on the board soc, in cycles, by the flavour of the port and the compiler.
# The values are measured, not edited: boards/soc/measure/run.py writes the column of the installed
# compiler, and documents the measurement. They hold for these compilers. The analysis takes the
# worst of the columns, and warns of any other compiler.
compilers = {compilers}

# The worst interrupt of ports/riscv, from the cycle in which the processor holds back the first
# instruction for it until the interrupted program has refetched its instructions: the trap's entry,
# which asks one line after the other, the handler's call, the acknowledgement, the mret. The worst
# case is the eighth and last line of a trap, which waits until the seven others were asked. The
# body of the handler, and saving the registers that the body needs, is not included. A limit in
# hardware does not change this cost: a request that it holds back never reaches the processor.

[limiter.c.off]
request_served = {{ {cells} }}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    try:
        served, instruction = measure()
        text = to_toml(served)
    except (CannotMeasure, OSError) as error:
        print(f"boards/soc/measure: {error}", file=sys.stderr)
        return 2
    stated = tomllib.loads((BOARD / "board.toml").read_text())["interrupt"]["longest_instruction_cycles"]
    if stated != instruction + LATENCY:
        print(f"boards/soc/measure: board.toml says {stated} for the longest instruction, it is {instruction} and {LATENCY}", file=sys.stderr)
        return 1
    if not arguments.check:
        COSTS.write_text(text)
    elif not COSTS.exists() or COSTS.read_text() != text:
        print("boards/soc/measure: costs.toml is not what is measured; run this without --check, and look at what has changed", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
