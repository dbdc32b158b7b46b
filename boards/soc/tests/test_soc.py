# SPDX-License-Identifier: MIT OR Apache-2.0
"""The board: its memory map, its interrupts, its event devices, the limiter in it, and that it can be reset."""

import pytest
from conftest import cycles_of

# The clocks from a wire's edge to the interrupt controller: two flip-flops of the synchroniser, the
# limiter's note, and the latch.
DELIVERY = 3
# The cycles of a run, more than the loop in limited.c needs, which ends at cycle 100,000.
LIMITED_CYCLES = 101_000
# After a reset a limiter starts with an empty bucket. By this cycle the bucket is full for every
# burst that the tests of limited.c use.
FULL = 30_000


def test_memory_map(board):
    report = board.passes(board.firmware("memory"), 20_000, "--clock-hz", "1234567")
    assert report["uart"] == 'a "b" \\ \n\x7f\xe9'
    assert report["clock_hz"] == 1234567
    assert [each["cause"] for each in report["exceptions"]] == [2, 4, 6, 11] and not report["interrupts"]
    # The first bus error that memory.c provokes is a read beyond the RAM.
    assert report["bus_errors"]["first"]["address"] == 0x10000 and not report["bus_errors"]["first"]["write"]
    assert report["bus_errors"]["count"] == 21


def test_timer_and_software_interrupt(board):
    report = board.passes(board.firmware("timer"), 20_000)
    assert {(each["cause"], each["line"]): each["taken"] for each in report["interrupts"]} == {(3, None): 1, (7, None): 5}


def test_lines_are_latched_and_taken_in_order(board):
    report = board.passes(board.firmware("latching"), 20_000, lines={1: [1000, 1100], 3: [900]}, trace=True)
    assert {each["line"]: each["taken"] for each in report["interrupts"]} == {1: 1, 3: 1}
    assert report["lines"][1] == {"line": 1, "offered": 2, "requested": 2, "delivered": 2, "missed": 1}
    assert cycles_of(report, "delivered", 3) == [900 + DELIVERY]


def test_no_edge_is_lost_beside_a_clearing(board):
    """Two edges so many cycles apart: the second meets every phase of the clearing of the first. What is not taken was pending already."""
    firmware = board.firmware("polling")
    seen = set()
    for gap in range(3, 50):
        report = board.run(firmware, 1500, lines={0: [1000, 1000 + gap]}, watch={"taken": 4})
        line = report["lines"][0]
        assert report["counters"]["taken"] == 2 - line["missed"], gap
        seen.add(line["missed"])
    assert seen == {0, 1}


@pytest.mark.parametrize("queue", [0, 1])
def test_every_event_is_handled(board, queue):
    """Events at every phase of the handler. Without QUEUE those that find the line pending wait for ever, and nothing else does."""
    edges = [4000 + 250 * each + each % 17 * 11 for each in range(100)]
    edges += [edge + 60 for edge in edges[::3]]
    edges.sort()
    report = board.run(board.firmware("events", QUEUE=queue, BEGIN=1000), 40_000, lines={0: edges}, watch={"handled": 4, "empty": 4})
    line = report["lines"][0]
    assert line["offered"] == len(edges)
    assert report["counters"] == {"handled": len(edges) if queue else len(edges) - line["missed"], "empty": 0}
    assert report["interrupts"][0]["taken"] == report["counters"]["handled"]


def test_queue_asks_for_each_of_a_burst(board):
    """Twenty events while nobody listens: twenty interrupts, one event each."""
    report = board.run(board.firmware("events", QUEUE=1, BEGIN=3000), 6000, lines={0: range(1000, 1200, 10)}, watch={"handled": 4, "empty": 4})
    assert report["counters"] == {"handled": 20, "empty": 0}
    assert report["lines"][0] == {"line": 0, "offered": 20, "requested": 20, "delivered": 20, "missed": 0}


def test_event_counts_saturate(board):
    report = board.passes(board.firmware("saturating"), 300_000, "--moves", f"1={board.moves([], end_high=True)}", lines={0: range(1000, 265_000, 4)})
    assert report["lines"][0]["offered"] == 66_000


def test_limiter_registers(board):
    board.passes(board.firmware("registers"), 20_000)


@pytest.mark.parametrize("interval", [100, 999, 1000, 12345])
def test_strict_interval_is_exact(board, interval):
    firmware = board.firmware("limited", INTERVAL=interval, BURST=1, CONTROL="(LIMIT_ENABLED|LIMIT_ON)")
    edges = range(FULL, 90_000, 37)
    report = board.run(firmware, LIMITED_CYCLES, lines={0: edges}, watch={"handled": 4, "held": 4}, trace=True)
    delivered = cycles_of(report, "delivered", 0)
    assert delivered[0] == FULL + DELIVERY
    assert {later - earlier for earlier, later in zip(delivered, delivered[1:])} == {interval}
    assert report["counters"]["handled"] == len(delivered) == report["interrupts"][0]["taken"]
    # A request is held back if another one waits already or the limiter is closed. These are all
    # requests but the first.
    assert report["counters"]["held"] == len(edges) - 1
    assert report["lines"][0]["missed"] == len(edges) - len(delivered)


@pytest.mark.parametrize("bursty", [0, 1])
def test_bursts(board, bursty):
    firmware = board.firmware("limited", INTERVAL=5000, BURST=4, CONTROL=f"(LIMIT_ENABLED|LIMIT_ON|{bursty}*LIMIT_BURSTY)")
    report = board.run(firmware, LIMITED_CYCLES, lines={0: range(FULL, 90_000, 100)}, watch={"handled": 4}, trace=True)
    delivered = cycles_of(report, "delivered", 0)
    assert delivered[:4] == [FULL + 100 * each + DELIVERY for each in range(4)]
    if bursty:
        # All four tokens return one interval after the first one was used.
        assert [cycle for each, cycle in enumerate(delivered) if each % 4 == 0][1] == FULL + DELIVERY + 5000
        assert all(delivered[each + 4] - delivered[each] >= 5000 for each in range(0, len(delivered) - 4, 4))
    else:
        assert {later - earlier for earlier, later in zip(delivered[4:], delivered[5:])} == {5000}
    assert report["counters"]["handled"] == len(delivered)


def test_user_disable_and_overload_interrupt(board):
    silent = board.run(board.firmware("limited", INTERVAL=1000, BURST=1, CONTROL="LIMIT_ON"), LIMITED_CYCLES, lines={0: range(1000, 9000, 37)})
    assert silent["lines"][0]["delivered"] == 0 and silent["interrupts"] == []
    # There are two floods with a pause in between, so the beginning of an overload is reported
    # twice.
    firmware = board.firmware("limited", INTERVAL=1000, BURST=1, CONTROL="(LIMIT_ENABLED|LIMIT_ON|LIMIT_NOTIFY)")
    edges = [*range(FULL, 39_000, 37), *range(50_000, 59_000, 37)]
    report = board.run(firmware, LIMITED_CYCLES, lines={0: edges}, watch={"overloads": 4})
    assert report["counters"]["overloads"] == 2
    assert {each["line"]: each["taken"] for each in report["interrupts"]}[8] == 2


def test_limit_costs_no_instruction_and_no_cycle(board):
    """Below the limit and in overload, each interrupt is what it is without a limit: the same instructions, the same cycles; so is the latency."""
    edges = range(FULL, 90_000, 1203)
    reports = {}
    for name, control in {"off": "LIMIT_ENABLED", "on": "(LIMIT_ENABLED|LIMIT_ON)"}.items():
        firmware = board.firmware("limited", INTERVAL=1000, BURST=1, CONTROL=control)
        reports[name] = board.run(firmware, LIMITED_CYCLES, lines={0: edges}, trace=True)
    assert reports["off"] == reports["on"]
    flooded = board.run(firmware, LIMITED_CYCLES, lines={0: range(FULL, 90_000, 37)})["interrupts"][0]
    calm = reports["off"]["interrupts"][0]
    assert flooded["instructions"] / flooded["taken"] == calm["instructions"] / calm["taken"] == calm["longest_instructions"]


def test_reset_in_the_middle_of_a_flood(board):
    report = board.passes(board.firmware("reset"), 20_000, lines={0: range(1000, 19_000, 40)})
    assert report["resets"] == 1
