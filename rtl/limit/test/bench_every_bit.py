# SPDX-License-Identifier: MIT OR Apache-2.0
"""The register form's part of every_bit.py."""

import cocotb
import every_bit
from bench import SHAPE, Bench


async def started(dut):
    bench = await Bench.start(dut)

    async def read(address):
        value, refused = await bench.access(address)
        assert not refused
        return value

    async def write(address, value):
        assert not (await bench.access(address, value))[1]

    return bench, read, write


@cocotb.test()
async def registers(dut):
    _, read, write = await started(dut)
    await every_bit.registers(read, write, SHAPE.sources - 1, 1)


@cocotb.test()
async def overloads(dut):
    bench, read, write = await started(dut)

    async def storm():
        bench.inputs.ack = (1 << SHAPE.sources) - 1
        for clock in range(12):
            bench.inputs.irq = bench.inputs.ack if clock % 4 < 2 else 0
            await bench.clock()

    async def told():
        return (await bench.clock())["overload_irq_o"] == 1

    await every_bit.overloads(read, write, storm, told, SHAPE.sources)
