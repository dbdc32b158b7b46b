# SPDX-License-Identifier: MIT OR Apache-2.0
"""weir_limit with FORM = 1 and as many sources as there can be: each is itself, up to the last, and the interval is exact at the longest scan."""

import random

import cocotb
from bench_scan_top import ALL, SHAPE, Top
from model import BEGAN, CONTROL, ENABLE, LIMIT, RATE, SOURCE, STATUS, TICK

# The largest number of clocks from an edge at a pin until its output has been seen: the
# synchroniser, the scan, the output's register, and the clock that sees the output.
LATEST = SHAPE.sync + SHAPE.lateness + 2


def place(source):
    """The clock of the scan in which a source can come out, from that of source 0: a row of the memory comes out at once."""
    return source // SHAPE.group * (SHAPE.group + 1)


@cocotb.test()
async def each_source_is_itself(dut):
    """Lines that rise together come out in their rows' places of the scan, and no other comes: half of them at random, then the other half."""
    top = await Top(dut).start()
    assert await top.access(TICK) == SHAPE.period
    for _ in range(SHAPE.period):
        await top.step()
    half = random.getrandbits(SHAPE.sources)
    for rising in (half, ALL & ~half):
        came, begun, top.lines, top.acknowledge = {}, top.clock, rising, 0
        while top.seen != rising:
            before = top.seen
            await top.step()
            assert top.clock - begun <= LATEST
            new = top.seen & ~before
            came |= {source: top.clock for source in range(SHAPE.sources) if new and new >> source & 1}
        first = came[min(came)] - place(min(came))
        assert {(clock - place(source) - first) % SHAPE.period for source, clock in came.items()} == {0}
        top.lines, top.acknowledge = 0, ALL
        for _ in range(SHAPE.sync + SHAPE.lateness):
            await top.step()
        assert top.seen == 0


@cocotb.test()
async def intervals_are_exact(dut):
    """T from output to output, of the first and last sources of rows and of the scan, while all others are in overload, too."""
    top = await Top(dut).start()
    rates = {source: (1 << SHAPE.rate_bits) - 1 for source in (0, SHAPE.group - 1, SHAPE.group, SHAPE.sources - 1)}
    for source, rate in rates.items():
        assert await top.write(source, RATE, rate) and await top.write(source, CONTROL, ENABLE | LIMIT)
        assert await top.access(SOURCE + 32 * source + RATE) == rate
    rises, before = {source: [] for source in rates}, 0
    # The first delivery may have been on its way when the rate was written.
    while min(map(len, rises.values())) < 3:
        # Some edges come in each interval; the simulation's run time depends on how often lines
        # change.
        top.lines, top.acknowledge = ALL if top.clock % 256 < 128 else 0, top.seen
        await top.step()
        for source in rates:
            if top.seen & ~before & 1 << source:
                rises[source].append(top.clock)
        before = top.seen
        assert top.clock < 20 * SHAPE.period
    for source, clocks in rises.items():
        assert {later - earlier for earlier, later in zip(clocks[1:], clocks[2:])} == {SHAPE.interval(rates[source])}, f"source {source}"


@cocotb.test()
async def bus_is_bounded(dut):
    """LIMIT-SILICON-9: an access to the last source waits no longer than one of few, wherever it meets the scan."""
    top = await Top(dut).start()
    # The bench waits for the end of the first round.
    for _ in range(SHAPE.period):
        await top.step()
    last = SOURCE + 32 * (SHAPE.sources - 1)
    for _ in range(100):
        for address, bound in ((last + CONTROL, 2 * SHAPE.group + 5), (last + STATUS, 2 * SHAPE.group + 2), (BEGAN + SHAPE.sources // 32 * 4 - 4, SHAPE.group + 1)):
            for _ in range(random.randrange(SHAPE.group)):
                await top.step()
            begun = top.clock
            assert await top.access(address) is not None
            # The clock of the setup and the last one do not count as waiting.
            assert top.clock - begun - 2 <= bound, f"{address:#x}"
