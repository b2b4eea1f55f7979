"""Compile loops with numba: inlined into the caller, or separately with a cache on disk.

Compiled code does not hold the interpreter lock, so that other threads run meanwhile and a signal
can end the program.

Code on disk is optional: files of the cache that are damaged are made anew, and where none can be
written, nothing is kept.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeVar, cast

from neuro_eqprop.common.current_folder import outside_of

with outside_of(".numba_config.yaml"):
    import numba
    from numba.core import config
    from numba.extending import intrinsic

# Numba reads this file of the current folder before each compilation.
config._config_fname = os.devnull
types = numba.types
NUMBA: Any = numba.core
"""Parts of Numba that have no types."""

__all__ = [
    "inlined_leaf",
    "inner",
    "inner_reordered",
    "intrinsic",
    "leaf",
    "outer",
    "outer_leaf",
    "types",
]

Function = TypeVar("Function", bound=Callable[..., Any])


def supported(**options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Those private options that this Numba has; code is slower without them, and the same."""
    known = getattr(getattr(NUMBA, "cpu", None), "CPUTargetOptions", None)
    return {name: value for name, value in options.items() if hasattr(known, name)}


# Without wrappers for Python and C callers and without allocation: compiles a sixth faster.
LEAF = supported(no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
INLINED = supported(forceinline=True)

# Sums may be reordered, as in any matrix product; NaN and inf are kept.
REORDERED = {"reassoc", "contract", "nsz", "arcp"}


def inner(function: Function) -> Function:
    """Compile as a part of the caller; operations are neither reordered nor fused."""
    return cast(Function, numba.njit(error_model="numpy", nogil=True)(function))


def leaf(function: Function) -> Function:
    """As `inner`, for a function that allocates nothing and that only compiled code calls."""
    return cast(Function, numba.njit(error_model="numpy", **LEAF)(function))


def inlined_leaf(function: Function) -> Function:
    """As `leaf`, and always inlined."""
    return cast(Function, numba.njit(error_model="numpy", **INLINED, **LEAF)(function))


def inner_reordered(function: Function) -> Function:
    """As `inner`, but sums may be reordered."""
    return cast(Function, numba.njit(error_model="numpy", fastmath=REORDERED, nogil=True)(function))


def outer(function: Function, **options: Any) -> Function:  # noqa: ANN401
    """Compile on the first call, and cache the machine code on disk if a folder is writable."""
    options = {"error_model": "numpy", "nogil": True, **options}
    made = numba.njit(**options)(function)
    with suppress(RuntimeError):  # no folder is writable
        made._cache = VerifiedCache(function)
    return cast(Function, made)


def outer_leaf(function: Function) -> Function:
    """As `outer`, for a function that allocates nothing, which compiles faster."""
    return outer(function, **supported(no_cfunc_wrapper=True, _nrt=False))


class VerifiedFiles(NUMBA.caching.IndexDataCacheFile):  # type: ignore[misc]
    """Machine code on disk, a file for each signature, which begins with the digest of its content.

    Numba's own files have no digest, and code that was damaged would run.
    """

    def path(self, key: Any) -> str:  # noqa: ANN401
        """The file of a signature."""
        number = int(sha256(repr(key).encode()).hexdigest()[:15], 16)
        return cast(str, self._data_path(self._data_name(number)))

    def save(self, key: Any, data: Any) -> None:  # noqa: ANN401
        """Write the code of a signature."""
        content = NUMBA.serialize.dumps((self._version, self._source_stamp, key, data))
        with self._open_for_write(self.path(key)) as file:
            file.write(sha256(content).digest() + content)

    def load(self, key: Any) -> Any:  # noqa: ANN401
        """The code of a signature; None if there is none, or a damaged one."""
        try:
            with open(self.path(key), "rb") as file:
                stored = file.read()
        except OSError:
            return None
        digest, content = stored[:32], stored[32:]
        if sha256(content).digest() != digest:
            return None
        # A file of the own cache, as Numba reads it; see docs/explanation/threats.md.
        *known, data = pickle.loads(content)  # nosec B301
        return data if known == [self._version, self._source_stamp, key] else None


class VerifiedCache(NUMBA.caching.FunctionCache):  # type: ignore[misc]
    """The machine code of a function on disk; where it cannot be written, none is kept."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp, name = self._impl.locator.get_source_stamp(), self._impl.filename_base
        self._cache_file = VerifiedFiles(self._cache_path, name, stamp)

    def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ANN401
        """Write the code of a signature, if that is possible."""
        with suppress(OSError):
            super().save_overload(sig, data)
