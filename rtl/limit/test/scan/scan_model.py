# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the memory form must do, clock by clock: the schedule of the scan around a limiter written down as the register form's description has it."""

from dataclasses import dataclass, field

import model
from model import ENABLE, LOCK, NOTIFY

CONTROL, RATE, BURST, STATUS, HELD, BEGAN = range(6)


@dataclass
class Shape(model.Shape):
    """The parameters of an instance of weir_limit_scan."""

    group: int = 8
    # The values of CONTROL, RATE and BURST after reset, for each source.
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


class Source(model.Limiter):
    """One source, whose clock is the visit: what came before a visit takes part in it."""

    def __init__(self, shape, number):
        super().__init__(shape, bool(shape.level >> number & 1))
        self.control, self.rate, self.burst = shape.resets[number]

    def write(self, which, value):
        if which == CONTROL:
            self.control = value
        elif which == RATE:
            self.rate = value
        elif which == BURST:
            self.burst = value

    def refuses(self, which, value):
        return self.has(LOCK) and (which in (RATE, BURST) or (value ^ self.control) & ~ENABLE != 0)

    def look(self, came, level):
        """What STATUS and HELD read."""
        noted, self.noted = self.noted, not self.level and (self.noted or came)
        status, self.noted = self.status(level), noted
        return status, self.held_back

    def visit(self, came, level, busy, clear_held):
        """Returns whether it is delivered, and what STATUS and HELD read in this visit."""
        read = self.look(came, level)
        counts = came and (self.noted or not self.status(level) & 1)
        self.noted = not self.level and (self.noted or came)
        self.output = busy
        self.held_back = 0 if clear_held else min(self.held_back + counts, (1 << self.shape.held_bits) - 1)
        # A smaller burst takes effect at once, even if there is a delivery at each visit.
        self.left = min(self.left, self.burst)
        return self.clock(level, False, False), read


class Model:
    """All sources. Clock 0 is the first one after reset."""

    # The clocks from the decision of a visit to the clock in which the model follows it. By then
    # the bus has reported earlier writes.
    BEHIND = 2

    def __init__(self, shape):
        self.shape = shape
        self.sources = [Source(shape, number) for number in range(shape.sources)]
        self.came = [False] * shape.sources
        self.visits = {}
        self.deliveries = {}
        self.noticed = [False] * shape.sources

    def turn(self, clock):
        """The row whose requests are taken in this clock."""
        since = clock - self.shape.period
        return since // (self.shape.group + 1) % self.shape.rows if since >= 0 and since % (self.shape.group + 1) == 0 else None

    def began(self, word):
        """What a word of BEGAN reads."""
        return sum(source.began << place for place, source in enumerate(self.sources[32 * word : 32 * word + 32]))

    def clear_began(self, word, bits):
        for place, source in enumerate(self.sources[32 * word : 32 * word + 32]):
            if bits >> place & 1:
                source.began = self.noticed[32 * word + place] = False

    def follow(self, clock, clears_held):
        """Follows the visit that was decided in `clock` - BEHIND. Returns the source and what could be read from it, or None."""
        row_taken = self.visits.pop(clock, None)
        if row_taken is None:
            return None
        number, came, level, busy = row_taken
        source = self.sources[number]
        deliver, read = source.visit(came, level, busy, clears_held)
        self.noticed[number] = source.began and source.has(NOTIFY)
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
        return any(self.noticed)
