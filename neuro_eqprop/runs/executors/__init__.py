"""Executors: run independent tasks here, in worker processes, on a Dask cluster or on Slurm.

A `Task` is a function of this package, or of `sims` in a clone, with arguments that JSON can hold.
Each task runs on one thread, so its result depends on its arguments alone, whatever the executor
and the number of workers. Sweeps, and the claims in `sims`, run through these executors.
"""

from neuro_eqprop.runs.executors.choose import EXECUTORS, make_executor
from neuro_eqprop.runs.executors.local import Processes, Serial
from neuro_eqprop.runs.executors.task import Executor, ExecutorError, Task, TaskResult

__all__ = [
    "EXECUTORS",
    "Executor",
    "ExecutorError",
    "Processes",
    "Serial",
    "Task",
    "TaskResult",
    "make_executor",
]
