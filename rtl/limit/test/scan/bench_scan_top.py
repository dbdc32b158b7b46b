# SPDX-License-Identifier: MIT OR Apache-2.0
"""weir_limit with FORM = 1: the memory form behind the synchronisers, the bus and the outputs that hold."""

import json
import os
import random

import cocotb
from cocotb.triggers import Timer
from model import BEGAN, BURST, CONTROL, ENABLE, HELD, LIMIT, LOCK, RATE, SOURCE, STATUS, TICK
from scan_model import Shape

SHAPE = Shape(**json.loads(os.environ["WEIR_LIMIT_SHAPE"]))
ALL = (1 << SHAPE.sources) - 1


class Top:
    """Clock by clock. `irq_o` of each clock is in `seen`."""

    def __init__(self, dut):
        self.dut, self.clock, self.seen = dut, 0, 0
        self.lines = self.acknowledge = 0

    async def start(self):
        dut = self.dut
        for name in "clk psel penable pwrite paddr pwdata irq ack msi_valid msi_number bypass".split():
            getattr(dut, f"{name}_i").value = 0
        dut.pstrb_i.value, dut.msi_ready_i.value, dut.rst_ni.value = 0xF, 1, 0
        await self.step()
        dut.rst_ni.value = 1
        return self

    async def step(self):
        dut = self.dut
        dut.irq_i.value, dut.ack_i.value = self.lines, self.acknowledge
        await Timer(1, "step")
        outputs = dut.irq_o.value
        self.seen = int(outputs) if outputs.is_resolvable else None
        self.ready = bool(int(dut.pready_o.value))
        self.refused, self.read = bool(int(dut.pslverr_o.value)), int(dut.prdata_o.value) if dut.prdata_o.value.is_resolvable else None
        dut.clk_i.value = 1
        await Timer(1, "step")
        dut.clk_i.value = 0
        self.clock += 1

    async def access(self, address, value=None, each=None, patience=None):
        """Returns what was read, or None if it was refused. `each` is called in each clock. With `patience` it is given up after so many clocks of
        waiting, and the bus is free for the next one; then True if it was ready before."""
        dut = self.dut
        dut.psel_i.value, dut.paddr_i.value, dut.pwrite_i.value, dut.pwdata_i.value = 1, address, int(value is not None), value or 0
        for clocks in range(2 * SHAPE.period + 4):
            await self.step()
            if each:
                each()
            if clocks and self.ready:
                break
            if clocks == patience:
                dut.penable_i.value = 0
                return False
            dut.penable_i.value = 1
        else:
            raise AssertionError(f"no answer at {address:#x}")
        dut.psel_i.value = dut.penable_i.value = 0
        return True if patience else None if self.refused else self.read

    async def write(self, source, register, value, each=None):
        return await self.access(SOURCE + 32 * source + register, value, each) is not None


@cocotb.test()
async def bus(dut):
    """What is written is read; what does not fit, is not there or is locked is refused and changes nothing."""
    top = await Top(dut).start()
    assert await top.access(TICK) == SHAPE.period
    last = SHAPE.sources - 1
    for source in (0, last):
        for register, good, bad in ((RATE, 37, 1 << SHAPE.rate_bits), (BURST, 3, 1 << SHAPE.burst_bits), (CONTROL, ENABLE | LIMIT, 1 << 5)):
            assert await top.write(source, register, good)
            assert not await top.write(source, register, bad)
            assert await top.access(SOURCE + 32 * source + register) == good
    assert await top.access(SOURCE + 32 * SHAPE.sources + RATE) is None
    assert not await top.write(0, STATUS, 0)
    assert await top.write(0, CONTROL, ENABLE | LIMIT | LOCK)
    assert not await top.write(0, RATE, 1) and not await top.write(0, CONTROL, ENABLE | LOCK)
    assert await top.write(0, CONTROL, LIMIT | LOCK)
    assert await top.access(SOURCE + RATE) == 37 and await top.access(SOURCE + CONTROL) == LIMIT | LOCK
    assert await top.write(last, RATE, 1)


@cocotb.test()
async def given_up(dut):
    """An access that the master gives up while it waits, in whatever clock, is done whole or not at all, and leaves nothing behind: the next write to a locked
    source is refused, the next one to another source counts, and BEGAN is read whole."""
    top = await Top(dut).start()
    locked, other = 0, SHAPE.sources - 1
    began = 1 << 2 | 1 << SHAPE.sources - 2
    for source in (locked, other, 2, SHAPE.sources - 2):
        assert await top.write(source, RATE, 37) and await top.write(source, CONTROL, ENABLE | LIMIT | (LOCK if source == locked else 0))
    for clock in range(2 * SHAPE.interval(37)):
        top.lines, top.acknowledge = began if clock % 4 < 2 else 0, ALL
        await top.step()
    assert await top.access(BEGAN) == began
    trials, wrong, numbers = 0, [], random.Random(9)
    first = SOURCE + 32 * other
    for address in (first + RATE, first + CONTROL, first + BURST, first + STATUS, first + HELD, BEGAN, SOURCE + 32 * locked + CONTROL):
        for value in [None] if address == first + STATUS else [None, 0 if address == BEGAN else 2 if address == first + BURST else ENABLE | LIMIT]:
            for patience in range(1, 2 * SHAPE.group + 6):
                for _ in range(numbers.randrange(SHAPE.period)):
                    await top.step()
                if await top.access(address, value, patience=patience):
                    continue
                trials += 1
                case = f"after an access to {address:#x} with {value} that was given up after {patience} clocks"
                if await top.write(locked, RATE, 11) or await top.access(SOURCE + 32 * locked + RATE) != 37:
                    wrong.append(f"a locked source's RATE was written {case}")
                if await top.access(address, value, patience=patience):
                    continue
                rate = numbers.randrange(1, 1 << SHAPE.rate_bits)
                if not await top.write(other, RATE, rate) or await top.access(first + RATE) != rate:
                    wrong.append(f"a write was lost {case}")
                if await top.access(address, value, patience=patience):
                    continue
                if await top.access(BEGAN) != began:
                    wrong.append(f"BEGAN was not read whole {case}")
    assert trials > 100 and not wrong, f"{len(wrong)} wrong in {trials} trials, such as: {wrong[:3]}"


# In one clock the scan takes a row's requests, and notes which outputs still hold a delivery. This
# many clocks later a resulting delivery is seen at the output.
SEEN = SHAPE.group + 3


def distance(rate, held):
    """Clocks from an output to the next one in overload: T, or the first scan after it that finds the output no longer held, `held` clocks after it rose."""
    late = max(0, held + SEEN - SHAPE.interval(rate))
    return SHAPE.interval(rate) + -(-late // SHAPE.period) * SHAPE.period


@cocotb.test()
async def interval_and_lateness(dut):
    """T from output to output in overload, at whatever time before the next one the acknowledge comes, and no less if it comes later;
    and K from line to output, at every place in the scan."""
    top = await Top(dut).start()
    rates = {source: random.randint(8, (1 << SHAPE.rate_bits) - 1) for source in range(SHAPE.sources)}
    for source, rate in rates.items():
        assert await top.write(source, RATE, rate) and await top.write(source, CONTROL, ENABLE | LIMIT)
    (rises, falls), before = ({source: [] for source in rates} for _ in range(2)), 0
    due = dict.fromkeys(rates, 0)
    for clock in range(10 * max(SHAPE.interval(rate) for rate in rates.values()) // 2):
        top.lines = ALL if clock % 4 < 2 else 0
        top.acknowledge = sum(1 << source for source in rates if top.seen >> source & 1 and clock >= due[source])
        await top.step()
        for source in rates:
            if top.seen & ~before & 1 << source:
                rises[source].append(clock)
                due[source] = clock + random.randint(1, 2 * SHAPE.interval(rates[source]))
            elif before & ~top.seen & 1 << source:
                falls[source].append(clock)
        before = top.seen
    late = 0
    for source, clocks in rises.items():
        for rise, fall, following in list(zip(clocks, falls[source], clocks[1:]))[1:]:
            assert following - rise == distance(rates[source], fall - rise), (source, rates[source], fall - rise)
            late += following - rise > SHAPE.interval(rates[source])
    assert late > 0

    top.lines, top.acknowledge = 0, ALL
    for source in rates:
        assert await top.write(source, CONTROL, ENABLE)
    for _ in range(3 * SHAPE.period):
        await top.step()
    source, late = SHAPE.sources - 1, set()
    for phase in range(SHAPE.period):
        while top.clock % SHAPE.period != phase:
            await top.step()
        begun, top.lines = top.clock, 1 << source
        top.acknowledge = 0
        while not top.seen >> source & 1:
            await top.step()
            assert top.clock - begun < 3 * SHAPE.period
        late.add(top.clock - 1 - begun)
        top.lines, top.acknowledge = 0, 1 << source
        for _ in range(SHAPE.sync + 2):
            await top.step()
    # The synchroniser's edge is seen after SYNC clocks, and the output holds a delivery from the
    # next clock on.
    assert max(late) == SHAPE.sync + SHAPE.lateness + 1


@cocotb.test()
async def disable_wins(dut):
    """Off from the clock after the write on, wherever it meets the scan, held or not; on again, what was held comes back. HELD counts."""
    top = await Top(dut).start()
    for source in range(SHAPE.sources):
        assert await top.write(source, CONTROL, ENABLE)
    source = 1
    for phase in range(SHAPE.period):
        while top.clock % SHAPE.period != phase:
            await top.step()
        top.acknowledge = ALL if phase % 3 == 0 else 0

        def toggle():
            top.lines ^= ALL

        assert await top.write(source, CONTROL, 0, toggle)
        for _ in range(SHAPE.period + 20):
            toggle()
            await top.step()
            assert not top.seen >> source & 1
        assert await top.write(source, CONTROL, ENABLE)
        top.acknowledge = 0
        for _ in range(SHAPE.sync + SHAPE.lateness + 2):
            await top.step()
        assert top.seen >> source & 1
    assert await top.access(SOURCE + 32 * source + HELD) == (1 << SHAPE.held_bits) - 1
    assert await top.write(source, HELD, 0)
    top.lines = 0
    for _ in range(2 * SHAPE.period):
        await top.step()
    assert await top.access(SOURCE + 32 * source + HELD) == 0
