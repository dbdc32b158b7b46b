# SPDX-License-Identifier: MIT OR Apache-2.0
"""Each of the 32 bits that the bus reads is seen at 0 and at 1, in each register that has it: with as many bits, and more sources than a word of BEGAN has."""

from model import BEGAN, ENABLE, ID, LIMIT, NOTIFY, RATE, SOURCE, TICK

WORD = 0xFFFFFFFF


async def registers(read, write, last, tick):
    """`read(address)` and `write(address, value)` are accesses that must be taken. RATE is all that has 32 bits for software to choose."""
    assert await read(ID) == 0x57454901 and await read(TICK) == tick
    for address in (SOURCE + RATE, SOURCE + 32 * last + RATE):
        for bit in range(32):
            for value in (1 << bit, WORD ^ 1 << bit):
                await write(address, value)
                assert await read(address) == value, f"bit {bit} of {value:#x} at {address:#x}"


async def overloads(read, write, storm, told, sources):
    """`storm()` brings all sources into overload; `told()` is the overload interrupt, once all have been visited."""
    everything = [min(WORD, (1 << sources - 32 * word) - 1) for word in range(-(-sources // 32))]
    for source in range(sources):
        await write(SOURCE + 32 * source + RATE, 1)
        await write(SOURCE + 32 * source, ENABLE | LIMIT | NOTIFY)
    await storm()
    for word, bits in enumerate(everything):
        assert await told() and await read(BEGAN + 4 * word) == bits
        for bit in range(bits.bit_length()):
            await write(BEGAN + 4 * word, 1 << bit)
            bits &= ~(1 << bit)
            assert await read(BEGAN + 4 * word) == bits, f"word {word}: after clearing bit {bit}"
            assert await told() == (bits != 0 or word < len(everything) - 1), f"word {word}: after clearing bit {bit}"
