# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the simulator measures, and what it says about a wrong command line."""

import json
import struct
import subprocess

import pytest
from conftest import WEIR_SOC, cycles_of


def test_counters_wrap(board):
    sizes = {"count8": 1, "count16": 2, "count32": 4, "count64": 8, "falling": 4}
    report = board.run(board.firmware("counting"), 200_000, "--warmup", "3000", watch=sizes, mark=["counted"])
    counters = report["counters"]
    assert counters["count32"] > 1000 and counters.pop("falling") == 0
    assert max(counters.values()) - min(counters.values()) <= 1
    assert abs(len(report["marks"]["counted"]) - counters["count32"]) <= 1
    assert report["cycles"] == 200_000 and all(0 <= cycle < 200_000 for cycle in report["marks"]["counted"])


def test_every_cycle_and_instruction_is_charged(board):
    firmware = board.firmware("work")
    report = board.run(firmware, 40_000, "--warmup", "777", lines={0: range(1000, 39_000, 333)})
    uses = [report["background"], *report["interrupts"]]
    assert sum(use["cycles"] for use in uses) == report["cycles"]
    assert sum(use["instructions"] for use in uses) == report["instructions"]
    assert report["interrupts"][0]["longest_instructions"] == report["interrupts"][0]["instructions"] / report["interrupts"][0]["taken"]


def test_interrupts_cost_what_they_are_charged_with(board):
    """The same work with interrupts takes longer by their cycles. Up to two more each: the processor had fetched ahead, and has to again."""
    firmware = board.firmware("work")
    spans = {}
    for name, edges in {"without": [], "with": range(2000, 20_000, 211)}.items():
        report = board.run(firmware, 60_000, lines={0: edges} if edges else {}, mark=["begin", "end"])
        spans[name] = report["marks"]["end"][0] - report["marks"]["begin"][0]
    use = report["interrupts"][0]
    assert use["taken"] == len(edges)
    assert 0 <= spans["with"] - spans["without"] - use["cycles"] <= 2 * use["taken"]
    # The firmware's work makes no progress while interrupts run.
    assert report["exit"] == 0


def test_moves_are_cycle_exact(board):
    firmware = board.firmware("work")
    for begin in range(3000, 3010):
        report = board.run(firmware, 4000, "--warmup", "600", lines={0: [begin]}, trace=True)
        assert cycles_of(report, "request") == [begin - 600] and cycles_of(report, "delivered") == [begin - 597]
        assert len(cycles_of(report, "taken", 0)) == len(cycles_of(report, "mret")) == 1


def test_the_same_run_twice(board):
    firmware = board.firmware("work")
    first, second = (board.run(firmware, 30_000, lines={0: range(1000, 29_000, 97)}, trace=True, mark=["begin"]) for _ in range(2))
    assert first == second


def test_names_are_escaped(board):
    firmware = board.firmware("work")
    name = 'a"\\\n\té'
    done = subprocess.run(
        [WEIR_SOC, "--image", firmware.image, "--cycles", "10", "--watch", f"{name}=0x100:4"], capture_output=True, text=True, check=True
    )
    assert list(json.loads(done.stdout)["counters"]) == [name.encode().decode("latin-1")]


def moves(*pairs):
    return b"".join(struct.pack("<Q", cycle << 1 | level) for cycle, level in pairs)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "--image is missing"),
        (["--image", "IMAGE"], "--cycles is missing"),
        (["--image", "absent.bin", "--cycles", "1"], "absent.bin: it cannot be read: No such file"),
        (["--image", ".", "--cycles", "1"], "it cannot be read"),
        (["--image", "empty.bin", "--cycles", "1"], "empty.bin: it is empty"),
        (["--image", "large.bin", "--cycles", "1"], "large.bin: it has 65537 bytes and the RAM 65536"),
        (["--image", "IMAGE", "--cycles"], "--cycles: its value is missing"),
        (["--image", "IMAGE", "--cycles", "0"], "--cycles 0: a number from 1"),
        (["--image", "IMAGE", "--cycles", "-1"], "--cycles -1: a number"),
        (["--image", "IMAGE", "--cycles", "1x"], "--cycles 1x: a number"),
        (["--image", "IMAGE", "--cycles", "99999999999999999999"], "a number"),
        (["--image", "IMAGE", "--cycles", "1", "--warmup", ""], "--warmup : a number"),
        (["--image", "IMAGE", "--cycles", "1", "--clock-hz", "0"], "--clock-hz 0: a number from 1"),
        (["--image", "IMAGE", "--cycles", "1", "--faster"], "--faster: there is no such option"),
        (["--image", "IMAGE", "--cycles", "1", "--moves", "0"], "--moves 0: it is written LINE=FILE"),
        (["--image", "IMAGE", "--cycles", "1", "--moves", "8=good.moves"], "--moves 8: a number from 0 to 7"),
        (["--image", "IMAGE", "--cycles", "1", "--moves", "0=absent.moves"], "absent.moves: it cannot be read"),
        (["--image", "IMAGE", "--cycles", "1", "--moves", "0=good.moves", "--moves", "0=good.moves"], "--moves 0: given twice"),
        (["--image", "IMAGE", "--cycles", "1", "--moves", "0=odd.moves"], "odd.moves: its 17 bytes are no sequence"),
        (["--image", "IMAGE", "--cycles", "1", "--moves", "0=back.moves"], "move 1 (from 0) is at cycle 4, the one before it at 5"),
        (["--image", "IMAGE", "--cycles", "1", "--moves", "0=twice.moves"], "move 1 (from 0) is at cycle 5, the one before it at 5"),
        (["--image", "IMAGE", "--cycles", "1", "--watch", "a=16"], "--watch a=16: it is written NAME=ADDR:BYTES"),
        (["--image", "IMAGE", "--cycles", "1", "--watch", "=16:4"], "--watch =16:4: it is written"),
        (["--image", "IMAGE", "--cycles", "1", "--watch", "a=16:3"], "1, 2, 4 or 8 bytes"),
        (["--image", "IMAGE", "--cycles", "1", "--watch", "a=0xfffd:4"], "in RAM"),
        (["--image", "IMAGE", "--cycles", "1", "--watch", "a=16:4", "--watch", "a=20:4"], "--watch a: given twice"),
        (["--image", "IMAGE", "--cycles", "1", "--mark", "a=2"], "--mark a=2: it is written NAME=ADDR"),
        (["--image", "IMAGE", "--cycles", "1", "--mark", "a=0x10000"], "an instruction in RAM"),
        (["--image", "IMAGE", "--cycles", "1", "--mark", "a=4", "--mark", "a=8"], "--mark a: given twice"),
    ],
)
def test_wrong_command_lines(tmp_path, arguments, says):
    (tmp_path / "IMAGE").write_bytes(b"\x6f\0\0\0")
    (tmp_path / "empty.bin").write_bytes(b"")
    (tmp_path / "large.bin").write_bytes(bytes(65537))
    (tmp_path / "good.moves").write_bytes(moves((5, 1), (6, 0)))
    (tmp_path / "odd.moves").write_bytes(bytes(17))
    (tmp_path / "back.moves").write_bytes(moves((5, 1), (4, 0)))
    (tmp_path / "twice.moves").write_bytes(moves((5, 1), (5, 0)))
    done = subprocess.run([WEIR_SOC, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("weir-soc: ") and done.stderr.count("\n") == 1
    assert says in done.stderr


def test_limits_of_what_is_accepted(tmp_path):
    """An image as large as the RAM, a variable in its last bytes, a file without moves."""
    (tmp_path / "image").write_bytes(b"\x6f\0\0\0" + bytes(65532))
    (tmp_path / "none.moves").write_bytes(b"")
    command = [WEIR_SOC, "--image", "image", "--cycles", "5", "--watch", "a=0xfff8:8", "--mark", "b=0xfffc", "--moves", "7=none.moves"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["counters"] == {"a": 0}


def test_help():
    done = subprocess.run([WEIR_SOC, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: weir-soc ")


def test_output_that_cannot_be_written(tmp_path):
    (tmp_path / "image").write_bytes(b"\x6f\0\0\0")
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([WEIR_SOC, "--image", tmp_path / "image", "--cycles", "5"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and "cannot be written" in done.stderr


def test_traps_without_an_end(tmp_path):
    """A handler that is interrupted by its own first instruction, an ecall, for ever."""
    # la t0, here; csrw mtvec, t0; here: ecall
    (tmp_path / "image").write_bytes(struct.pack("<3I", 0x00800293, 0x30529073, 0x00000073))
    done = subprocess.run([WEIR_SOC, "--image", tmp_path / "image", "--cycles", "1000000"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "a trap handler ends with mret" in done.stderr
