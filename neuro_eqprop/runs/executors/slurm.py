"""Run tasks as jobs of a Slurm cluster, through submitit."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from neuro_eqprop.files.write import make_folder
from neuro_eqprop.runs.executors.local import run_in_new_worker
from neuro_eqprop.runs.executors.task import ExecutorError, Task, TaskResult

POLL = 0.5
"""Polling interval in seconds."""


@dataclass(frozen=True, slots=True)
class Slurm:
    """Runs tasks as an array of Slurm jobs; needs the extra `cluster`.

    Parameters
    ----------
    folder : Path
        A folder that all nodes share, for the files of the jobs.
    workers : int
        Jobs that run at the same time.
    options : mapping
        Options of `sbatch` by long name: partition, account, mem, qos, ...
    cluster : {"slurm", "local"}
        "local" runs the same jobs as processes of this machine, to try the set-up.
    """

    folder: Path
    workers: int
    options: Mapping[str, str] = field(default_factory=dict)
    cluster: str = "slurm"

    def run(self, tasks: Sequence[Task], *, deadline: float) -> Iterator[TaskResult]:
        """Yield the results in order of completion; cancel unfinished jobs on exit."""
        if not tasks:
            return
        waiting = dict(zip(self.submit(tasks, deadline), tasks, strict=True))
        try:
            while waiting:
                ended = [job for job in waiting if job.done()]
                for job in ended:
                    yield job_result(job, waiting.pop(job))
                if not ended:
                    time.sleep(POLL)
        finally:
            for job in waiting:
                job.cancel(check=False)

    def submit(self, tasks: Sequence[Task], deadline: float) -> list[Any]:
        """Submit a job for each task."""
        try:
            import submitit
        except ImportError as error:
            raise ExecutorError(
                "Slurm jobs need the package submitit; install it with "
                "`pip install neuro_eqprop[cluster]`, or use executor 'local'"
            ) from error
        # Its handlers print to standard output, which is reserved for results.
        logging.getLogger("submitit").handlers.clear()
        make_folder(self.folder)
        try:
            executor = submitit.AutoExecutor(folder=self.folder, cluster=self.cluster)
            # The worker enforces the deadline; the limit of the job ends a node that hangs.
            limits: dict[str, Any] = {"timeout_min": ceil(deadline / 60) + 2, "cpus_per_task": 1}
            if self.cluster == "slurm":
                limits["slurm_array_parallelism"] = self.workers
                limits["slurm_additional_parameters"] = dict(self.options)
            executor.update_parameters(name="neuro-eqprop", **limits)
            found: list[Any] = executor.map_array(
                run_in_new_worker, list(tasks), [deadline] * len(tasks)
            )
        except (RuntimeError, OSError, submitit.core.utils.FailedJobError) as error:
            raise ExecutorError(
                f"Slurm did not accept the jobs ({last_line(error)}); check the options of "
                f"sbatch, or use executor 'local'"
            ) from error
        return found


def job_result(job: Any, task: Task) -> TaskResult:  # noqa: ANN401
    """The result of a job that ended."""
    try:
        found: TaskResult = job.result()
    except Exception as error:  # any failure on the node is an error of this task only
        return TaskResult(task, {}, f"job {job.job_id} failed: {last_line(error)}")
    return TaskResult(task, found.values, found.error, found.seconds)


def last_line(error: Exception) -> str:
    """The last line of the message of an error, where Slurm and Python give the cause."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1]
