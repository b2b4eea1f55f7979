"""What has to be so before Lava is imported into the user's process, and when that process ends."""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import multiprocessing.util  # its own handler is registered on import; ours must run before it
import sys
from functools import cache
from importlib.util import find_spec
from typing import Any

from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava.install import COMMAND, make_importable
from neuro_eqprop.simulators.lava.native.watch import end_runtime

RUNTIME = "lava.magma.runtime.runtime"


def prepare_import() -> None:
    """Make Lava importable in this process, and end its child processes with the program.

    Every function that imports Lava calls this first. Raises `BackendError` if Lava is not
    installed, or if the program starts its processes in a way that Lava does not allow.
    """
    if find_spec("lava") is None:
        raise BackendError(f"Lava is not installed; `{COMMAND}` installs it")
    make_importable()
    end_networks_at_exit()
    if RUNTIME in sys.modules:
        return
    # Lava sets "fork" when it is imported, and fails if a start method is set already. The first
    # queue or process of a program sets the default, which is no choice of the user.
    default = multiprocessing.get_all_start_methods()[0]
    method = multiprocessing.get_start_method(allow_none=True)
    if method in ("fork", default):
        multiprocessing.set_start_method(None, force=True)
    elif method is not None:
        raise BackendError(
            f"Lava starts its processes by 'fork', but this program has set {method!r}; import "
            f"lava first, or do not call multiprocessing.set_start_method"
        )


@cache
def end_networks_at_exit() -> None:
    """Register `end_networks` for the end of the program, once."""
    atexit.register(end_networks)


def end_networks() -> None:
    """Stop the Lava networks of this process that still run, and kill what does not stop.

    Without this a program that ends between `run` and `stop`, by an error or by `sys.exit`, waits
    for ever: multiprocessing joins the processes of the network, and they wait for a message.
    """
    for runtime in runtimes():
        end_runtime(runtime, stop_first=True)


def runtimes() -> list[Any]:
    """Every runtime of Lava in this process whose processes were started."""
    module = sys.modules.get(RUNTIME)
    if module is None:
        return []
    return [
        thing
        for thing in gc.get_objects()
        if type(thing) is module.Runtime and thing._messaging_infrastructure is not None
    ]
