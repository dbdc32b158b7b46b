# SPDX-License-Identifier: MIT OR Apache-2.0
"""weir_limit clock by clock: drives its inputs, and holds every output in every clock against the model. An X, too, is a difference."""

import json
import os
from dataclasses import fields

from cocotb.triggers import Timer
from model import SOURCE, Inputs, Model, Shape

SHAPE = Shape(**json.loads(os.environ["WEIR_LIMIT_SHAPE"]))
INPUTS = [f.name for f in fields(Inputs)]


class Bench:
    powered = None

    @classmethod
    async def start(cls, dut):
        """In reset until the first clock is over. Without a reset it powers up once, and a second test goes on where the first ended."""
        if cls.powered is None or SHAPE.reset != 0:
            cls.powered = cls(dut)
            await cls.powered.reset()
        return cls.powered

    def __init__(self, dut):
        self.dut = dut
        self.model = Model(SHAPE)
        self.inputs = Inputs()
        self.handles = {name: getattr(dut, {"rst_n": "rst_ni"}.get(name, f"{name}_i")) for name in INPUTS}
        self.outputs = {name: getattr(dut, name) for name in self.model.outputs(self.inputs)}
        self.driven = {}
        self.now = 0
        self.deliveries = [[] for _ in range(SHAPE.sources)]

    async def reset(self):
        self.dut.clk_i.value = 0
        self.inputs = Inputs(rst_n=int(SHAPE.reset == 0))
        if SHAPE.reset != 0:
            # Apply the inputs now, because their earlier state is not known.
            self.apply()
            await Timer(1, "step")
            await self.edge()
            self.model.restart()
        await self.clock()
        self.inputs.rst_n = 1

    def apply(self):
        for name, handle in self.handles.items():
            value = getattr(self.inputs, name)
            if self.driven.get(name) != value:
                handle.value = self.driven[name] = value

    async def edge(self):
        self.dut.clk_i.value = 1
        await Timer(1, "step")
        self.dut.clk_i.value = 0

    async def clock(self):
        """One clock with the inputs as they are."""
        self.apply()
        await Timer(1, "step")
        expected = self.model.outputs(self.inputs)
        seen = {name: handle.value for name, handle in self.outputs.items()}
        for name, value in expected.items():
            assert seen[name].is_resolvable and int(seen[name]) == value, f"clock {self.now}: {name} is {seen[name]}, not {value}; {self.inputs}"
        for source in self.model.clock(self.inputs):
            self.deliveries[source].append(self.now)
        self.now += 1
        await self.edge()
        return expected

    async def access(self, address, value=None, strobes=0xF):
        """One APB access of two clocks; returns what was read and whether it was refused. The model says so, too: `clock` compares."""
        i = self.inputs
        i.psel, i.penable, i.paddr, i.pwrite, i.pwdata, i.pstrb = 1, 0, address, int(value is not None), value or 0, strobes
        await self.clock()
        i.penable = 1
        answer = await self.clock()
        i.psel = i.penable = 0
        return answer["prdata_o"], bool(answer["pslverr_o"])

    async def write(self, source, register, value):
        _, refused = await self.access(SOURCE + 32 * source + register, value)
        return not refused

    async def read(self, source, register):
        value, refused = await self.access(SOURCE + 32 * source + register)
        return None if refused else value
