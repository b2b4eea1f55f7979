"""Import of Lava into the user's own process."""

from __future__ import annotations

import multiprocessing
import sys

from neuro_eqprop.backends.base import BackendError

RUNTIME = "lava.magma.runtime.runtime"


def prepare_import() -> None:
    """Let Lava set the start method of multiprocessing, which it does when it is imported.

    Lava sets "fork" and fails if a start method is set already, even the same one.
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
