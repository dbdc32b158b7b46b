#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""ports/riscv on boards/soc: what core/CONTRACTS.md promises, seen from the cycles at which handlers ran, whatever the limiter thinks.

ports/riscv/tests/run.py [TEST...]    a TEST is a name as unittest takes it: Curves.test_flood
"""

import functools
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TESTS = ROOT / "ports/riscv/tests"
TOOLS = "riscv64-unknown-elf-"
MACHINE = ["-march=rv32i_zicsr", "-mabi=ilp32"]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Wundef", "-Werror"]
INCLUDES = ["core/include", "ports/riscv/include", "rtl/limit/registers/generated"]

# watched.h has the same values.
START, DISABLED, ENABLING, HANDLER = 0x10, 0x11, 0x12, 0x20

CYCLES = 200_000
# An upper bound in cycles on the delay of an interrupt, including the longest instruction, plus the
# time from the interrupt to the mark in its handler.
LATENCY = 600
# The difference in cycles of the time to the mark between a request and an expiry.
JITTER = 200
# The cycles for which interrupts are off while a limit changes. The change divides, and this
# processor has no division.
CHANGING = 2400
# The least number of cycles between two requests that a latched pending bit tells apart: longer
# than any interrupt.
APART = 500

FOLDER = tempfile.TemporaryDirectory()


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


@functools.cache
def simulator():
    return run([ROOT / "boards/soc/build.sh"]).strip().splitlines()[-1]


@functools.cache
def libgcc():
    # With _zicsr, the compiler of Debian 12 would find the library of another architecture.
    return run([TOOLS + "gcc", "-march=rv32i", "-mabi=ilp32", "-print-libgcc-file-name"]).strip()


def compiler(source, defines, output, more=()):
    return [
        TOOLS + "gcc", "-std=c11", "-O2", *MACHINE, *WARNINGS, "-ffreestanding", "-nostdlib", "-fno-ipa-icf", "-Wl,--no-warn-rwx-segments",
        *(f"-I{ROOT / include}" for include in INCLUDES), *(f"-D{define}" for define in defines), TESTS / source, *more, "-o", output,
    ]  # fmt: skip


class Firmware:
    """A program on the board: its image, and the instructions that are marks."""

    def __init__(self, image, marks):
        self.image = image
        self.marks = marks

    def run(self, floods, cycles=CYCLES):
        """Floods: cycles of rising edges by line. Returns what the simulator said, and [(cycle, mark)]."""
        command = [simulator(), "--image", self.image, "--cycles", cycles]
        for line, edges in floods.items():
            moves = pathlib.Path(FOLDER.name) / f"line{line}.moves"
            packed = b"".join(struct.pack("<QQ", at << 1 | 1, (at + 10) << 1) for at in edges)
            moves.write_bytes(packed)
            command += ["--moves", f"{line}={moves}"]
        for index, (address, _) in enumerate(self.marks):
            command += ["--mark", f"m{index}={address}"]
        said = json.loads(run(command))
        events = [(cycle, what) for index, (_, what) in enumerate(self.marks) for cycle in said["marks"][f"m{index}"]]
        return said, sorted(events)


@functools.cache
def build(source, *defines):
    base = pathlib.Path(FOLDER.name) / str(abs(hash((source, defines))))
    elf, image, marks = base.with_suffix(".elf"), base.with_suffix(".bin"), base.with_suffix(".marks")
    more = [f"-Wl,-T,{ROOT / 'ports/riscv/start/soc.ld'}", ROOT / "ports/riscv/start/start.S", ROOT / "core/src/limit.c", libgcc()]
    run(compiler(source, defines, elf, more))
    run([TOOLS + "objcopy", "-O", "binary", "-R", ".weir_marks", elf, image])
    run([TOOLS + "objcopy", "-O", "binary", "-j", ".weir_marks", "--set-section-flags", ".weir_marks=alloc", elf, marks])
    packed = marks.read_bytes() if marks.exists() else b""
    return Firmware(image, [struct.unpack_from("<II", packed, at) for at in range(0, len(packed), 8)])


def served(events, source=0):
    return [cycle for cycle, what in events if what == HANDLER + source]


class Limit:
    """A limit, as firmware and as a curve (core/CONTRACTS.md, Curves)."""

    def __init__(self, policy, timing, interval, burst=1):
        self.policy, self.timing, self.interval, self.burst = policy, timing, interval, burst

    def __repr__(self):
        return f"{self.policy} {self.timing} {self.interval} {self.burst}"

    def defines(self, *more):
        return (
            f"TEST_POLICY=WEIR_LIMIT_{self.policy}", f"TEST_TIMING=WEIR_LIMIT_{self.timing}", f"TEST_INTERVAL={self.interval}",
            f"TEST_BURST={self.burst}", *more,
        )  # fmt: skip

    def most(self, length, late):
        """In a window, if an expiry comes up to `late` cycles late; that moves the services of paced and bursty only."""
        moved = max(late, JITTER) if self.policy in ("PACED", "BURSTY") else JITTER
        periods = (length + moved) // self.interval
        if self.policy == "BURSTY":
            return self.burst * (periods + 2)
        return (self.burst if self.policy == "BUCKET" else 1) + periods

    def per_interval(self):
        return self.burst if self.policy == "BURSTY" else 1

    def pairs_below(self):
        """The least distance of each request from the one `burst` requests before it, so that the source is below the limit (LIMIT-LOSS-1)."""
        late = 0 if self.timing == "LAZY" or self.policy in ("PACED", "BUCKET") else LATENCY
        return self.interval * (self.burst if self.policy == "BUCKET" else 1) + late


LIMITS = [
    Limit("STRICT", "EAGER", 2000),
    Limit("STRICT", "LAZY", 2000),
    Limit("PACED", "EAGER", 2000),
    Limit("PACED", "LAZY", 2000),
    Limit("BURSTY", "EAGER", 8000, 4),
    Limit("BURSTY", "LAZY", 8000, 4),
    Limit("BURSTY", "ONE_SHOT", 8000, 4),
    Limit("BUCKET", "EAGER", 2000, 4),
    Limit("BUCKET", "LAZY", 2000, 4),
]


def periodic(period, cycles=CYCLES, begin=2000):
    return list(range(begin, cycles - 100, period))


def storm(interval, seed, cycles=CYCLES):
    """Bursts and pauses of every length, in step with the interval and not."""
    dice = random.Random(seed)
    now, edges = 2000, []
    while now < cycles - 100:
        edges.append(now)
        kind = dice.randrange(20)
        if kind < 12:
            now += dice.randrange(60, 900)
        elif kind < 16:
            now += dice.randrange(interval // 8, interval)
        elif kind < 19:
            now += interval * dice.randrange(1, 4) - dice.randrange(0, 300)
        else:
            now += dice.randrange(interval, interval * 12)
    return edges


def below(limit, seed, cycles=CYCLES):
    """Requests at random that stay just below the limit."""
    dice = random.Random(seed)
    edges = [2000]
    while edges[-1] < cycles - 20_000:
        soonest = edges[-1] + APART
        if len(edges) >= limit.burst:
            soonest = max(soonest, edges[-limit.burst] + limit.pairs_below() + JITTER)
        edges.append(soonest + dice.choice([0, 0, dice.randrange(100), dice.randrange(2 * limit.interval)]))
    return edges


class Board(unittest.TestCase):
    def keeps_curve(self, instants, limit, what, late=JITTER):
        for first, begin in enumerate(instants):
            for more, end in enumerate(instants[first : first + 100]):
                most = limit.most(end - begin, late)
                self.assertLessEqual(more + 1, most, f"{limit}, {what}: cycles {begin} to {end}")

    def is_live(self, instants, end, longest, what):
        """Under a flood nothing waits for longer."""
        self.assertGreater(len(instants), 3, what)
        for before, after in zip(instants, instants[1:] + [end]):
            self.assertLessEqual(after - before, longest, f"{what}: from cycle {before}")


class Curves(Board):
    def test_flood(self):
        """LIMIT-*-1, LIMIT-LIVE-1 and the rate in overload, at periods in step with the interval and not."""
        for limit in LIMITS:
            firmware = build("limited.c", *limit.defines())
            for period in [150, 390, limit.interval // limit.per_interval() - 13]:
                _, events = firmware.run({0: periodic(period)})
                instants = served(events)
                self.keeps_curve(instants, limit, period)
                self.is_live(instants, CYCLES, limit.interval + LATENCY, f"{limit}, period {period}")
                share = len(instants) / ((CYCLES - 2000) / limit.interval * limit.per_interval())
                self.assertGreater(share, 1 - LATENCY / limit.interval, f"{limit}, period {period}")

    def test_storms(self):
        for limit in LIMITS:
            firmware = build("limited.c", *limit.defines())
            for seed in range(3):
                _, events = firmware.run({0: storm(limit.interval, seed)})
                self.assertGreater(len(served(events)), 20)
                self.keeps_curve(served(events), limit, f"storm {seed}")

    def test_below_the_limit_nothing_is_lost(self):
        """LIMIT-LOSS-1, and LIMIT-LAZY-1: no timer interrupt."""
        for limit in LIMITS:
            firmware = build("limited.c", *limit.defines())
            for seed in range(2):
                edges = below(limit, seed)
                said, events = firmware.run({0: edges})
                self.assertEqual(len(served(events)), len(edges), f"{limit}, seed {seed}")
                if limit.timing == "LAZY":
                    self.assertEqual([use["cause"] for use in said["interrupts"]], [11], f"{limit}, seed {seed}")

    def test_overload_costs_nothing_more(self):
        """LIMIT-OVERLOAD-1: four times as many requests take no more interrupts."""
        for limit in LIMITS:
            firmware = build("limited.c", *limit.defines())
            taken = []
            for period in [400, 100]:
                said, _ = firmware.run({0: periodic(period)})
                taken.append(sum(use["taken"] for use in said["interrupts"]))
            self.assertLessEqual(taken[1], taken[0] * 1.02 + 2, limit)

    def test_record_changes_nothing(self):
        """LIMIT-RECORD-2: the same requests are served, if not in the same cycles."""
        for limit in LIMITS:
            edges = below(limit, 9)
            for record in [0, 1]:
                _, events = build("limited.c", *limit.defines(f"WEIR_LIMIT_RECORD={record}")).run({0: edges})
                self.assertEqual(len(served(events)), len(edges), limit)


class Time(Board):
    def test_low_word_of_mtime_wraps(self):
        """LIMIT-TIME-1: at every place of the wrap in an interval."""
        for limit in LIMITS:
            for before in [20_000, 90_451]:
                firmware = build("limited.c", *limit.defines(f"TEST_BEGIN={2**32 - before}u"))
                _, events = firmware.run({0: periodic(390)})
                self.keeps_curve(served(events), limit, f"wrap after {before}")
                self.is_live(served(events), CYCLES, limit.interval + LATENCY, f"{limit}, wrap after {before}")

    def test_idle_for_longer_than_a_wrap(self):
        """LIMIT-TIME-2: mtime leaps by a quarter of a wrap, five times; the first request after it is served at once, and no more than the curve."""
        for limit in LIMITS:
            firmware = build("limited.c", *limit.defines("TEST_IDLE=0x3fff0000u"))
            edges = [2000] + periodic(390, begin=80_000)
            said, events = firmware.run({0: edges})
            instants = served(events)
            self.assertLess(instants[0], 2000 + LATENCY, limit)
            self.assertLess(instants[1] - 80_000, LATENCY, limit)
            self.keeps_curve(instants[1:], limit, "after idling")
            self.is_live(instants[1:], CYCLES, limit.interval + LATENCY, f"{limit} after idling")


class User(Board):
    def judge(self, events, source, longest, what):
        """LIMIT-ENABLE-2 and, while it is on, LIMIT-LIVE-1."""
        disabled, since = False, None
        instants = set(served(events, source))
        last = None
        times = 0
        for cycle, mark in events:
            if mark == DISABLED:
                disabled, times = True, times + 1
            elif mark == ENABLING:
                disabled, last = False, cycle
            elif cycle in instants and mark == HANDLER + source:
                self.assertFalse(disabled, f"{what}: served at cycle {cycle} while it was off")
                if last is not None:
                    self.assertLessEqual(cycle - last, longest, f"{what}: cycle {cycle}")
                last = cycle
            if mark == DISABLED:
                last = None
        self.assertGreater(times, 4, what)

    def test_switches(self):
        for limit in LIMITS:
            firmware = build("limited.c", *limit.defines("TEST_USER"))
            for period in [390, limit.interval // 2]:
                _, events = firmware.run({0: periodic(period)})
                self.keeps_curve(served(events), limit, f"user, period {period}")
                self.judge(events, 0, limit.interval + LATENCY, f"{limit}, period {period}")
            _, events = firmware.run({0: storm(limit.interval, 5)})
            self.keeps_curve(served(events), limit, "user, storm")

    def test_changes(self):
        """LIMIT-CHANGE-2: the shortest interval with the largest burst; LIMIT-CHANGE-3 under a flood; LIMIT-CHANGE-4 in the firmware."""
        for limit in LIMITS:
            is_burst = limit.policy in ("BUCKET", "BURSTY")
            changes = "{3000,6},{2500,1}" if is_burst else "{3000,1},{2500,1}"
            firmware = build("limited.c", *limit.defines("TEST_LIMIT=WEIR_RISCV_LIMIT_TUNABLE", f"TEST_CHANGES={changes}"))
            shortest = Limit(limit.policy, limit.timing, min(limit.interval, 2500), 6 if is_burst else 1)
            for edges in [periodic(390), storm(limit.interval, 6)]:
                said, events = firmware.run({0: edges})
                self.assertIsNone(said["exit"], limit)
                self.assertGreater(len(served(events)), 8, limit)
                self.keeps_curve(served(events), shortest, "changes", late=CHANGING)


class Shared(Board):
    LIMITS = [Limit("STRICT", "EAGER", 3000), Limit("BURSTY", "LAZY", 20_000, 5), Limit("BUCKET", "LAZY", 7000, 3)]

    def judge(self, events, what):
        for source, limit in enumerate(self.LIMITS):
            self.keeps_curve(served(events, source), limit, f"{what}, source {source}")

    def test_flooded_together(self):
        """LIMIT-SHARED-2: each its own curve, and each goes on."""
        firmware = build("shared.c")
        for periods in [(390, 700, 510, 5000), (1500, 1900, 1700, 1300), (2999, 3999, 6999, 900)]:
            _, events = firmware.run({line: periodic(period, begin=2000 + 37 * line) for line, period in enumerate(periods)})
            self.judge(events, periods)
            for source, limit in enumerate(self.LIMITS):
                longest = limit.interval + periods[source] + 3 * LATENCY
                self.is_live(served(events, source), CYCLES, longest, f"source {source}, {periods}")
            offered = len(periodic(periods[3], begin=2000 + 37 * 3))
            self.assertGreaterEqual(len(served(events, 3)), offered - offered // 50 - 1, "the unlimited line keeps what it had")

    def test_storms(self):
        for seed in range(4):
            _, events = build("shared.c").run({line: storm(4000, 10 * seed + line) for line in range(4)})
            self.judge(events, f"storm {seed}")
            for source in range(4):
                self.assertGreater(len(served(events, source)), 20)

    def test_user_of_one(self):
        firmware = build("shared.c", "TEST_USER")
        _, events = firmware.run({0: periodic(1500), 1: periodic(1800), 2: periodic(2100)})
        self.judge(events, "user")
        User.judge(self, events, 1, 20_000 + 1800 + 3 * LATENCY, "user of source 1")


class Machine(Board):
    def test_registers_are_kept(self):
        for limit in LIMITS:
            for more in [(), ("TEST_SHARED",)]:
                firmware = build("registers.c", *limit.defines("TEST_LOOKS=100", *more))
                said, events = firmware.run({0: periodic(617), 1: periodic(1013)})
                self.assertEqual(said["exit"], 0, f"{limit} {more}")
                self.assertGreater(len(served(events)), 10, limit)

    def test_an_exception_reaches_the_program(self):
        for more in [(), ("TEST_SHARED",)]:
            said, events = build("exception.c", *more).run({0: periodic(500)})
            self.assertEqual(said["exit"], 7, more)
            self.assertGreater(len(served(events)), 3)

    def test_lines_beyond_an_immediate(self):
        """The entry's other form, for lines above 10, which this board does not have: the instructions."""
        listing = pathlib.Path(FOLDER.name) / "high.s"
        source = '#include "weir/riscv.h"\nWEIR_RISCV_UNLIMITED(high, 17)\n{\n}\nWEIR_RISCV_TRAP(high);\n'
        path = pathlib.Path(FOLDER.name) / "high.c"
        path.write_text(source)
        run(compiler(path, (), listing.with_suffix(".o"), ["-c"]))
        text = run([TOOLS + "objdump", "-d", "-M", "no-aliases", "--no-show-raw-insn", listing.with_suffix(".o")])
        self.assertRegex(text, r"csrrs\s+t0,0xfc0,zero\n.*srli\s+t0,t0,0x11\n.*andi\s+t0,t0,1\n")

    def test_what_cannot_be_kept_does_not_compile(self):
        good = {"policy": "WEIR_LIMIT_STRICT", "timing": "WEIR_LIMIT_LAZY", "interval": "1000", "burst": "1"}
        cases = [
            ({}, None),
            ({"interval": "0"}, "the interval must be"),
            ({"interval": "0x20000001"}, "the interval must be"),
            ({"interval": "0x100000400"}, "the interval must be"),
            ({"burst": "2"}, "the burst must be"),
            ({"burst": "257"}, "the burst must be"),
            ({"policy": "WEIR_LIMIT_BUCKET", "burst": "255", "interval": "0x400000"}, None),
            ({"policy": "WEIR_LIMIT_BUCKET", "burst": "255", "interval": "0x400001"}, "the interval must be"),
            ({"lag": "1000"}, "the lag must be"),
            ({"timing": "WEIR_LIMIT_ONE_SHOT"}, "must be WEIR_LIMIT_ names"),
            ({"policy": "9"}, "must be WEIR_LIMIT_ names"),
        ]
        for changes, message in cases:
            words = ", ".join(f".{name} = {value}" for name, value in {**good, **changes}.items())
            source = f'#include "weir/riscv.h"\nWEIR_RISCV_LIMIT(line, 0, {words})\n{{\n}}\nWEIR_RISCV_TRAP(line);\n'
            source += "int main(void)\n{\n    weir_riscv_start(line);\n    return 0;\n}\n"
            path = pathlib.Path(FOLDER.name) / "refused.c"
            path.write_text(source)
            command = compiler(path, (), path.with_suffix(".o"), ["-c", "-Wno-overflow"])
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
            self.assertEqual(done.returncode == 0, message is None, f"{words}\n{done.stderr}")
            if message is not None:
                self.assertIn(message, done.stderr)


class Silicon(Board):
    def test_driver(self):
        said, events = build("driver.c").run({0: periodic(401, cycles=3_000_000)}, cycles=3_000_000)
        self.assertEqual(said["exit"], 0, "driver.c: the line of the check that failed")
        begin = next(cycle for cycle, what in events if what == START)
        instants = [cycle for cycle in served(events) if cycle > begin + 5000]
        self.assertGreater(len(instants), 10)
        self.keeps_curve(instants, Limit("STRICT", "SILICON", 5000), "silicon")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2).result is None)
