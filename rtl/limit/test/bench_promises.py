# SPDX-License-Identifier: MIT OR Apache-2.0
"""What README.md and core/CONTRACTS.md promise, one after the other, by hand: with numbers that are not the model's."""

import cocotb
from cocotb.triggers import Timer
from bench import SHAPE, Bench
from model import BEGAN, BURST, CONTROL, ENABLE, HELD, LIMIT, LOCK, NOTIFY, POLICY, RATE, SOURCE, STATUS

# An EDGE source and a LEVEL source of the shape.
EDGE, LEVEL = 0, 1


async def set_up(dut, rate, burst=1, control=ENABLE | LIMIT, source=EDGE):
    """The source is set, and everything has come back."""
    bench = await Bench.start(dut)
    assert await bench.write(source, RATE, rate) and await bench.write(source, BURST, burst) and await bench.write(source, CONTROL, control)
    await idle(bench, (1 << SHAPE.phase_bits) // rate * burst + 8)
    bench.deliveries = [[] for _ in bench.deliveries]
    return bench


async def idle(bench, clocks):
    for _ in range(clocks):
        await bench.clock()


async def storm(bench, source, clocks):
    """An edge every other clock, acknowledged at once."""
    bench.inputs.ack = 1 << source
    for n in range(clocks):
        bench.inputs.irq = (n & 1) << source
        await bench.clock()
    bench.inputs.irq = bench.inputs.ack = 0


async def edge(bench, source):
    bench.inputs.irq |= 1 << source
    await bench.clock()
    bench.inputs.irq &= ~(1 << source)


@cocotb.test()
async def the_interval_is_exact(dut):
    for rate, interval in ((255, 5), (128, 8), (100, 11), (33, 32), (1, 1024)):
        bench = await set_up(dut, rate)
        await storm(bench, EDGE, 3 * interval + 20)
        times = bench.deliveries[EDGE]
        assert len(times) >= 3 and {b - a for a, b in zip(times, times[1:])} == {interval}, f"rate {rate}: {times}"


@cocotb.test()
async def a_bucket_gives_its_burst_and_then_one_per_interval(dut):
    bench = await set_up(dut, 64, burst=5)
    await storm(bench, EDGE, 100)
    times = bench.deliveries[EDGE]
    assert times[4] - times[0] <= 10 and times[5] - times[0] == 16 and {b - a for a, b in zip(times[5:], times[6:])} == {16}, times


@cocotb.test()
async def a_burst_comes_back_as_a_whole(dut):
    bench = await set_up(dut, 32, burst=3, control=ENABLE | LIMIT | POLICY)
    await storm(bench, EDGE, 120)
    times = bench.deliveries[EDGE]
    assert times[3] - times[0] == 32 and times[6] - times[3] == 32 and times[5] - times[3] <= 6, times


@cocotb.test()
async def a_request_in_time_passes_at_once(dut):
    """From the edge through the synchroniser to the output: SYNC + 2 clocks."""
    bench = await set_up(dut, 255)
    begun = bench.now
    bench.inputs.irq = 1 << EDGE
    while not (await bench.clock())["irq_o"]:
        assert bench.now - begun <= SHAPE.sync + 2
    assert bench.now - 1 - begun == SHAPE.sync + 2


@cocotb.test()
async def an_output_is_held_until_it_is_acknowledged(dut):
    bench = await set_up(dut, 255)
    await edge(bench, EDGE)
    await idle(bench, 50)
    await edge(bench, EDGE)
    await idle(bench, 50)
    assert len(bench.deliveries[EDGE]) == 1 and (await bench.clock())["irq_o"] == 1 << EDGE
    bench.inputs.ack = 1 << EDGE
    await bench.clock()
    bench.inputs.ack = 0
    assert (await bench.clock())["irq_o"] == 0, "released"
    assert (await bench.clock())["irq_o"] == 1 << EDGE, "the second one was noted"
    assert len(bench.deliveries[EDGE]) == 2


@cocotb.test()
async def a_level_asks_until_it_falls(dut):
    bench = await set_up(dut, 64, source=LEVEL)
    bench.inputs.irq = 1 << LEVEL
    await idle(bench, 60)
    assert len(bench.deliveries[LEVEL]) == 1, "held, not delivered again"
    for _ in range(3):
        bench.inputs.ack = 1 << LEVEL
        await bench.clock()
        bench.inputs.ack = 0
        await idle(bench, 30)
    assert len(bench.deliveries[LEVEL]) == 4, "each acknowledged one is followed by another as long as the level stands"
    times = bench.deliveries[LEVEL]
    assert min(b - a for a, b in zip(times, times[1:])) >= 16
    bench.inputs.irq = 0
    await idle(bench, SHAPE.sync + 2)
    assert (await bench.clock())["irq_o"] == 0, "no ack is needed where the level has ended"


@cocotb.test()
async def the_users_disable_wins(dut):
    bench = await set_up(dut, 128)
    await edge(bench, EDGE)
    await idle(bench, 10)
    assert await bench.write(EDGE, CONTROL, LIMIT)
    assert (await bench.clock())["irq_o"] == 0, "what was held is hidden"
    bench.inputs.ack = 1 << EDGE
    await bench.clock()
    bench.inputs.ack = 0
    await edge(bench, EDGE)
    await idle(bench, 40)
    assert len(bench.deliveries[EDGE]) == 1
    assert await bench.write(EDGE, CONTROL, ENABLE | LIMIT)
    await idle(bench, 2)
    assert len(bench.deliveries[EDGE]) == 2, "and what was noted comes after enabling"


@cocotb.test()
async def switching_the_limit_on_lets_no_more_through(dut):
    bench = await set_up(dut, 16, control=ENABLE)
    i = bench.inputs
    for n in range(200):
        i.irq, i.ack = (n & 1) << EDGE, 1 << EDGE
        i.psel, i.penable, i.pwrite, i.paddr, i.pwdata = int(n in (70, 71)), int(n == 71), 1, SOURCE + 32 * EDGE + CONTROL, ENABLE | LIMIT
        await bench.clock()
    times = bench.deliveries[EDGE]
    gaps = [b - a for a, b in zip(times, times[1:])]
    assert gaps[:20] == [2] * 20, "all pass"
    assert 64 <= [gap for gap in gaps if gap > 2][0] <= 65 and gaps[-1] == 64, gaps


@cocotb.test()
async def overloads_are_told_and_counted(dut):
    bench = await set_up(dut, 16, control=ENABLE | LIMIT | NOTIFY)
    assert await bench.write(EDGE, HELD, 0) and await bench.read(EDGE, HELD) == 0
    await edge(bench, EDGE)
    await idle(bench, 8)
    assert await bench.read(EDGE, STATUS) == 0 and (await bench.clock())["overload_irq_o"] == 0, "closed, and no overload yet"
    bench.inputs.ack = 1 << EDGE
    await edge(bench, EDGE)
    await idle(bench, 8)
    assert await bench.read(EDGE, STATUS) == 0b110 and (await bench.clock())["overload_irq_o"] == 1
    assert await bench.read(EDGE, HELD) == 1
    assert await bench.access(BEGAN) == (1 << EDGE, False)
    assert (await bench.access(BEGAN, 1 << EDGE))[1] is False
    assert (await bench.clock())["overload_irq_o"] == 0 and (await bench.access(BEGAN))[0] == 0
    await idle(bench, 140)
    assert await bench.read(EDGE, STATUS) == 0b001, "it is over"
    await storm(bench, EDGE, 60)
    assert await bench.read(EDGE, HELD) == (1 << SHAPE.held_bits) - 1, "the count stays at its end"


@cocotb.test()
async def a_beginning_is_not_cleared_with_the_one_before(dut):
    bench = await set_up(dut, 255, control=ENABLE | LIMIT | NOTIFY)
    i = bench.inputs
    kept = set()
    for clear in range(12):
        # The second of two edges finds the limit closed; BEGAN is cleared one clock later in each
        # round.
        i.ack = 1 << EDGE
        for n in range(16):
            i.irq = int(n in (0, 2)) << EDGE
            i.psel, i.penable, i.pwrite, i.paddr, i.pwdata = int(n in (clear, clear + 1)), int(n == clear + 1), 1, BEGAN, 1 << EDGE
            await bench.clock()
        i.psel = i.penable = 0
        kept.add((await bench.access(BEGAN))[0])
        await bench.access(BEGAN, 1 << EDGE)
        await idle(bench, 10)
    assert kept == {0, 1 << EDGE}, "cleared after it began, kept if it began later or at once"


@cocotb.test()
async def a_lock_lasts_until_reset(dut):
    bench = await set_up(dut, 16)
    assert await bench.write(EDGE, CONTROL, ENABLE | LIMIT | LOCK)
    assert not await bench.write(EDGE, RATE, 255) and not await bench.write(EDGE, BURST, 2)
    for control in (ENABLE, ENABLE | LIMIT, ENABLE | LOCK, LIMIT | POLICY | LOCK, LIMIT | NOTIFY | LOCK):
        assert not await bench.write(EDGE, CONTROL, control)
    assert (await bench.read(EDGE, RATE), await bench.read(EDGE, BURST)) == (16, 1)
    assert await bench.write(EDGE, CONTROL, LIMIT | LOCK), "the user's bit is not locked"
    assert await bench.write(EDGE + 1, RATE, 3), "nor are other sources"
    bench.inputs.rst_n = 0
    await bench.clock()
    bench.inputs.rst_n = 1
    assert await bench.write(EDGE, RATE, 255)


@cocotb.test()
async def what_is_wrong_is_refused(dut):
    bench = await set_up(dut, 16)
    last = SHAPE.sources - 1
    for address in (SOURCE + 32 * SHAPE.sources, 0xFFE0, 0x10, 0x3C, 0x44, 0x7FFC, SOURCE + 0x14, SOURCE + 1, SOURCE + 32 * last + 0x1C):
        assert (await bench.access(address))[1] and (await bench.access(address, 1))[1], hex(address)
    for register, value in ((RATE, 0), (RATE, 256), (RATE, 1 << 31), (BURST, 0), (BURST, 8), (BURST, 1 << 16), (CONTROL, 0x10), (STATUS, 0)):
        assert not await bench.write(EDGE, register, value), f"{register:#x}: {value:#x}"
    for strobes in range(15):
        assert (await bench.access(SOURCE + RATE, 77, strobes))[1]
    assert await bench.read(EDGE, RATE) == 16 and await bench.read(EDGE, BURST) == 1 and await bench.read(EDGE, CONTROL) == ENABLE | LIMIT


@cocotb.test()
async def the_bypass_needs_no_clock(dut):
    bench = await set_up(dut, 16)
    i = bench.inputs
    i.irq, i.bypass = 0b11111, 1
    bench.apply()
    await Timer(1, "step")
    assert int(dut.irq_o.value) == 1 << EDGE, "the enabled ones"
    i.bypass = 0
    bench.apply()
    await Timer(1, "step")
    assert int(dut.irq_o.value) == 0


@cocotb.test()
async def a_rate_that_changes_keeps_what_was_gathered(dut):
    bench = await set_up(dut, 1)
    bench.inputs.ack = 1 << EDGE
    await edge(bench, EDGE)
    await idle(bench, 500)
    await edge(bench, EDGE)
    await bench.write(EDGE, RATE, 128)
    await idle(bench, 20)
    first, second = bench.deliveries[EDGE]
    assert 500 < second - first < 520, "500 clocks at 1, then 5 at 128"
