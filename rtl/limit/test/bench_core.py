# SPDX-License-Identifier: MIT OR Apache-2.0
"""The limiters of the silicon and of core/ side by side: in every clock they serve the same sources, whatever comes.

Compared are, for strict, bucket and one-shot bursty sources, all services, with the instants of requests, of the ends of intervals and of the user's
enabling and disabling the same to the clock. A request at clock t is pending from t + 1 on, on both sides; a change of the enable bit counts from the
clock after the write. Not compared are what core/ has no counterpart of (LIMIT off, locks, counts) and changes of rate and burst, where silicon
promises LIMIT-CHANGE-2 and need not do the same as core/; and the time from reset until everything has come back, since core/ starts with all.
"""

import os
import random

import cocotb
from bench import SHAPE, Bench
from core_machine import BUCKET, BURSTY, STRICT, Machine, load
from model import BURST, CONTROL, ENABLE, LIMIT, POLICY, RATE

CLOCKS = int(os.environ.get("WEIR_LIMIT_CLOCKS", "6000"))


def behave(numbers, interval, burst, kind, now, last):
    """Whether the line of this source is high, for adversaries that know when it was served last."""
    if kind == "storm":
        return now % 2
    if kind == "pairs":
        # These are the times just before, at and just after the end of the interval.
        distance = now - last
        return int(any(distance == interval * n + d for n in range(1, burst + 2) for d in (-3, -1, 1)) and numbers.random() < 0.7)
    if kind == "bursts":
        return int((now // interval) % 3 == 0 and now % 2)
    if kind == "glitches":
        return int(numbers.random() < 0.5 / interval)
    return int(numbers.random() < 0.5)


@cocotb.test()
async def serves_what_core_serves(dut):
    numbers = random.Random(3)
    bench = await Bench.start(dut)
    library = load(".")
    sources = range(SHAPE.sources)
    plans = []
    for source in sources:
        policy = (STRICT, BUCKET, BURSTY)[source % 3] if SHAPE.burst_bits else STRICT
        rate = numbers.choice([255, 200, 128, 100, 85, 64, 37, 16, 9, 5])
        burst = 1 if policy == STRICT else numbers.randint(1, (1 << SHAPE.burst_bits) - 1)
        plans.append((policy, -(-(1 << SHAPE.phase_bits) // rate), burst, ("storm", "pairs", "bursts", "glitches", "random")[source * 2 // 3 % 5]))
        assert await bench.write(source, RATE, rate) and await bench.write(source, BURST, burst)
        assert await bench.write(source, CONTROL, ENABLE | LIMIT | (POLICY if policy == BURSTY else 0))
    # The bench waits until the whole burst has come back.
    for _ in range(max(interval * burst for _, interval, burst, _ in plans)):
        await bench.clock()
    machines = [Machine(library, policy, interval, burst, bench.now) for policy, interval, burst, _ in plans]
    enabled, last = [True] * SHAPE.sources, [bench.now] * SHAPE.sources
    served, changes = [0] * SHAPE.sources, []
    i, end = bench.inputs, bench.now + CLOCKS
    while bench.now < end:
        now, before = bench.now, i.irq
        i.irq = sum(behave(numbers, plan[1], plan[2], plan[3], now, last[source]) << source for source, plan in enumerate(plans))
        # The accesses that the user makes on the bus.
        if i.psel and i.penable:
            i.psel = i.penable = 0
        elif i.psel:
            i.penable = 1
            changes.append((now + 1, (i.paddr - 0x8000) // 32))
        elif numbers.random() < 0.05:
            source = numbers.randrange(SHAPE.sources)
            i.psel, i.pwrite, i.paddr = 1, 1, 0x8000 + 32 * source + CONTROL
            i.pwdata = (0 if enabled[source] else ENABLE) | LIMIT | (POLICY if plans[source][0] == BURSTY else 0)
        while changes and changes[0][0] <= now:
            source = changes.pop(0)[1]
            enabled[source] = not enabled[source]
            machines[source].user(enabled[source], now)
        answer = await bench.clock()
        for source in sources:
            times = machines[source].clock(now)
            seen = answer["irq_o"] >> source & 1
            assert times == seen, f"clock {now}: core/ serves source {source} {times} times, the silicon {seen}; {plans[source]}"
            if seen:
                last[source] = now
                served[source] += 1
        rises = i.irq & ~before
        for source in sources:
            machines[source].pending = machines[source].pending or bool(rises >> source & 1)
    assert all(served), f"something is compared: {served}"
