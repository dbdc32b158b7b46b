#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compiles main.c with the header that `weir generate --rtl` wrote into a folder, and floods its three wires for half a second on the board soc.

examples/limit-in-silicon/run.py FOLDER    exit code 1 if more came through than the limits allow, or less than they must let through
"""

import json
import pathlib
import re
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLOCK, CYCLES = 4_000_000, 2_000_000
# The number of clocks between two edges on each wire.
FLOODS = {0: 130, 1: 170, 2: 190}
# The least and the most that half a second allows: interrupts by line (bucket 4 + 1 kHz, strict 2
# kHz, bursty 6 per 50 ms), and units of work of the handlers that drain. The radio requests anew
# after each part that is taken from it, and deliveries during its handler make a single interrupt:
# at least half of what the limit lets through.
LEAST_MOST = {"line 0": (498, 504), "line 1": (994, 1001), "line 2": (30, 71), "bytes": (1900, 504 * 4), "parts": (60, 71 * 2), "overloads": (7, 7)}


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    elf, image = folder / "example.elf", folder / "example.bin"
    gcc = "riscv64-unknown-elf-gcc"
    run(
        gcc, "-std=c11", "-O2", "-march=rv32i_zicsr", "-mabi=ilp32", "-ffreestanding", "-nostdlib", "-ffunction-sections", "-fdata-sections",
        "-Wl,--gc-sections", "-Wl,--no-warn-rwx-segments", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-I", folder,
        *(f"-I{ROOT / include}" for include in ["core/include", "ports/riscv/include", "rtl/limit/registers/generated"]),
        "-T", ROOT / "ports/riscv/start/soc.ld", ROOT / "ports/riscv/start/start.S", ROOT / "examples/limit-in-silicon/main.c",
        ROOT / "core/src/limit.c", run(gcc, "-march=rv32i", "-mabi=ilp32", "-print-libgcc-file-name").strip(), "-o", elf,
    )  # fmt: skip
    run("riscv64-unknown-elf-objcopy", "-O", "binary", elf, image)
    symbols = {name: address for address, name in re.findall(r"(\w+) \w (\w+)", run("riscv64-unknown-elf-nm", elf))}
    command = [run(ROOT / "boards/soc/build.sh").strip(), "--image", image, "--cycles", CYCLES, "--clock-hz", CLOCK]
    for line, period in FLOODS.items():
        moves = folder / f"line{line}.moves"
        moves.write_bytes(b"".join(struct.pack("<QQ", at << 1 | 1, (at + 10) << 1) for at in range(3000, CYCLES, period)))
        command += ["--moves", f"{line}={moves}"]
    for name in ["bytes", "teeth", "parts", "overloads", "progress"]:
        command += ["--watch", f"{name}=0x{symbols[name]}:4"]
    said = json.loads(run(*command))
    got = {f"line {use['line']}": use["taken"] for use in said["interrupts"]} | said["counters"]
    failed = False
    for name, value in got.items():
        least, most = LEAST_MOST.get(name, (1, None))
        good = least <= value and (most is None or value <= most)
        failed |= not good
        print(f"{name:10} {value:8}   {'' if good else f'FAILED: {least} to {most} was expected'}")
    sys.exit(failed)


main()
