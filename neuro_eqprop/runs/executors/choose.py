"""Executors by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.runs.executors.dask import Dask, Tls
from neuro_eqprop.runs.executors.local import Processes, Serial
from neuro_eqprop.runs.executors.slurm import Slurm
from neuro_eqprop.runs.executors.task import Executor

EXECUTORS: Mapping[str, str] = {
    "local": "processes of this machine",
    "dask": "a Dask cluster, by the address of its scheduler",
    "slurm": "jobs of a Slurm cluster",
}
"""Names of the executors, with a description for help and documentation."""
MOST_PER_PROCESSOR = 64
"""Largest number of local workers per processor."""


def check_workers(workers: int, *, local: bool = True) -> None:
    """Raise ValueError if `workers` is below one, or too large for this machine."""
    if not isinstance(workers, Integral):
        raise ValueError(f"`workers` must be an integer, not {workers!r}")
    most = MOST_PER_PROCESSOR * (os.cpu_count() or 1)
    if not local:
        if workers < 1:
            raise ValueError(f"`workers` must be at least 1, not {workers}")
    elif not 1 <= workers <= most:
        raise ValueError(f"`workers` must be between 1 and {most} on this machine, not {workers}")


def make_executor(
    name: str | Executor,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    tls: Tls | None = None,
    folder: Path = Path("slurm-jobs"),
    options: Mapping[str, str] | None = None,
) -> Executor:
    """An executor by name.

    Parameters
    ----------
    name : {"local", "dask", "slurm"} or Executor
        An executor is returned unchanged.
    workers : int
        Processes ("local") or jobs at the same time ("slurm").
    scheduler, tls
        Address and certificates ("dask").
    folder, options
        Shared folder and options of `sbatch` ("slurm").
    """
    if not isinstance(name, str):
        return name
    if name not in EXECUTORS:
        raise UnknownNameError("executor", name, EXECUTORS)
    check_workers(workers, local=name == "local")
    if name == "dask":
        if scheduler is None:
            raise ValueError(
                "executor 'dask' needs the address of a scheduler, as tcp://127.0.0.1:8786"
            )
        return Dask(scheduler, tls)
    for argument, value in (("scheduler", scheduler), ("tls", tls)):
        if value is not None:
            raise ValueError(f"{argument} belongs to executor 'dask', not to {name!r}")
    if options and name != "slurm":
        raise ValueError(f"options of sbatch belong to executor 'slurm', not to {name!r}")
    if name == "slurm":
        return Slurm(folder, workers, options or {})
    return Processes(workers) if workers > 1 else Serial()
