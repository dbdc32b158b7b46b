# SPDX-License-Identifier: MIT OR Apache-2.0
"""Drives an instance of the memory form clock by clock, and holds every delivery, register and interrupt against the model."""

import json
import os
import random
from collections import deque

from cocotb.triggers import Timer
from scan_model import BEGAN, HELD, STATUS, Model, Shape

SHAPE = Shape(**json.loads(os.environ["WEIR_LIMIT_SHAPE"]))


class Access:
    """One access over the bus. `done` is the clock of its ready; it has none if it was given up."""

    def __init__(self, which, source, value=None):
        self.which, self.source, self.value = which, source, value
        self.begun = self.done = self.read = self.error = None

    @property
    def bound(self):
        """Clocks that it may wait, as weir_limit_scan states them."""
        return {STATUS: 2 * SHAPE.group + 2, HELD: 2 * SHAPE.group + 2, BEGAN: SHAPE.group + 1}.get(self.which, 2 * SHAPE.group + 5)


class Bench:
    def __init__(self, dut):
        self.dut = dut
        # The deliveries that the outputs of weir_limit would hold; `holds` means that they hold a
        # delivery until it is acknowledged.
        self.holds = False
        self.held = 0
        # The probability, per clock, that a waiting access is abandoned. Accesses that may have
        # taken effect by then are never abandoned: writes to CONTROL, RATE or BURST.
        self.gives_up = 0.0

    async def reset(self, clocks=2):
        """Resets in whatever state it is. The clock that follows is clock 0."""
        dut = self.dut
        dut.rst_ni.value = 0
        self.drive(0, 0, None)
        dut.reg_valid_i.value = 0
        for _ in range(clocks):
            await self.edge()
        dut.rst_ni.value = 1
        self.model = Model(SHAPE)
        self.clock = 0
        self.held = self.levels = 0
        self.queue = deque()
        self.access = None
        self.accesses = []
        self.recent = deque(maxlen=Model.BEHIND + 2)
        self.log = [[] for _ in range(SHAPE.sources)]

    async def edge(self):
        self.dut.clk_i.value = 1
        await Timer(1, "step")
        self.dut.clk_i.value = 0
        await Timer(1, "step")

    def drive(self, edges, levels, message):
        dut = self.dut
        dut.edge_i.value = edges
        dut.level_i.value = levels
        dut.msi_valid_i.value = message is not None
        dut.msi_number_i.value = message or 0
        dut.held_i.value = self.held

    def write(self, which, source, value):
        return self.put(Access(which, source, value))

    def read(self, which, source):
        return self.put(Access(which, source))

    def put(self, access):
        self.queue.append(access)
        return access

    async def finish(self):
        """Runs until the bus is idle."""
        while self.queue or self.access:
            await self.step()

    async def step(self, edges=0, levels=None, message=None, acknowledge=0):
        """One clock. `levels` None: an EDGE source's level is of no meaning, so that of the clock before."""
        dut, model = self.dut, self.model
        if levels is None:
            levels = self.levels
        edges |= levels & ~self.levels & SHAPE.level
        self.levels = levels
        if self.access and self.gives_up and (self.access.which >= STATUS or self.access.value is None) and random.random() < self.gives_up:
            self.access = None
        elif self.access is None and self.queue:
            self.access = self.queue.popleft()
            self.access.begun = self.clock
        access = self.access
        self.drive(edges, levels, message)
        dut.reg_valid_i.value = access is not None
        if access:
            dut.reg_write_i.value = access.value is not None
            dut.reg_which_i.value = access.which
            dut.reg_source_i.value = access.source
            dut.reg_wdata_i.value = access.value or 0
        await Timer(1, "step")

        # An X anywhere in this value is an error.
        given = int(dut.deliver_o.value)
        ready = access is not None and bool(int(dut.reg_ready_o.value))
        if ready:
            access.done, access.error = self.clock, bool(int(dut.reg_error_o.value))
            access.read = int(dut.reg_rdata_o.value) if access.value is None else None
            # All accesses wait for the first round after reset.
            took = access.done - max(access.begun, SHAPE.period)
            assert took <= access.bound, f"an access to {access.which} took {took} clocks"
            self.accesses.append(access)
            self.access = None
        self.recent.append((access if ready else None, bool(int(dut.overload_irq_o.value)), list(model.came), levels))
        self.follow()
        if ready and access.which < 3:
            self.settle(access)
        expected = model.delivered(self.clock)
        got = {number for number in range(SHAPE.sources) if given >> number & 1} if given else set()
        assert got == expected, f"clock {self.clock}: delivered {sorted(got)}, not {sorted(expected)}"
        for number in got:
            self.log[number].append(self.clock)
        model.requests(self.clock, edges, levels, self.held, message)
        if self.holds:
            self.held = (self.held | given) & ~(acknowledge & ~SHAPE.level) & (levels | ~SHAPE.level)
        await self.edge()
        self.clock += 1
        return got

    def settle(self, access):
        """CONTROL, RATE and BURST."""
        source = self.model.sources[access.source]
        if access.value is None:
            assert not access.error
            assert access.read == (source.control, source.rate, source.burst if SHAPE.burst_bits else 1)[access.which]
        else:
            assert access.error == source.refuses(access.which, access.value)
            if not access.error:
                source.write(access.which, access.value)

    def follow(self):
        """The visit that was decided BEHIND clocks ago, and the access that met it."""
        if len(self.recent) < Model.BEHIND + 2:
            return
        (_, _, came, levels), (done, _, _, _), (_, interrupt, _, _), _ = self.recent
        if done and done.which == BEGAN:
            # The bus acts before the visit. If the visit notes a beginning, the beginning wins.
            assert done.read in (self.model.began(done.source), None) and not done.error
            self.model.clear_began(done.source, done.value or 0)
        of_source = done is not None and done.which in (STATUS, HELD)
        clears_held = of_source and done.value is not None
        visited = self.model.follow(self.clock, clears_held)
        if of_source:
            if visited:
                number, (status, held) = visited
                assert number == done.source
            else:
                # The write takes effect in the bus's own clock, which was the previous one.
                source = self.model.sources[done.source]
                status, held = source.look(came[done.source], bool(levels >> done.source & 1))
                if clears_held:
                    source.held_back = 0
            assert not done.error and done.read in (status if done.which == STATUS else held, None)
        assert interrupt == self.model.interrupts(), f"clock {self.clock + 1 - Model.BEHIND}: overload_irq_o is {interrupt}"


async def started(dut):
    """An instance after its reset, its clock with the test."""
    bench = Bench(dut)
    dut.clk_i.value = 0
    dut.reg_write_i.value = 0
    dut.reg_which_i.value = 0
    dut.reg_source_i.value = 0
    dut.reg_wdata_i.value = 0
    await bench.reset()
    return bench
