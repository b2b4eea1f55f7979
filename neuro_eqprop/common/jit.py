"""Compile loops with numba: inlined into the caller, or separately with a cache on disk.

Compiled code does not hold the interpreter lock, so that other threads run meanwhile and a signal
can end the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

# Without wrappers for Python and C callers and without allocation: compiles a sixth faster.
LEAF: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}

# Sums may be reordered, as in any matrix product; NaN and inf are kept.
REORDERED = {"reassoc", "contract", "nsz", "arcp"}


def inner(function: Function) -> Function:
    """Compile as a part of the caller; operations are neither reordered nor fused."""
    return cast(Function, numba.njit(error_model="numpy", nogil=True)(function))


def leaf(function: Function) -> Function:
    """As `inner`, for a function that allocates nothing and that only compiled code calls."""
    return cast(Function, numba.njit(error_model="numpy", **LEAF)(function))


def inner_reordered(function: Function) -> Function:
    """As `inner`, but sums may be reordered."""
    return cast(Function, numba.njit(error_model="numpy", fastmath=REORDERED, nogil=True)(function))


def outer(function: Function, **options: Any) -> Function:  # noqa: ANN401
    """Compile on the first call, and cache the machine code on disk if a folder is writable."""
    options = {"error_model": "numpy", "nogil": True, **options}
    try:
        return cast(Function, numba.njit(cache=True, **options)(function))
    except RuntimeError:
        return cast(Function, numba.njit(**options)(function))


def outer_leaf(function: Function) -> Function:
    """As `outer`, for a function that allocates nothing, which compiles faster."""
    return outer(function, no_cfunc_wrapper=True, _nrt=False)
