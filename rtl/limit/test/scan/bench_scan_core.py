# SPDX-License-Identifier: MIT OR Apache-2.0
"""The memory form beside core/: each source is served at the same visits, if an instant of core/ is a visit, whatever comes.

What core/ has no counterpart of is not compared, as in bench_core.py of the register form; LEVEL sources neither, whose line a visit samples.
"""

import random

import cocotb
from core_machine import BUCKET, BURSTY, STRICT, Machine, load
from model import ENABLE, LIMIT, POLICY
from scan_bench import SHAPE, started
from scan_model import BURST, CONTROL, RATE

VISITS = 250


def edge(numbers, kind, clock, turns, interval, last):
    """Whether a source asks now: `turns` clocks before or after its row's turn is a place in the scan; `last` visits ago it was served."""
    if kind == "storm":
        return clock % 2
    if kind == "end":
        # The visits just before, at and just after the one that ends the interval.
        return last in (interval - 1, interval, interval + 1) and turns in (0, 1, SHAPE.period - 1) and numbers.random() < 0.5
    if kind == "bursts":
        return clock // (interval * SHAPE.period) % 3 == 0 and clock % 2
    return numbers.random() < 0.7 / (interval * SHAPE.period)


@cocotb.test()
async def serves_what_core_serves(dut):
    numbers = random.Random(3)
    bench = await started(dut)
    library = load(".")
    compared = [source for source in range(SHAPE.sources) if not SHAPE.level >> source & 1]
    plans = {}
    for source in compared:
        policy = (STRICT, BUCKET, BURSTY)[len(plans) % 3]
        rate = numbers.choice([255, 200, 128, 100, 85, 64, 37, 32])
        burst = 1 if policy == STRICT else numbers.randint(1, (1 << SHAPE.burst_bits) - 1)
        control = ENABLE | LIMIT | (POLICY if policy == BURSTY else 0)
        plans[source] = (policy, -(-(1 << SHAPE.phase_bits) // rate), burst, ("storm", "end", "bursts", "rare")[len(plans) // 3 % 4], control)
        bench.write(RATE, source, rate)
        bench.write(BURST, source, burst)
        bench.write(CONTROL, source, control)
    await bench.finish()
    # The bench waits until the whole burst has come back; visit 0 of each row is then the next one.
    for _ in range((max(interval * burst for _, interval, burst, *_ in plans.values()) + 1) * SHAPE.period):
        await bench.step()
    while bench.model.turn(bench.clock) != 0:
        await bench.step()

    begin = bench.clock
    machines = {source: Machine(library, policy, interval, burst, 0) for source, (policy, interval, burst, *_) in plans.items()}
    last, visit, served = dict.fromkeys(compared, 0), dict.fromkeys(compared, 0), dict.fromkeys(compared, 0)
    came, taken = set(), {}
    enabled, change = dict.fromkeys(compared, True), None
    while bench.clock < begin + VISITS * SHAPE.period:
        clock = bench.clock
        row = bench.model.turn(clock)
        if row is not None:
            # The comparison is made at the delivery, because the bus has reported earlier writes by
            # then.
            taken[clock + SHAPE.group + 2] = (clock, [(source, source in came) for source in compared if source // SHAPE.group == row])
            came -= {source for source in compared if source // SHAPE.group == row}
        asks = {
            source
            for source, (_, interval, _, kind, _) in plans.items()
            if edge(numbers, kind, clock, (clock - begin - source // SHAPE.group * (SHAPE.group + 1)) % SHAPE.period, interval, visit[source] - last[source])
        }
        came |= asks
        if change is None and numbers.random() < 0.05:
            source = numbers.choice(compared)
            change = bench.write(CONTROL, source, plans[source][4] ^ (ENABLE if enabled[source] else 0))
        given = await bench.step(edges=sum(1 << source for source in asks))

        turn, visits = taken.pop(clock, (None, []))
        # A write affects the turns after the clock in which the bus writes, which is three clocks
        # before it is ready.
        if change and change.done is not None and visits and change.source in dict(visits) and turn > change.done - 3:
            enabled[change.source] = not enabled[change.source]
            machines[change.source].user(enabled[change.source], visit[change.source])
            change = None
        for source, asked in visits:
            machine, now = machines[source], visit[source]
            machine.pending = machine.pending or asked
            times = machine.clock(now)
            assert times == (source in given), f"visit {now}: core/ serves source {source} {times} times; {plans[source]}"
            if times:
                last[source] = now
                served[source] += 1
            visit[source] += 1
    assert all(served.values()), f"something is compared: {served}"
