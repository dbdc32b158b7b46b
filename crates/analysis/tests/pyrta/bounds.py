# SPDX-License-Identifier: MIT OR Apache-2.0
"""Bounds by pyRTA (https://pypi.org/project/response-time-analysis), the reference implementation of PROSA's response-time analyses.

Reads a JSON array of task sets from standard input and writes, for each, an array of the bounds of its tasks: null where there is none below the horizon. A task is
{"cost", "period", "jitter", "priority", "preemption": "full" | "none" | "floating", "segment"}; a higher priority is more urgent.
"""

import json
import sys

from response_time_analysis import fp
from response_time_analysis.model import (
    WCET,
    FloatingNonPreemptive,
    FullyNonPreemptive,
    FullyPreemptive,
    IdealProcessor,
    PeriodicWithJitter,
    Priority,
    Task,
    taskset,
)

HORIZON = 1_000_000


def execution(task):
    wcet = WCET(task["cost"])
    match task["preemption"]:
        case "full":
            return FullyPreemptive(wcet)
        case "none":
            return FullyNonPreemptive(wcet)
        case "floating":
            return FloatingNonPreemptive(wcet, task["segment"])
        case other:
            raise ValueError(f"preemption: {other!r}")


def bounds(task_set):
    tasks = [
        Task(
            PeriodicWithJitter(task["period"], task["jitter"]),
            execution(task),
            priority=Priority(task["priority"]),
        )
        for task in task_set
    ]
    solutions = (fp.rta(taskset(tasks), task, IdealProcessor(), horizon=HORIZON) for task in tasks)
    return [solution.response_time_bound if solution.bound_found() else None for solution in solutions]


json.dump([bounds(task_set) for task_set in json.load(sys.stdin)], sys.stdout)
