"""The functions of cells by name, and how a cell runs.

A function takes a mapping of arguments and a seed, and returns JSON. Increase its version when its
results change: stored results of older versions are then ignored.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.claims.claim import Cell, CellResult, Json, UndecidedError, canonical

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
    "probe": ("probe:probe", 1),
}
"""By name: "module:function" in `neuro_eqprop.claims.experiments`, and the version."""


def entry(name: str) -> tuple[str, int]:
    """Module and version of a function."""
    if name not in FUNCTIONS:
        raise UnknownNameError("cell function", name, FUNCTIONS)
    return FUNCTIONS[name]


def version(name: str) -> int:
    """The version of a function."""
    return entry(name)[1]


def find(name: str) -> Function:
    """The function of that name."""
    module, _, there = entry(name)[0].partition(":")
    found: Function = getattr(import_module(f"neuro_eqprop.claims.experiments.{module}"), there)
    return found


def run_cell(cell: Cell) -> CellResult:
    """Run a cell on one thread, so that its result does not depend on other cells.

    Exceptions become the error of the result.
    """
    from threadpoolctl import threadpool_limits

    began, values, error = time.process_time(), Json(), None
    try:
        function = find(cell.function)
        with threadpool_limits(limits=1), one_thread():
            values = function(cell.arguments, cell.seed)
            canonical(values)
    except UndecidedError as reason:
        values, error = {}, f"undecided: {reason}"
    except Exception as fault:  # a failing cell must not stop the others
        values, error = {}, f"{type(fault).__name__}: {fault}"
    return CellResult(cell, values, error, time.process_time() - began)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread, if it is imported (the function has done so if it needs it)."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
