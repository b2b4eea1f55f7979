"""The functions that cells name, and how one cell is carried out.

A function takes its arguments as a mapping and a seed, and returns JSON. When what a function
computes changes, its version goes up: results of the old one are then not taken for the new.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.claims.claim import Cell, Json, Outcome, UndecidedError, canonical

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
"""By name: the module in `neuro_eqprop.claims.experiments` with the function, and its version."""


def home(name: str) -> tuple[str, int]:
    """Where a function lives, and its version."""
    if name not in FUNCTIONS:
        raise UnknownNameError("cell function", name, FUNCTIONS)
    return FUNCTIONS[name]


def version(name: str) -> int:
    """The version of a function."""
    return home(name)[1]


def find(name: str) -> Function:
    """The function of that name."""
    module, _, there = home(name)[0].partition(":")
    found: Function = getattr(import_module(f"neuro_eqprop.claims.experiments.{module}"), there)
    return found


def perform(cell: Cell) -> Outcome:
    """Carry out a cell on one thread, so that its bits do not depend on its company.

    The seconds are those of the processor.
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
    except Exception as fault:  # a cell that fails must not take the others with it
        values, error = {}, f"{type(fault).__name__}: {fault}"
    return Outcome(cell, values, error, time.process_time() - began)


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread, if it is loaded: a function that needs it has loaded it by now."""
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
