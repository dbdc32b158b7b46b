# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds weir_limit in a few shapes that are unlike each other, and runs the benches in each. `run` starts it.

The simulator is Icarus Verilog: of four values, so that an X is seen, and quickly built.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest
from cocotb_tools.runner import get_results, get_runner
from model import ENABLE, LIMIT, POLICY, Shape

HERE = Path(__file__).resolve().parent
LIMIT_FOLDER = HERE.parent
BUILD = LIMIT_FOLDER.parents[1] / "build/rtl/limit"
SOURCES = [LIMIT_FOLDER / "registers/generated/weir_limit_map.sv", *sorted((LIMIT_FOLDER / "src").glob("*.sv"))]

# The seed of all random numbers, so that a run can be repeated.
SEED = int(os.environ.get("WEIR_SEED", "1"))

# The shapes: all features; messages; the least that can be built; 33 sources of all policies and 6
# of the strict machine, for the comparison with core/, too; the greatest widths; in front of a
# PLIC.
FULL = Shape(sources=5, phase_bits=10, rate_bits=8, burst_bits=3, held_bits=3, level=0b00110, rate_reset=200)
MESSAGES = Shape(sources=3, phase_bits=6, rate_bits=6, burst_bits=2, held_bits=2, level=0b100, sync=0, reset=2, msi=1, rate_reset=63)
LEAST = Shape(
    **{"sources": 2, "phase_bits": 7, "rate_bits": 3, "sync": 3, "reset": 0, "pulse": 1, "rate_reset": 5, "control_reset": ENABLE | LIMIT},
    **dict.fromkeys(["readback", "enables", "limits", "overload", "lock", "bypass"], 0),
)
STRICT = Shape(sources=6, phase_bits=8, rate_bits=8, held_bits=2, sync=0, pulse=1, rate_reset=255)
PLIC, PLIC_PULSE = (Shape(sources=2, phase_bits=6, rate_bits=6, level=0b10, pulse=pulse) for pulse in (0, 1))
WIDE = Shape(sources=33, phase_bits=32, rate_bits=32, burst_bits=8, held_bits=16, sync=0, pulse=1)
MANY = Shape(sources=33, phase_bits=8, rate_bits=8, burst_bits=3, sync=0, pulse=1, rate_reset=255)


def top(shape):
    """A module around weir_limit with its parameters: those wider than 32 bits cannot be given on Icarus's command line."""
    last, bursts = shape.sources - 1, max(1, shape.burst_bits)
    values = {name.upper(): value for name, value in asdict(shape).items() if name not in ("control_reset", "rate_reset", "burst_reset", "level")}
    values["LEVEL"] = f"{shape.sources}'h{shape.level:x}"
    values["RATE_RESET"] = f"{{{shape.sources}{{{shape.rate_bits}'d{shape.rate_reset}}}}}"
    values["BURST_RESET"] = f"{{{shape.sources}{{{bursts}'d{shape.burst_reset}}}}}"
    for name, bit in (("ENABLE", ENABLE), ("LIMIT", LIMIT), ("POLICY", POLICY)):
        values[f"{name}_RESET"] = f"{{{shape.sources}{{1'b{int(bool(shape.control_reset & bit))}}}}}"
    ports = {f"{name}_i": "" for name in "clk psel penable pwrite msi_valid msi_ready bypass".split()}
    ports |= {"rst_ni": "", "paddr_i": "[15:0]", "pwdata_i": "[31:0]", "pstrb_i": "[3:0]", "msi_number_i": "[9:0]"}
    ports |= {"irq_i": f"[{last}:0]", "ack_i": f"[{last}:0]", "irq_o": f"[{last}:0]", "prdata_o": "[31:0]", "msi_number_o": "[9:0]"}
    ports |= {name: "" for name in "pready_o pslverr_o msi_ready_o msi_valid_o overload_irq_o".split()}
    declared = ", ".join(f"{'output' if name.endswith('_o') else 'input'} wire {width} {name}" for name, width in ports.items())
    given = ", ".join(f".{name}({value})" for name, value in values.items())
    return f"module top({declared});\n  weir_limit #({given}) u_limit({', '.join(f'.{name}({name})' for name in ports)});\nendmodule\n"


@pytest.mark.parametrize(
    ("name", "shape", "benches"),
    [
        ("full", FULL, ["bench_random", "bench_promises"]),
        ("messages", MESSAGES, ["bench_random"]),
        ("least", LEAST, ["bench_random"]),
        ("strict", STRICT, ["bench_random", "bench_core"]),
        ("many", MANY, ["bench_core"]),
        ("wide", WIDE, ["bench_every_bit"]),
        ("plic", PLIC, ["bench_plic"]),
        ("plic-pulse", PLIC_PULSE, ["bench_plic"]),
    ],
)
def test_shape(name, shape, benches):
    build = BUILD / name
    build.mkdir(parents=True, exist_ok=True)
    wrapper = build / "top.sv"
    wrapper.write_text(top(shape))
    runner = get_runner("icarus")
    runner.build(sources=[*SOURCES, wrapper], hdl_toplevel="top", build_dir=build, build_args=["-g2012"], always=True)
    parameters = {key: value for key, value in asdict(shape).items() if key != "form"}
    for bench in benches:
        results = build / f"{bench}.xml"
        runner.test(
            hdl_toplevel="top",
            test_module=bench,
            build_dir=build,
            test_dir=build,
            extra_env={"WEIR_LIMIT_SHAPE": json.dumps(parameters), "PYTHONPATH": str(HERE)},
            results_xml=str(results),
            seed=SEED,
        )
        ran, failed = get_results(results)
        assert ran > 0 and failed == 0, f"{failed} of {ran} tests of {bench} failed with WEIR_SEED={SEED}"
