"""What has to be so before Lava is imported into the user's process."""

from __future__ import annotations

import multiprocessing
import sys
from importlib.util import find_spec

from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava.install import COMMAND
from neuro_eqprop.simulators.lava.native.watch import RUNTIME, end_networks_at_exit


def prepare_import() -> None:
    """Let Lava be imported into this process, and end its child processes with the program.

    Every function that imports Lava calls this first. Raises `BackendError` if Lava is not
    installed, or if the program starts its processes in a way that Lava does not allow.
    """
    if find_spec("lava") is None:
        raise BackendError(f"Lava is not installed; `{COMMAND}` installs it")
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
