# SPDX-License-Identifier: MIT OR Apache-2.0
"""The memory form of the limiter. The bench compares every delivery and every register with the model; a test adds what it is about."""

import random

import cocotb
from model import ENABLE, LIMIT, LOCK, NOTIFY, POLICY
from scan_bench import SHAPE, started
from scan_model import BEGAN, BURST, CONTROL, HELD, RATE, STATUS

ALL = (1 << SHAPE.sources) - 1
EDGES = ALL & ~SHAPE.level
RATE_MAX = (1 << SHAPE.phase_bits) - 1


async def set_up(bench, control, rate=None, burst=1):
    """Every source with the same configuration."""
    for source in range(SHAPE.sources):
        if rate is not None:
            bench.write(RATE, source, rate)
        if SHAPE.burst_bits:
            bench.write(BURST, source, burst)
        bench.write(CONTROL, source, control)
    await bench.finish()


async def quiet(bench):
    """Until nothing is noted or used."""
    for _ in range(4):
        for _ in range(SHAPE.period):
            await bench.step(levels=0)


@cocotb.test()
async def interval_is_exact(dut):
    """LIMIT-SILICON-1: in overload two deliveries are S * ceil(2**PHASE_BITS / rate) clocks apart, whatever the rate."""
    bench = await started(dut)
    assert int(dut.tick_o.value) == SHAPE.period
    rates = {source: random.choice([RATE_MAX, RATE_MAX // 2 + 1, RATE_MAX // 3, random.randint(RATE_MAX // 16, RATE_MAX)]) for source in range(SHAPE.sources)}
    await set_up(bench, ENABLE | LIMIT)
    for source, rate in rates.items():
        bench.write(RATE, source, rate)
    await bench.finish()
    for source in range(SHAPE.sources):
        bench.log[source].clear()
    longest = max(SHAPE.interval(rate) for rate in rates.values())
    for clock in range(4 * longest):
        await bench.step(edges=EDGES if clock % 2 else 0, levels=SHAPE.level)
    for source, rate in rates.items():
        # The first delivery may have been on its way when the rate was written.
        log = bench.log[source][1:]
        assert len(log) >= 2
        assert {later - earlier for earlier, later in zip(log, log[1:])} == {SHAPE.interval(rate)}, f"source {source} at rate {rate}"


@cocotb.test()
async def lateness_is_bounded(dut):
    """LIMIT-SILICON-9: an edge of a source that is open is delivered within K clocks, wherever it meets the scan, whatever the others and the bus
    do; both ends are reached."""
    bench = await started(dut)
    await set_up(bench, ENABLE)
    late = set()
    edge_sources = [number for number in range(SHAPE.sources) if EDGES >> number & 1]
    for source in (edge_sources[0], edge_sources[-1]):
        await quiet(bench)
        for phase in range(SHAPE.period):
            while bench.clock % SHAPE.period != phase:
                await bench.step()
            begun = bench.clock
            others = EDGES & ~(1 << source)
            await bench.step(edges=1 << source | others)
            while not bench.log[source] or bench.log[source][-1] <= begun:
                if not bench.queue:
                    storm(bench)
                await bench.step(edges=others if bench.clock % 2 else 0, levels=random.getrandbits(SHAPE.sources) & SHAPE.level)
                assert bench.clock - begun <= SHAPE.lateness + 1, f"source {source}, {phase} clocks into the scan"
            late.add(bench.log[source][-1] - begun)
    assert (min(late), max(late)) == (SHAPE.group + 3, SHAPE.lateness)


def storm(bench):
    """An access that changes nothing that a delivery depends on."""
    source = random.randrange(SHAPE.sources)
    which = random.choice([CONTROL, STATUS, HELD, RATE])
    if which == HELD and random.random() < 0.5 and SHAPE.held_bits:
        bench.write(HELD, source, 0)
    elif which == CONTROL and random.random() < 0.5:
        bench.write(CONTROL, source, bench.model.sources[source].control)
    elif which == RATE and random.random() < 0.5:
        bench.write(RATE, source, random.randint(1, RATE_MAX))
    elif SHAPE.readback:
        bench.read(which, source)


@cocotb.test()
async def nothing_is_lost(dut):
    """LIMIT-SILICON-4: with the limit off there is a delivery after each edge and none without one, at every distance of two edges and every
    place in the scan."""
    bench = await started(dut)
    await set_up(bench, ENABLE)
    await quiet(bench)
    source = random.choice([number for number in range(SHAPE.sources) if EDGES >> number & 1])
    for distance in range(2, 2 * SHAPE.period, 5):
        del bench.log[source][:]
        begun = bench.clock
        for clock in range(distance + 1 + SHAPE.lateness):
            await bench.step(edges=1 << source if clock in (0, distance) else 0)
        log = bench.log[source]
        assert 1 <= len(log) <= 2
        assert log[0] > begun and log[-1] > begun + distance
        if distance > SHAPE.period:
            assert len(log) == 2


@cocotb.test()
async def disable_wins(dut):
    """LIMIT-SILICON-5: no delivery from the clock after the write on, wherever it meets the scan; what was noted comes after the enabling."""
    bench = await started(dut)
    await set_up(bench, ENABLE)
    for first, source in enumerate((0, SHAPE.sources - 1)):
        # One of the two sources covers each place in the scan.
        for phase in range(first, SHAPE.period, 2):
            while bench.clock % SHAPE.period != phase:
                await bench.step(edges=EDGES, levels=SHAPE.level)
            access = bench.write(CONTROL, source, 0)
            while access.done is None:
                await bench.step(edges=EDGES, levels=SHAPE.level)
            for _ in range(SHAPE.period + 2 * SHAPE.group):
                await bench.step(edges=EDGES, levels=SHAPE.level)
            assert not [clock for clock in bench.log[source] if clock > access.done]
            access = bench.write(CONTROL, source, ENABLE)
            while access.done is None:
                await bench.step(levels=SHAPE.level)
            for _ in range(SHAPE.lateness):
                await bench.step(levels=SHAPE.level)
            assert bench.log[source][-1] > access.done - 3


@cocotb.test()
async def reset_at_any_moment(dut):
    """LIMIT-SILICON-10: from any state a reset leads to the same one; edges while the memories are written are kept, and the bus waits."""
    bench = await started(dut)
    for moment in [3, SHAPE.period - 1, SHAPE.period, SHAPE.period + 1] + [random.randint(1, 6 * SHAPE.period) for _ in range(8)]:
        chaos = Chaos(bench)
        for _ in range(moment):
            await chaos.step()
        bench.dut.rst_ni.value = 0
        await bench.reset(random.randint(1, 3))
        access = bench.write(CONTROL, SHAPE.sources - 1, ENABLE)
        requested = 0
        for _ in range(SHAPE.period):
            edges = random.getrandbits(SHAPE.sources) & EDGES
            requested |= edges
            await bench.step(edges=edges)
        assert access.done is None
        for number in range(SHAPE.sources):
            if requested >> number & 1:
                bench.write(CONTROL, number, ENABLE)
        await bench.finish()
        for _ in range(SHAPE.lateness):
            await bench.step()
        assert all(bench.log[number] for number in range(SHAPE.sources) if requested >> number & 1)


async def until(bench, condition, clocks, what):
    """Steps until the condition holds; it must within so many clocks."""
    begun = bench.clock
    while not condition():
        assert bench.clock - begun <= clocks, what
        await bench.step()


@cocotb.test(skip=not SHAPE.overload)
async def overloads_are_told(dut):
    """BEGAN and the overload interrupt, of one source after the other: told if NOTIFY is set and only then, until BEGAN is cleared."""
    bench = await started(dut)
    await set_up(bench, ENABLE | LIMIT, rate=1)
    told, latest = lambda: int(dut.overload_irq_o.value) == 1, 2 * SHAPE.period
    edge_sources = [number for number in range(SHAPE.sources) if EDGES >> number & 1]
    for source in [*edge_sources[:2], *edge_sources[-2:]]:
        for _ in range(2):
            await bench.step(edges=1 << source)
            for _ in range(SHAPE.lateness):
                await bench.step()
        assert not told(), f"source {source} has no NOTIFY"
        word, bit = source // 32, 1 << source % 32
        read = bench.read(BEGAN, word)
        await bench.finish()
        assert read.read == bit
        for control, expected in ((ENABLE | LIMIT | NOTIFY, True), (ENABLE | LIMIT, False), (ENABLE | LIMIT | NOTIFY, True)):
            bench.write(CONTROL, source, control)
            await bench.finish()
            await until(bench, lambda expected=expected: told() == expected, latest, f"source {source}: the interrupt is not {expected}")
        # Clearing other bits has no effect.
        bench.write(BEGAN, word, ~bit & 0xFFFFFFFF)
        await bench.finish()
        for _ in range(latest):
            await bench.step()
        assert told()
        bench.write(BEGAN, word, bit)
        await bench.finish()
        assert not told(), f"source {source}: the interrupt outlasts the write"
        read = bench.read(BEGAN, word)
        bench.write(CONTROL, source, ENABLE | LIMIT)
        await bench.finish()
        assert read.read == 0


@cocotb.test()
async def bus_is_bounded(dut):
    """LIMIT-SILICON-9: each access ends within its bound, wherever it meets the scan; the bounds are reached."""
    bench = await started(dut)
    kinds = [(which, value) for which in (CONTROL, RATE, *[BURST] * bool(SHAPE.burst_bits)) for value in [None] * SHAPE.readback + [1]]
    kinds += [(STATUS, None)] * SHAPE.readback + [(HELD, None), (HELD, 0)] * bool(SHAPE.held_bits) + [(BEGAN, None), (BEGAN, 1)] * SHAPE.overload
    for _ in range(SHAPE.period):
        await bench.step()
    longest = {}
    for which, value in kinds:
        for phase in range(SHAPE.period):
            source = 0 if which == BEGAN else random.randrange(SHAPE.sources) if phase % 2 else phase // (SHAPE.group + 1) * SHAPE.group % SHAPE.sources
            while bench.clock % SHAPE.period != phase:
                await bench.step(edges=EDGES if bench.clock % 2 else 0, levels=SHAPE.level)
            access = bench.write(which, source, value) if value is not None else bench.read(which, source)
            await bench.finish()
            longest[which] = max(longest.get(which, 0), access.done - access.begun)
            if value is not None and which in (HELD, BEGAN):
                bench.read(which, source)
    # Without locks, a write need not check the lock first. Only writes take as long as this.
    configured = 2 * SHAPE.group + 5 if SHAPE.lock else SHAPE.group + 4
    # STATUS and HELD take one clock longer only with two rows.
    expected = {STATUS: 2 * SHAPE.group + 1, HELD: 2 * SHAPE.group + 1, BEGAN: SHAPE.group + 1}
    assert longest == {which: expected.get(which, configured) for which in longest}


@cocotb.test(skip=not SHAPE.overload)
async def clearing_silences(dut):
    """The overload interrupt falls in the clock after the write that clears the last bit of BEGAN, wherever that meets the scan, and not before."""
    bench = await started(dut)
    told = lambda: int(dut.overload_irq_o.value) == 1
    await set_up(bench, ENABLE | LIMIT | NOTIFY, rate=RATE_MAX)
    edge_sources = [number for number in range(SHAPE.sources) if EDGES >> number & 1]
    for phase in range(SHAPE.period):
        begun = random.sample(edge_sources, 2)
        # The bench waits until the whole burst is available, so that the overload ends.
        await quiet(bench)
        for _ in range(3 * SHAPE.period):
            await bench.step(edges=sum(1 << source for source in begun) if bench.clock % 2 else 0)
        for _ in range(SHAPE.period):
            await bench.step()
        while bench.clock % SHAPE.period != phase:
            await bench.step()
        for source in begun:
            assert told()
            access = bench.write(BEGAN, source // 32, 1 << source % 32)
            while access.done is None:
                assert told()
                await bench.step()
        assert not told()


class Chaos:
    """Requests of changing density, accesses of every kind, outputs that hold and are acknowledged."""

    def __init__(self, bench):
        self.bench = bench
        self.levels = 0
        self.busy = random.random()

    async def step(self):
        bench = self.bench
        bits = SHAPE.sources
        if random.random() < 0.01:
            self.busy = random.choice([0.0, 0.02, 0.3, 1.0])
        edges = random.getrandbits(bits) & random.getrandbits(bits) if random.random() < self.busy else 0
        if random.random() < 0.05:
            self.levels ^= random.getrandbits(bits) & random.getrandbits(bits) & random.getrandbits(bits) & SHAPE.level
        message = random.randrange(1024 if random.random() < 0.1 else bits) if SHAPE.msi and random.random() < 0.1 else None
        if not bench.queue and not bench.access and random.random() < 0.3:
            self.access()
        acknowledge = random.getrandbits(bits) & random.getrandbits(bits) & random.getrandbits(bits) if random.random() < 0.2 else 0
        await bench.step(edges & EDGES, self.levels, message, acknowledge)

    def access(self):
        bench = self.bench
        source = random.randrange(SHAPE.sources)
        which = random.choice([CONTROL, CONTROL, RATE, BURST, STATUS, HELD, BEGAN])
        if which == BEGAN and not SHAPE.overload:
            return
        if which == BURST and not SHAPE.burst_bits or which == HELD and not SHAPE.held_bits:
            return
        if which == BEGAN:
            source //= 32
        if random.random() < 0.3 and (SHAPE.readback or which in (HELD, BEGAN)):
            bench.read(which, source)
        elif which == CONTROL:
            control = ENABLE * (random.random() < 0.8) | LIMIT * (random.random() < 0.9)
            control |= POLICY * (SHAPE.burst_bits != 0 and random.random() < 0.4) | NOTIFY * (SHAPE.overload and random.random() < 0.5)
            if SHAPE.lock and random.random() < 0.01:
                control |= LOCK
            if bench.model.sources[source].control & LOCK and random.random() < 0.7:
                control = bench.model.sources[source].control ^ ENABLE
            bench.write(CONTROL, source, control)
        elif which == RATE:
            bench.write(RATE, source, random.choice([1, RATE_MAX, random.randint(1, RATE_MAX), random.randint(RATE_MAX // 8, RATE_MAX)]))
        elif which == BURST:
            bench.write(BURST, source, random.randint(1, (1 << SHAPE.burst_bits) - 1))
        elif which == HELD:
            bench.write(HELD, source, random.getrandbits(32))
        elif which == BEGAN:
            bench.write(BEGAN, source, random.getrandbits(32))


@cocotb.test()
async def anything_at_once(dut):
    """Random requests, levels, messages, accesses and acknowledges together, with pulses and with held outputs."""
    bench = await started(dut)
    for holds in (False, True):
        for _ in range(2):
            await bench.reset()
            bench.holds, bench.gives_up = holds, 0.05
            chaos = Chaos(bench)
            for _ in range(40 * SHAPE.period):
                await chaos.step()
            assert sum(map(len, bench.log)) > SHAPE.sources and len(bench.accesses) > 20
