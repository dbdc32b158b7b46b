# SPDX-License-Identifier: MIT OR Apache-2.0
"""README.md's table of controllers, as for the RISC-V PLIC: how often a handler runs behind a gateway, by how ack_i is connected to it."""

import cocotb
from bench import SHAPE, Bench
from model import CONTROL, ENABLE, LIMIT, RATE

EDGE, LEVEL = 0, 1
RATE_WRITTEN, INTERVAL, CLOCKS = 4, 16, 640


class Gateway:
    """Of the PLIC: one request at a time, from the clock in which it comes to the clock after its completion. One for edges does not count further ones,
    which the specification leaves to it."""

    def __init__(self, edges):
        self.edges, self.line, self.busy, self.pending = edges, 0, False, False

    def clock(self, line, completed):
        if (line and not (self.edges and self.line)) and not self.busy:
            self.busy = self.pending = True
        elif completed:
            self.busy = False
        self.line = line


async def runs(bench, source, gateway, work, late=0, masked=False, lines=lambda clock: 1):
    """How often the handler ran in CLOCKS clocks. The n-th run takes `work(n)` clocks, and ack_i comes `late` clocks after the gateway has its completion;
    `masked`: the gateway's line is low meanwhile."""
    count, left, acks = 0, None, []
    i = bench.inputs
    for clock in range(CLOCKS):
        completed = left == 0
        if completed:
            acks.append(clock + late)
        i.ack = (clock in acks) << source
        i.irq = lines(clock) << source
        irq = (await bench.clock())["irq_o"] >> source & 1
        waits = masked and acks and clock <= acks[-1]
        gateway.clock(irq and not waits, completed)
        left = None if completed or left is None else left - 1
        if left is None and gateway.pending:
            gateway.pending = False
            left = work(count)
            count += 1
    i.irq = i.ack = 0
    for _ in range(4 * INTERVAL):
        await bench.clock()
    return count


async def started(dut, source):
    bench = await Bench.start(dut)
    assert await bench.write(source, RATE, RATE_WRITTEN) and await bench.write(source, CONTROL, ENABLE | LIMIT)
    for _ in range(2 * INTERVAL):
        await bench.clock()
    return bench


@cocotb.test(skip=SHAPE.pulse == 1)
async def completion_as_the_gateway_has_it(dut):
    """A level that stands, PULSE = 0: as often as the limit says if the output is low when the gateway looks again; twice if ack_i comes a clock later."""
    bench = await started(dut, LEVEL)
    limit = CLOCKS // INTERVAL
    assert abs(await runs(bench, LEVEL, Gateway(edges=False), lambda n: 3) - limit) <= 1
    assert abs(await runs(bench, LEVEL, Gateway(edges=False), lambda n: 3, late=1) - 2 * limit) <= 2, "what README.md warns of"
    for late in (1, 2, 5):
        assert abs(await runs(bench, LEVEL, Gateway(edges=False), lambda n: 3, late=late, masked=True) - limit) <= 1


@cocotb.test()
async def edges_while_the_handler_runs(dut):
    """An edge every 40 clocks, and a handler that once takes 50: a pulse that comes meanwhile is lost in a gateway that does not count. With PULSE = 0 and
    the completion for ack_i it waits in the limiter."""
    bench = await started(dut, EDGE)
    edges = CLOCKS // 40
    # The third run of the handler is still active at the fourth edge.
    found = await runs(bench, EDGE, Gateway(edges=True), lambda n: 50 if n == 2 else 3, lines=lambda clock: int(clock % 40 < 2))
    assert found == (edges - 1 if SHAPE.pulse else edges), f"{found} runs of {edges}"
