"""Preparation for importing Lava into the user's process."""

from __future__ import annotations

import multiprocessing
import sys

from neuro_eqprop.simulators.base import BackendError

RUNTIME = "lava.magma.runtime.runtime"


def prepare_import() -> None:
    """Unset the start method of multiprocessing if it is "fork"; other methods raise an error.

    Lava sets "fork" when it is imported, and fails if a start method is set already.
    """
    if RUNTIME in sys.modules:
        return
    method = multiprocessing.get_start_method(allow_none=True)
    if method == "fork":
        multiprocessing.set_start_method(None, force=True)
    elif method is not None:
        raise BackendError(
            f"Lava starts its processes by 'fork', but this program has set {method!r}; import "
            f"lava first, or do not call multiprocessing.set_start_method"
        )
