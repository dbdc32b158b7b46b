# SPDX-License-Identifier: MIT OR Apache-2.0
"""The memory form's part of every_bit.py."""

import cocotb
import every_bit
from bench_scan_top import ALL, SHAPE, Top


async def started(dut):
    top = await Top(dut).start()

    async def read(address):
        value = await top.access(address)
        assert value is not None
        return value

    async def write(address, value):
        assert await top.access(address, value) is not None

    return top, read, write


@cocotb.test()
async def registers(dut):
    _, read, write = await started(dut)
    await every_bit.registers(read, write, SHAPE.sources - 1, SHAPE.period)


@cocotb.test()
async def overloads(dut):
    top, read, write = await started(dut)

    async def storm():
        top.acknowledge = ALL
        for clock in range(6 * SHAPE.period):
            top.lines = ALL if clock % (2 * SHAPE.period) < SHAPE.period else 0
            await top.step()

    async def told():
        for _ in range(SHAPE.period + 2):
            await top.step()
        return int(dut.overload_irq_o.value) == 1

    await every_bit.overloads(read, write, storm, told, SHAPE.sources)
