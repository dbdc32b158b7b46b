# SPDX-License-Identifier: MIT OR Apache-2.0
"""The run of a task set by SimSo (https://pypi.org/project/simso), under fixed priorities on one processor.

Reads {"tasks": [{"period", "wcet", "deadline", "priority"}], "duration"} from standard input, times in cycles; a higher priority is more urgent.
Writes {"responses": of each task those of its jobs that have ended, in their order, in cycles, "seconds": of processor time for the simulation alone}.
"""

import contextlib
import json
import sys
import time

from simso.configuration import Configuration
from simso.core import Model

asked = json.load(sys.stdin)

configuration = Configuration()
configuration.duration = asked["duration"]
# SimSo takes milliseconds as floating-point numbers and rounds to cycles; so that nothing is
# rounded, a cycle is a millisecond here.
configuration.cycles_per_ms = 1
for index, task in enumerate(asked["tasks"]):
    configuration.add_task(
        name=f"task{index}",
        identifier=index,
        period=task["period"],
        activation_date=0,
        wcet=task["wcet"],
        deadline=task["deadline"],
        # A job that is late goes on, as it does on a processor.
        abort_on_miss=False,
        data={"priority": task["priority"]},
    )
configuration.add_processor(name="cpu", identifier=1)
configuration.scheduler_info.clas = "simso.schedulers.FP"
configuration.check_all()

model = Model(configuration)
begin = time.process_time()
# It says on standard output which jobs miss their deadlines.
with contextlib.redirect_stdout(sys.stderr):
    model.run_model()
seconds = time.process_time() - begin

responses = []
for task in sorted(model.task_list, key=lambda task: task.identifier):
    jobs = [job for job in model.results.tasks[task].jobs if job.end_date is not None]
    responses.append([round(job.end_date - job.activation_date) for job in jobs])
json.dump({"responses": responses, "seconds": seconds}, sys.stdout)
