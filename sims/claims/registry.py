"""The experiments by name, and the conversion of cells to tasks.

An experiment is a function of a mapping of arguments and a seed; it returns JSON values. Increase
its version when its results change, so that stored results of older versions are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.runs.executors.task import Task, TaskResult, run_task
from sims.claims.claim import Cell, CellResult, Json, UndecidedError

Function: TypeAlias = Callable[[Mapping[str, Any], int], Json]

FUNCTIONS: Mapping[str, tuple[str, int]] = {
    "gradient": ("gradient:cosines", 1),
    "contest": ("tuned_comparison:tuned_accuracy", 2),
    "lipschitz": ("lipschitz:constants", 2),
    "accuracy": ("training:accuracies", 1),
    "annealing": ("training:annealed", 2),
    "continual": ("continual:forgetting", 2),
    "memory": ("memory:peaks", 3),
    "settling": ("settling:settling", 2),
    "landscape": ("landscape:landscape", 1),
    "kernel": ("kernel:times", 2),
    "cost": ("cost:times", 2),
    "deq": ("deq:compare_methods", 2),
    "joules": ("energy:ratios", 1),
    "grid": ("hyperparameter_grid:grid", 3),
    "stemmed": ("patch_stem_transformer:accuracies", 1),
    "algorithmic": ("algorithmic:lengths", 1),
    "autoencoder": ("autoencoder:reconstruction", 1),
    "variational": ("variational:variational", 1),
    "probe": ("probe:probe", 1),
}
"""Name to ("module:function" in `sims.claims.experiments`, version)."""


def entry(name: str) -> tuple[str, int]:
    """Location and version of a function."""
    if name not in FUNCTIONS:
        raise UnknownNameError("cell function", name, FUNCTIONS)
    return FUNCTIONS[name]


def version(name: str) -> int:
    """The version of a function."""
    return entry(name)[1]


def find(name: str) -> Function:
    """The function of that name."""
    module, _, attribute = entry(name)[0].partition(":")
    found: Function = getattr(import_module(f"sims.claims.experiments.{module}"), attribute)
    return found


def call(function: str, arguments: Mapping[str, Any], seed: int) -> Json:
    """Call the function of that name; this is the task of a cell."""
    return find(function)(arguments, seed)


def task_of(cell: Cell) -> Task:
    """The task that runs a cell."""
    arguments = {"function": cell.function, "arguments": dict(cell.arguments), "seed": cell.seed}
    return Task(f"{__name__}:{call.__name__}", arguments)


def cell_result(cell: Cell, done: TaskResult) -> CellResult:
    """The result of a cell from the result of its task."""
    error, prefix = done.error, f"{UndecidedError.__name__}: "
    if error is not None and error.startswith(prefix):
        error = f"undecided: {error.removeprefix(prefix)}"
    return CellResult(cell, done.values, error, done.seconds)


def run_cell(cell: Cell) -> CellResult:
    """Run a cell in this process, on one thread; an exception becomes the error of the result."""
    return cell_result(cell, run_task(task_of(cell)))
