# SPDX-License-Identifier: MIT OR Apache-2.0
"""Everything at once at random, in each shape that test_limit.py builds: lines, acks, messages, the bus, resets; the bus with every value."""

import random

import cocotb
from bench import SHAPE, Bench
from model import BEGAN, BURST, CONTROL, ENABLE, HELD, ID, LIMIT, LOCK, POLICY, RATE, SHAPE as SHAPE_REGISTER, SOURCE, STATUS, TICK, WIDTHS

REGISTERS = [CONTROL, RATE, BURST, STATUS, HELD]
BOUNDARIES = sorted({max(0, (1 << n) + d) & 0xFFFFFFFF for n in range(33) for d in (-1, 0, 1)})


def address(numbers):
    """Mostly registers that may be there; also holes, other sources, and addresses within a word."""
    kind = numbers.random()
    if kind < 0.75:
        return SOURCE + 32 * numbers.randrange(SHAPE.sources) + numbers.choice(REGISTERS)
    if kind < 0.85:
        return numbers.choice([ID, SHAPE_REGISTER, WIDTHS, TICK, BEGAN, BEGAN + 4, BEGAN + 4 * numbers.randrange(32)])
    if kind < 0.95:
        return SOURCE + 32 * numbers.choice([SHAPE.sources, numbers.randrange(1024), 1023]) + numbers.choice([*REGISTERS, 0x14, 0x18, 0x1C])
    return numbers.randrange(1 << 16)


def value(numbers, register):
    if numbers.random() < 0.2:
        return numbers.choice([numbers.choice(BOUNDARIES), numbers.getrandbits(32)])
    if register == CONTROL:
        control = SHAPE.fixed() | (numbers.getrandbits(4) & SHAPE.varies())
        return control | (LOCK if numbers.random() < 0.02 else 0)
    if register == RATE:
        return numbers.randrange(1 << SHAPE.rate_bits)
    if register == BURST:
        return numbers.randrange((1 << max(1, SHAPE.burst_bits)) + 1)
    return numbers.getrandbits(32) if register == HELD else numbers.getrandbits(SHAPE.sources)


@cocotb.test()
async def everything_at_random(dut):
    numbers = random.Random(7)
    bench = await Bench.start(dut)
    every, i = (1 << SHAPE.sources) - 1, bench.inputs
    for phase in range(24):
        # The probabilities in a phase: how often lines change and acks and messages come, and how
        # busy the bus is.
        eager, acks, messages, ready, busy = (numbers.choice([0.0, 0.02, 0.3, 1.0]) for _ in range(5))
        for _ in range(500):
            flips = sum((numbers.random() < eager / 2) << n for n in range(SHAPE.sources))
            i.irq ^= flips
            i.ack = numbers.getrandbits(SHAPE.sources) if numbers.random() < acks else 0
            i.msi_valid, i.msi_number = int(numbers.random() < messages), numbers.choice([numbers.randrange(SHAPE.sources), numbers.randrange(1024)])
            i.msi_ready = int(numbers.random() < ready)
            i.bypass = int(numbers.random() < 0.1)
            # A reset aborts everything that is in progress.
            i.rst_n = int(numbers.random() >= 0.002)
            if not i.psel:
                i.paddr, i.pwdata, i.pwrite = address(numbers), numbers.getrandbits(32), numbers.getrandbits(1)
                if numbers.random() < busy:
                    i.pwdata = value(numbers, i.paddr % 32 if i.paddr >= SOURCE else None)
                    i.pstrb = 0xF if numbers.random() < 0.95 else numbers.getrandbits(4)
                    i.psel, i.penable = 1, 0
            elif not i.penable:
                i.penable = 1
            else:
                i.psel = i.penable = 0
            i.irq &= every
            await bench.clock()
    assert SHAPE.rate_reset == 0 or all(bench.deliveries), "no source is lost"


@cocotb.test()
async def every_value(dut):
    """All values that fit and many that do not, into each register of the first and the last source, while the lines storm."""
    numbers = random.Random(11)
    bench = await Bench.start(dut)
    for source in {0, SHAPE.sources - 1}:
        controls = [mask & (ENABLE | LIMIT | POLICY | 8) for mask in range(16)] + [1 << n for n in range(4, 31)] + [ENABLE | LIMIT | LOCK | 16]
        for register, values in (
            (CONTROL, controls),
            (RATE, sorted({*range(min(300, 2 << SHAPE.rate_bits)), *BOUNDARIES})),
            (BURST, sorted({*range(300), *BOUNDARIES}) if SHAPE.burst_bits else [*range(9), *BOUNDARIES]),
            (STATUS, BOUNDARIES),
            (HELD, BOUNDARIES),
        ):
            for each in values:
                bench.inputs.irq = numbers.getrandbits(SHAPE.sources)
                await bench.write(source, register, each)
                await bench.read(source, register)
    # The source is locked: its values are written again, and none of them may change.
    if SHAPE.lock:
        assert await bench.write(0, CONTROL, SHAPE.fixed() | LOCK)
        for register in (CONTROL, RATE, BURST):
            for each in [0, 1, 2, 3, 6, 15, SHAPE.fixed() | LOCK, SHAPE.fixed() | LOCK | ENABLE, SHAPE.fixed() | LOCK | LIMIT, 0xFFFFFFFF]:
                await bench.write(0, register, each)
                await bench.read(0, register)
