# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds weir_limit_scan in two shapes, and runs its benches: everything on and the sources unlike each other; 64 strict sources, the least;
and weir_limit with it inside, with few sources and with as many as there can be.
"""

import json
import random
from dataclasses import asdict
from pathlib import Path

import pytest
import test_limit
from cocotb_tools.runner import get_results, get_runner
from model import ENABLE
from scan_model import Shape
from test_limit import SEED

HERE = Path(__file__).resolve().parent
LIMIT = HERE.parents[1]
BUILD = LIMIT.parents[1] / "build/rtl/scan"
SOURCES = [LIMIT / "registers/generated/weir_limit_map.sv", LIMIT / "src/weir_limit_ff.sv", *sorted((LIMIT / "src").glob("weir_limit_scan*.sv"))]
PARAMETERS = ["phase_bits", "rate_bits", "burst_bits", "held_bits", "readback", "enables", "limits", "overload", "lock", "msi", "reset", "group"]

NUMBERS = random.Random(5)
FULL = Shape(
    **{"sources": 43, "phase_bits": 8, "rate_bits": 8, "burst_bits": 3, "held_bits": 4, "msi": 1},
    level=NUMBERS.getrandbits(43) & NUMBERS.getrandbits(43),
    resets=[[NUMBERS.randrange(8), NUMBERS.randint(1, 255), NUMBERS.randint(1, 7)] for _ in range(43)],
)
LEAST = Shape(sources=64, phase_bits=6, rate_bits=6, reset=2, readback=0, overload=0, lock=0, resets=[[0, 1, 1]] * 64)


def packed(values, bits):
    """A literal of one value for each source, source 0 in the lowest bits."""
    values = list(values)
    return f"{len(values) * bits}'h{sum(value << bits * place for place, value in enumerate(values)):x}"


def top(shape):
    """A module around weir_limit_scan with its parameters: those wider than 32 bits cannot be given on Icarus's command line."""
    last, bursts = shape.sources - 1, max(1, shape.burst_bits)
    values = {"SOURCES": shape.sources, "LEVEL": f"{shape.sources}'h{shape.level:x}"}
    values |= {name.upper(): getattr(shape, name) for name in PARAMETERS}
    values["RATE_RESET"] = packed((rate for _, rate, _ in shape.resets), shape.rate_bits)
    values["BURST_RESET"] = packed((burst for _, _, burst in shape.resets), bursts)
    for place, name in enumerate(("ENABLE_RESET", "LIMIT_RESET", "POLICY_RESET")):
        values[name] = packed((control >> place & 1 for control, _, _ in shape.resets), 1)
    ports = {name: "" for name in "clk_i rst_ni msi_valid_i reg_valid_i reg_write_i reg_ready_o reg_error_o overload_irq_o".split()}
    ports |= {name: f"[{last}:0]" for name in "level_i edge_i held_i deliver_o enable_o".split()}
    ports |= {"msi_number_i": "[9:0]", "reg_which_i": "[2:0]", "reg_source_i": "[9:0]"}
    ports |= {name: "[31:0]" for name in "reg_wdata_i reg_rdata_o tick_o".split()}
    declared = ", ".join(f"{'output' if name.endswith('_o') else 'input'} wire {width} {name}" for name, width in ports.items())
    given = ", ".join(f".{name}({value})" for name, value in values.items())
    return f"module top({declared});\n  weir_limit_scan #({given}) u_scan({', '.join(f'.{name}({name})' for name in ports)});\nendmodule\n"


def simulate(name, wrapper, sources, shape, benches):
    build = BUILD / name
    build.mkdir(parents=True, exist_ok=True)
    (build / "top.sv").write_text(wrapper)
    runner = get_runner("icarus")
    runner.build(sources=[*sources, build / "top.sv"], hdl_toplevel="top", build_dir=build, build_args=["-g2012"], always=True)
    parameters = {key: value for key, value in asdict(shape).items() if key != "form"}
    for bench in benches:
        results = build / f"{bench}.xml"
        runner.test(
            hdl_toplevel="top",
            test_module=bench,
            build_dir=build,
            test_dir=build,
            extra_env={"WEIR_LIMIT_SHAPE": json.dumps(parameters), "PYTHONPATH": f"{HERE}:{HERE.parent}"},
            results_xml=str(results),
            seed=SEED,
        )
        ran, failed = get_results(results)
        assert ran > 0 and failed == 0, f"{failed} of {ran} tests of {bench} failed with WEIR_SEED={SEED}"


@pytest.mark.parametrize(("name", "shape", "benches"), [("full", FULL, ["bench_scan", "bench_scan_core"]), ("least", LEAST, ["bench_scan"])])
def test_scan(name, shape, benches):
    simulate(name, top(shape), SOURCES, shape, benches)


LARGEST = {"sources": 1024, "phase_bits": 6, "rate_bits": 6, "control_reset": ENABLE}


WIDE = {"sources": 33, "phase_bits": 32, "rate_bits": 32, "burst_bits": 8, "held_bits": 16}
TOP = {"sources": 10, "phase_bits": 6, "rate_bits": 6, "burst_bits": 2, "held_bits": 2}


@pytest.mark.parametrize(
    ("name", "numbers", "bench"),
    [("top", TOP, "bench_scan_top"), ("wide", WIDE, "bench_scan_every_bit"), ("largest", LARGEST, "bench_scan_largest")],
)
def test_top(name, numbers, bench):
    limit = test_limit.Shape(**numbers)
    limit.form = 1
    simulate(name, test_limit.top(limit), test_limit.SOURCES, Shape(**numbers), [bench])
