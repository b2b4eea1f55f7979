"""How loops are compiled: as parts of what calls them, or by themselves and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be taken in another order, as in any product of matrices; what is not finite stays so.
REORDERED = {"reassoc", "contract", "nsz", "arcp"}


def inner(function: Function) -> Function:
    """Compile as a part of what calls it, every operation as it stands."""
    return cast(Function, numba.njit(error_model="numpy")(function))


def inner_reordered(function: Function) -> Function:
    """The same, and sums may be taken in another order."""
    return cast(Function, numba.njit(error_model="numpy", fastmath=REORDERED)(function))


def outer(function: Function) -> Function:
    """Compile when first called, and keep the machine code on disk where there is a place."""
    try:
        return cast(Function, numba.njit(error_model="numpy", cache=True)(function))
    except RuntimeError:
        return inner(function)
