# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the memory form must do, clock by clock: the schedule of the scan around a limiter written down as the register form's description has it."""

from dataclasses import dataclass, field

CONTROL, RATE, BURST, STATUS, HELD, BEGAN = range(6)
ENABLE, LIMIT, POLICY, NOTIFY, LOCK = 1, 2, 4, 8, 1 << 31


@dataclass
class Shape:
    """The parameters of an instance."""

    sources: int
    phase_bits: int
    burst_bits: int = 0
    held_bits: int = 0
    level: int = 0
    msi: bool = False
    overload: bool = False
    lock: bool = False
    readback: bool = False
    group: int = 8
    # Per source: CONTROL, RATE and BURST after reset.
    resets: list = field(default_factory=list)

    @property
    def rows(self):
        return max(2, -(-self.sources // self.group))

    @property
    def period(self):
        """S: clocks from a visit to the next."""
        return (self.group + 1) * self.rows

    @property
    def lateness(self):
        """Clocks from an edge to its delivery, at most, where nothing is in its way."""
        return self.period + self.group + 2

    def interval(self, rate):
        """T in clocks."""
        return self.period * -(-(1 << self.phase_bits) // rate)


class Source:
    """One source, whose clock is the visit."""

    def __init__(self, shape, number):
        self.shape = shape
        self.level = bool(shape.level >> number & 1)
        self.control, self.rate, self.burst = shape.resets[number]
        self.phase = 0
        self.left = 0
        self.noted = self.overload = self.began = self.counted = False
        self.held = 0

    def write(self, which, value):
        if which == CONTROL:
            self.control = value
        elif which == RATE:
            self.rate = value
        elif which == BURST:
            self.burst = value

    def refuses(self, which, value):
        if not self.control & LOCK:
            return False
        return which in (RATE, BURST) or which == CONTROL and (value ^ self.control) & ~ENABLE != 0

    def visit(self, came, level, busy, clear_held, clear_began):
        """Returns whether it is delivered, and what STATUS and HELD read in this visit, and its bit of BEGAN."""
        limit = bool(self.control & LIMIT)
        bursty = bool(self.control & POLICY)
        burst = self.burst if self.shape.burst_bits else 1
        is_open = not limit or self.left > 0
        asks = level and not busy if self.level else self.noted or came
        deliver = asks and bool(self.control & ENABLE) and not busy and is_open
        status = is_open | (level if self.level else asks) << 1 | self.overload << 2
        read = (status, self.held, self.began)

        counts = came and (self.noted or not is_open)
        self.held = 0 if clear_held else min(self.held + counts, (1 << self.shape.held_bits) - 1)
        self.noted = not self.level and asks and not deliver

        restarts = deliver and self.left == 0
        self.left = min(self.left, burst)
        rests = self.left == burst and not deliver
        phase = self.phase + self.rate
        overflows = phase >> self.shape.phase_bits > 0
        self.phase = 0 if rests or overflows or restarts else phase
        if restarts:
            self.left = 0
        elif overflows and bursty:
            self.left = burst
        else:
            self.left = min(self.left - deliver + overflows, burst)

        overloaded = asks and not is_open or self.overload and (asks or not rests)
        self.began = overloaded and not self.overload or self.began and not clear_began
        self.overload = overloaded
        self.counted = self.began and bool(self.control & NOTIFY)
        return deliver, read


class Model:
    """All sources. Clock 0 is the first one after reset."""

    # Clocks from the decision of a visit to the one in which the model follows it: by then the bus has told what was written before it.
    BEHIND = 2

    def __init__(self, shape):
        self.shape = shape
        self.sources = [Source(shape, number) for number in range(shape.sources)]
        self.came = [False] * shape.sources
        self.visits = {}
        self.deliveries = {}

    def turn(self, clock):
        """The row whose requests are taken in this clock."""
        since = clock - self.shape.period
        return since // (self.shape.group + 1) % self.shape.rows if since >= 0 and since % (self.shape.group + 1) == 0 else None

    def follow(self, clock, clears):
        """Follows the visit that was decided in `clock` - BEHIND. `clears`: what the bus cleared in it, as {(HELD or BEGAN, source)}.
        Returns the source and what could be read from it, or None."""
        row_taken = self.visits.pop(clock, None)
        if row_taken is None:
            return None
        number, came, level, busy = row_taken
        source = self.sources[number]
        deliver, read = source.visit(came, level, busy, (HELD, number) in clears, (BEGAN, number) in clears)
        if deliver:
            row_turn = clock - self.BEHIND - 1 - number % self.shape.group
            self.deliveries.setdefault(row_turn + self.shape.group + 2, set()).add(number)
        return number, read

    def requests(self, clock, edges, levels, held, message):
        """What comes in this clock."""
        row = self.turn(clock)
        for number in range(self.shape.sources):
            mine = row is not None and number // self.shape.group == row
            if mine:
                at = clock + 1 + number % self.shape.group + self.BEHIND
                self.visits[at] = (number, self.came[number], bool(levels >> number & 1), bool(held >> number & 1))
                self.came[number] = False
            if edges >> number & 1 or message == number and not self.sources[number].level:
                self.came[number] = True

    def delivered(self, clock):
        return self.deliveries.pop(clock, set())

    def interrupts(self):
        return any(source.counted for source in self.sources)
