# SPDX-License-Identifier: MIT OR Apache-2.0
"""weir_limit in its register form, clock by clock, from what README.md and the register description say; not from the RTL.

Deliveries are kept as instants and counts, where the RTL has a phase: an interval is over when the rates since its beginning add up.
"""

from dataclasses import dataclass, field

ID, SHAPE, WIDTHS, TICK, BEGAN, SOURCE = 0x0, 0x4, 0x8, 0xC, 0x40, 0x8000
CONTROL, RATE, BURST, STATUS, HELD = 0x0, 0x4, 0x8, 0xC, 0x10
ENABLE, LIMIT, POLICY, NOTIFY, LOCK = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 31


@dataclass
class Shape:
    """The parameters of the top module, by its names in lower case."""

    sources: int = 1
    phase_bits: int = 24
    rate_bits: int = 24
    burst_bits: int = 0
    held_bits: int = 0
    level: int = 0
    sync: int = 2
    reset: int = 1
    pulse: int = 0
    readback: int = 1
    enables: int = 1
    limits: int = 1
    overload: int = 1
    lock: int = 1
    msi: int = 0
    bypass: int = 1
    rate_reset: int = 1
    burst_reset: int = 1
    control_reset: int = 0
    form: int = field(default=0, init=False)

    def varies(self):
        """The bits of CONTROL that are there."""
        built = {ENABLE: self.enables, LIMIT: self.limits, POLICY: self.burst_bits, NOTIFY: self.overload, LOCK: self.lock}
        return sum(bit for bit, there in built.items() if there)

    def fixed(self):
        return (0 if self.enables else ENABLE) | (0 if self.limits else LIMIT)


@dataclass
class Inputs:
    rst_n: int = 1
    psel: int = 0
    penable: int = 0
    pwrite: int = 0
    paddr: int = 0
    pwdata: int = 0
    pstrb: int = 0xF
    irq: int = 0
    ack: int = 0
    msi_valid: int = 0
    msi_number: int = 0
    msi_ready: int = 1
    bypass: int = 0


class Limiter:
    """One source."""

    def __init__(self, shape, level):
        self.shape, self.level = shape, level
        self.control = (shape.control_reset & shape.varies()) | shape.fixed()
        self.rate, self.burst = shape.rate_reset, shape.burst_reset
        self.left, self.gathered = 0, 0
        self.noted = self.overload = self.began = False
        self.held_back = 0
        self.output = False

    def has(self, bit):
        return bool(self.control & bit)

    def asks(self, line):
        return line and not self.output if self.level else self.noted

    def delivers(self, line):
        return self.asks(line) and not self.output and self.has(ENABLE) and (self.left > 0 or not self.has(LIMIT))

    def status(self, line):
        return int(self.left > 0 or not self.has(LIMIT)) | (line if self.level else self.noted) << 1 | self.overload << 2

    def clock(self, line, rises, message):
        """One clock, with the registers as they are before it."""
        shape = self.shape
        asks, passes, full = self.asks(line), self.delivers(line), self.left >= self.burst
        limited, closed = self.has(LIMIT), self.left == 0
        rests = full and not passes
        # A token that comes back is available in the next clock, so a request that passes in this
        # clock does not take it.
        if passes and closed:
            left, gathered = 0, 0
        elif rests:
            left, gathered = self.burst, 0
        else:
            left, gathered = min(self.left, self.burst) - passes, self.gathered + self.rate
            if gathered >= 1 << shape.phase_bits:
                left, gathered = (self.burst if self.has(POLICY) else left + 1), 0
        counted = rises or (message and not self.level)
        kept = self.noted and not passes
        if counted and (kept or (limited and left == 0)):
            self.held_back = min(self.held_back + 1, (1 << shape.held_bits) - 1)
        if not self.level:
            self.noted = kept or counted
        found = shape.overload and asks and limited and closed
        if found and not self.overload:
            self.began = True
        self.overload = bool(found or (self.overload and not (rests and not asks)))
        self.left, self.gathered = left, gathered
        return passes


class Model:
    def __init__(self, shape):
        self.shape = shape
        self.restart()

    def restart(self):
        shape = self.shape
        self.lines = [Limiter(shape, bool(shape.level >> n & 1)) for n in range(shape.sources)]
        self.stages = [0] * shape.sync
        self.previous = 0
        self.turn, self.sent, self.number = 0, False, 0

    def level(self, i):
        return self.stages[-1] if self.stages else i.irq

    def refuses(self, i):
        """Whether an access gets a bus error, from the register description."""
        shape, value, write = self.shape, i.pwdata, bool(i.pwrite)
        if i.paddr % 4 or (write and i.pstrb != 0xF):
            return True
        if i.paddr < SOURCE:
            if BEGAN <= i.paddr < BEGAN + 4 * ((shape.sources + 31) // 32):
                beyond = value >> min(32, shape.sources - (i.paddr - BEGAN) // 4 * 32)
                return not shape.overload or (write and beyond != 0)
            return i.paddr not in (ID, SHAPE, WIDTHS, TICK) or write or not shape.readback
        number, register = divmod(i.paddr - SOURCE, 32)
        if number >= shape.sources:
            return True
        line = self.lines[number]
        locked = line.has(LOCK)
        if register == CONTROL:
            if not write:
                return not shape.readback
            return (value & ~shape.varies()) != shape.fixed() or (locked and (value ^ line.control) & ~ENABLE != 0)
        if register == RATE:
            return locked or not 0 < value < 1 << shape.rate_bits if write else not shape.readback
        if register == BURST:
            most = (1 << shape.burst_bits) - 1 if shape.burst_bits else 1
            return locked or not 0 < value <= most if write else not shape.readback
        if register == STATUS:
            return write or not shape.readback
        return register != HELD or not shape.held_bits

    def reads(self, i):
        shape, level = self.shape, self.level(i)
        if i.paddr >= SOURCE:
            number, register = divmod(i.paddr - SOURCE, 32)
            line = self.lines[number]
            status = line.status(level >> number & 1)
            return {CONTROL: line.control, RATE: line.rate, BURST: line.burst, STATUS: status, HELD: line.held_back}[register]
        if i.paddr >= BEGAN:
            word = (i.paddr - BEGAN) // 4
            return sum(line.began << n for n, line in enumerate(self.lines[32 * word : 32 * word + 32]))
        bits = [(10, shape.sources - 1), (2, 0), (4, shape.form), (1, shape.burst_bits != 0), (1, shape.enables), (1, shape.limits)]
        bits += [(1, shape.overload), (1, shape.lock), (1, shape.msi), (1, shape.bypass), (1, shape.pulse)]
        packed, place = 0, 0
        for width, value in bits:
            packed |= int(value) << place
            place += width
        widths = shape.phase_bits | shape.rate_bits << 8 | shape.burst_bits << 16 | shape.held_bits << 24
        return {ID: 0x57454901, SHAPE: packed, WIDTHS: widths, TICK: 1}[i.paddr]

    def outputs(self, i):
        if self.shape.reset == 2 and not i.rst_n:
            self.restart()
        shape, level = self.shape, self.level(i)
        access = i.psel and i.penable
        refused = access and self.refuses(i)
        irq = 0
        for n, line in enumerate(self.lines):
            if shape.msi:
                on = False
            elif shape.pulse:
                on = line.delivers(level >> n & 1)
            else:
                on = line.output and line.has(ENABLE)
            raw = shape.bypass and i.bypass and i.irq >> n & 1 and line.has(ENABLE)
            irq |= int(bool(on or raw)) << n
        return {
            "pready_o": 1,
            "pslverr_o": int(bool(refused)),
            "prdata_o": self.reads(i) if access and not i.pwrite and not refused else 0,
            "irq_o": irq,
            "overload_irq_o": int(any(line.began and line.has(NOTIFY) for line in self.lines)),
            "msi_ready_o": 1,
            "msi_valid_o": int(self.sent),
            "msi_number_o": self.number,
        }

    def clock(self, i):
        """The rising edge of the clock. Returns the sources that were delivered."""
        shape, level = self.shape, self.level(i)
        if shape.reset != 0 and not i.rst_n:
            self.restart()
            return []
        rises = level & ~self.previous
        write = i.psel and i.penable and i.pwrite and not self.refuses(i)
        register, value = i.paddr, i.pwdata
        if write and BEGAN <= register < SOURCE:
            for n, line in enumerate(self.lines):
                if n // 32 == (register - BEGAN) // 4 and value >> n % 32 & 1:
                    line.began = False
        if write and register >= SOURCE and (register - SOURCE) % 32 == HELD:
            self.lines[(register - SOURCE) // 32].held_back = 0
        delivered = []
        enabled = [line.has(ENABLE) for line in self.lines]
        waiting = [line.output for line in self.lines]
        for n, line in enumerate(self.lines):
            high, message = level >> n & 1, shape.msi and i.msi_valid and i.msi_number == n
            passes = line.clock(high, rises >> n & 1, message)
            if passes:
                delivered.append(n)
            if shape.msi:
                line.output = line.output or passes
            elif not shape.pulse:
                released = i.ack >> n & 1 or (line.level and not high)
                line.output = bool(passes or (line.output and not released))
        if shape.msi and (not self.sent or i.msi_ready):
            self.sent, self.number = waiting[self.turn] and enabled[self.turn], self.turn
            if self.sent:
                self.lines[self.turn].output = False
            self.turn = (self.turn + 1) % shape.sources
        if write and register >= SOURCE:
            line, offset = self.lines[(register - SOURCE) // 32], (register - SOURCE) % 32
            if offset == CONTROL:
                line.control = value
            elif offset == RATE:
                line.rate = value
            elif offset == BURST:
                line.burst = value
        self.stages = [i.irq, *self.stages][: shape.sync]
        self.previous = level
        return delivered
