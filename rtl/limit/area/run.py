#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures what the limiter costs in two systems on two FPGAs: Table 3 of regehr2005, rtl/limit/area/measured.

  rtl/limit/area/run.py                      everything that is missing: counts.csv, tools.json, and the runs of the plan, in the plan's order
  rtl/limit/area/run.py --counts             only counts.csv and tools.json
  rtl/limit/area/run.py --paths              only paths.csv: which paths are the slowest with a limiter, in placements of their own
  rtl/limit/area/run.py --check              checks that the committed counts and netlists of iCE40, and one run, are those of today's RTL
  rtl/limit/area/run.py --quick              the same of one processor, and of no run

A run that is interrupted goes on where it ended; runs of a netlist that is no longer made are dropped. Progress goes to stderr.
Exit: 0 done or equal, 1 (--check, --quick) something differs, 2 it could not be run.
"""

import argparse
import concurrent.futures
import csv
import hashlib
import json
import signal
import sys
import time

sys.dont_write_bytecode = True
from flow import CPUS, DEVICES, ROOT, SYSTEM_CLOCK_MHZ, CannotRun, Design, Flow

DATA = ROOT / "rtl" / "limit" / "area" / "measured"
RUN_COLUMNS = ["cpu", "device", "sources", "seed", "cells", "flip_flops", "fmax_mhz", "netlist"]
PATH_COLUMNS = ["cpu", "device", "seed", "fmax_mhz", "cells", "limiter_cells"]
COUNT_COLUMNS = ["design", "device", "pins", "sources", "clock_mhz", "phase_bits", "rate_bits", "luts", "carries", "flip_flops", "memories", "cells"]

# The plan has seeds 1 to this one, each in all systems before the next;
# rtl/limit/area/measured/README.md says why so many.
LAST_SEED = 112
# The last seed of placements whose slowest path is examined; with the names of its cells the
# netlist is another one, so these are not the runs of the plan.
LAST_PATH_SEED = 6
# The processor whose systems --quick checks.
QUICK_CPU = "picorv32"
CLOCKS_MHZ = [4, SYSTEM_CLOCK_MHZ, 12, 16, 25, 50, 100]


def systems(device):
    """Without and with the limiter."""
    return [Design(cpu, device, 1, sources, SYSTEM_CLOCK_MHZ if sources else None) for cpu in CPUS for sources in (0, 1)]


def counted():
    """All lines of counts.csv."""
    designs = []
    for device in DEVICES:
        designs += systems(device)
        for pins in (1, 2, 3, 4):
            designs += [Design("source", device, pins, 0), Design("source", device, pins, pins, SYSTEM_CLOCK_MHZ)]
        designs += [Design("source", device, 1, 1, clock) for clock in CLOCKS_MHZ if clock != SYSTEM_CLOCK_MHZ]
        designs += [Design("apb", device, sources, sources) for sources in (1, 2, 3, 4)]
        designs += [Design(name, device, sources, sources) for name, sources in (("memory", 64), ("memory", 1024), ("memory-all", 64))]
    return designs


def count_line(design, result):
    limiter = {"phase_bits": design.parameters.get("PHASE_BITS"), "rate_bits": design.parameters.get("RATE_BITS")}
    line = {"design": design.name, "device": design.device, "pins": design.pins, "sources": design.sources, "clock_mhz": design.clock_mhz}
    return {name: "" if value is None else str(value) for name, value in (line | limiter | {"cells": None} | result["counts"]).items()}


def read(path):
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path, columns, lines):
    new = path.with_suffix(".new")
    with new.open("w", newline="") as file:
        table = csv.DictWriter(file, columns, lineterminator="\n")
        table.writeheader()
        table.writerows(lines)
    new.replace(path)


def say(text):
    print(text, file=sys.stderr, flush=True)


def each(pool, work, items):
    """Does the work side by side; item and result, as they come."""
    futures = {pool.submit(work, item): item for item in items}
    try:
        for future in concurrent.futures.as_completed(futures):
            yield futures[future], future.result()
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def count(flow, pool):
    """Writes tools.json, and counts.csv as it grows."""
    designs = counted()
    tools, packages = flow.versions()
    options = {name: {"yosys": device.synthesis, "nextpnr": " ".join(device.part)} for name, device in DEVICES.items()}
    files = sorted({file for design in designs for file in design.files if not file.startswith("build/")})
    sources = {file: hashlib.sha256((ROOT / file).read_bytes()).hexdigest() for file in files}
    document = {"tools": tools, "packages": packages, "options": options, "sources": sources}
    (DATA / "tools.json").write_text(json.dumps(document, indent=2) + "\n")
    results = {}
    for design, result in each(pool, flow.synthesise, designs):
        results[design] = result
        write(DATA / "counts.csv", COUNT_COLUMNS, [count_line(design, results[design]) for design in designs if design in results])
        say(f"{len(results)}/{len(designs)} {design.folder.name}: {result['counts']}")


def run_line(design, seed, netlist, measured):
    cells, flip_flops, fmax = measured
    flip_flops = "" if flip_flops is None else flip_flops
    line = [design.name, design.device, design.sources, seed, cells, flip_flops, f"{fmax:.3f}", netlist]
    return dict(zip(RUN_COLUMNS, map(str, line), strict=True))


def place_and_route(flow, pool):
    """Appends the runs that the plan has and runs.csv has not."""
    path = DATA / "runs.csv"
    netlists = {}
    for device in DEVICES:
        for design, result in each(pool, flow.synthesise, systems(device)):
            netlists[design.name, device, str(design.sources)] = result["netlist"]
    lines = read(path)
    kept = [line for line in lines if netlists.get((line["cpu"], line["device"], line["sources"])) == line["netlist"]]
    if len(kept) != len(lines) or not path.exists():
        say(f"{len(lines) - len(kept)} runs of other netlists dropped")
        write(path, RUN_COLUMNS, kept)
    done = {(line["cpu"], line["device"], line["sources"], line["seed"]) for line in kept}
    todo = [
        (design, seed)
        for seed in range(1, LAST_SEED + 1)
        for device in DEVICES
        for design in systems(device)
        if (design.name, device, str(design.sources), str(seed)) not in done
    ]
    say(f"{len(done)} runs are there, {len(todo)} to do")
    begun = time.monotonic()
    for number, ((design, seed), measured) in enumerate(each(pool, lambda item: flow.place_and_route(*item), todo), 1):
        line = run_line(design, seed, netlists[design.name, design.device, str(design.sources)], measured)
        with path.open("a", newline="") as file:
            csv.DictWriter(file, RUN_COLUMNS, lineterminator="\n").writerow(line)
        left = (time.monotonic() - begun) / number * (len(todo) - number) / 60
        say(f"{number}/{len(todo)} {design.folder.name} seed {seed}: {line['cells']} cells, {line['fmax_mhz']} MHz; {left:.0f} min left")


def look_at_paths(flow, pool):
    """Writes paths.csv."""
    designs = [design for device in DEVICES for design in systems(device) if design.sources]
    named = dict(each(pool, flow.named, designs))
    todo = [(design, seed) for seed in range(1, LAST_PATH_SEED + 1) for design in designs]
    measured = {}
    for (design, seed), result in each(pool, lambda item: flow.slowest_path(*item, named[item[0]]), todo):
        measured[design, seed] = result
        say(f"{len(measured)}/{len(todo)} {design.folder.name} seed {seed}: {result[2]} of {result[1]} cells are the limiter's")
    lines = []
    for design, seed in todo:
        fmax, cells, limiters = measured[design, seed]
        lines.append(dict(zip(PATH_COLUMNS, [design.name, design.device, seed, f"{fmax:.3f}", cells, limiters], strict=True)))
    write(DATA / "paths.csv", PATH_COLUMNS, lines)


def differences(flow, pool, quick):
    """--check, --quick: where today's RTL does not give the committed counts."""
    of_systems = [design for design in systems("ice40-hx8k") if not quick or design.name == QUICK_CPU]
    designs = of_systems + [Design("source", "ice40-hx8k", 4, 4, SYSTEM_CLOCK_MHZ), Design("apb", "ice40-hx8k", 4, 4), Design("memory", "ice40-hx8k", 64, 64)]
    committed = {tuple(line[name] for name in COUNT_COLUMNS[:5]): line for line in read(DATA / "counts.csv")}
    runs = {(line["cpu"], line["device"], line["sources"], line["seed"]): line for line in read(DATA / "runs.csv")}
    found, checked, netlists = [], [], {}
    for design, result in each(pool, flow.synthesise, designs):
        line = count_line(design, result)
        netlists[design] = result["netlist"]
        checked.append(line)
        before = committed.get(tuple(line[name] for name in COUNT_COLUMNS[:5]))
        if before != line:
            found.append(f"{design.folder.name}: counts.csv has {before}, the RTL gives {line}")
    # The same number of cells may be another netlist, whose timing was not measured.
    for design in of_systems:
        before = runs.get((design.name, design.device, str(design.sources), "1"))
        if before is None or before["netlist"] != netlists[design]:
            found.append(f"{design.folder.name}: runs.csv is of netlist {before and before['netlist']}, the RTL gives {netlists[design]}")
    # A netlist that is the same is placed as before, if the tools are: one shows that.
    if not found and not quick:
        design = of_systems[0]
        line = run_line(design, 1, netlists[design], flow.place_and_route(design, 1))
        checked.append(line)
        before = runs[design.name, design.device, str(design.sources), "1"]
        if before != line:
            found.append(f"{design.folder.name}: runs.csv has {before}, the tools give {line}")
    return checked, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="check the committed results against the RTL; write nothing")
    parser.add_argument("--quick", action="store_true", help="the same of fewer results")
    parser.add_argument("--counts", action="store_true", help="no placement and routing")
    parser.add_argument("--paths", action="store_true", help="only which paths are the slowest with a limiter")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="tools that run side by side (2)")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    arguments = parser.parse_args()
    # SIGTERM acts like Ctrl-C: running processes are waited for.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if arguments.jobs < 1:
        parser.error("--jobs: at least 1")
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        flow = Flow()
        if arguments.check or arguments.quick:
            checked, found = differences(flow, pool, arguments.quick)
            if arguments.json:
                print(json.dumps({"checked": checked, "differences": found}))
            for text in found:
                say(text)
            say(f"area: {len(checked)} results checked, {len(found)} differ" + ("; rtl/limit/area/run.py measures anew" if found else ""))
            return 1 if found else 0
        if arguments.paths:
            look_at_paths(flow, pool)
            if arguments.json:
                print(json.dumps({"paths": read(DATA / "paths.csv")}))
            return 0
        if not arguments.counts:
            place_and_route(flow, pool)
        count(flow, pool)
        if arguments.json:
            print(json.dumps({"counts": read(DATA / "counts.csv"), "runs": read(DATA / "runs.csv")}))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotRun as error:
        say(f"area: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        say("area: interrupted; what is done is kept")
        sys.exit(2)
