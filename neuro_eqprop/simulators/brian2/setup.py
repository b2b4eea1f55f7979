"""Import and run Brian2 without leaving files, hooks or settings behind."""

from __future__ import annotations

import logging
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.common.current_folder import outside_of
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.files.write import remove
from neuro_eqprop.simulators.base import BackendError

Handle: TypeAlias = Any
"""An object of Brian2, which has no types."""

# NumPy needs no compiler, loop-invariant optimisations would change the rounding, and Ctrl-C must
# end the program and not only the run.
SETTINGS = {
    "codegen.target": "numpy",
    "codegen.string_expression_target": "numpy",
    "codegen.loop_invariant_optimisations": False,
    "core.default_float_dtype": np.float64,
    "core.stop_on_keyboard_interrupt": False,
}


def simulator() -> ModuleType:
    """The module brian2; if the user has already imported it, it is not changed."""
    found = sys.modules.get("brian2")
    if found is not None:
        return found
    hook, shown = sys.excepthook, warnings.showwarning
    interrupt = signal.getsignal(signal.SIGINT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with hidden("matplotlib", "pylab"), outside_of("brian_preferences"):
                brian2 = import_module("brian2")
        # Brian2 2.9 uses a NumPy method that NumPy 2.4 removed: an AttributeError.
        except (ImportError, AttributeError) as error:
            raise BackendError(
                f"Brian2 cannot be imported ({error}); "
                'install it with: pip install brian2 "numpy<2.4"'
            ) from error
        if warnings.showwarning is not shown:
            logging.captureWarnings(False)
    sys.excepthook = hook
    if interrupt is not None:
        signal.signal(signal.SIGINT, interrupt)
    forget_logs(brian2)
    return brian2


@contextmanager
def hidden(*names: str) -> Iterator[None]:
    """Context in which these modules cannot be imported, unless they already were.

    Brian2 imports matplotlib where it is installed, and matplotlib writes a font cache.
    """
    unseen = [name for name in names if name not in sys.modules]
    for name in unseen:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in unseen:
            del sys.modules[name]


def forget_logs(brian2: ModuleType) -> None:
    """Close and remove the log file and the script copy that importing Brian2 creates."""
    logger = brian2.BrianLogger
    if logger.file_handler is not None:
        logging.getLogger("brian2").removeHandler(logger.file_handler)
        logger.file_handler.close()
    logging.getLogger("py.warnings").removeHandler(logger.console_handler)
    for left in (logger.tmp_log, logger.tmp_script):
        if left is not None:
            remove(Path(left))
    logger.file_handler = logger.tmp_log = logger.tmp_script = None


def known_settings(brian2: ModuleType) -> dict[str, Any]:
    """The preferences of this backend that this version of Brian2 has."""
    # Brian2 2.8, the last on Python 3.10, has no `stop_on_keyboard_interrupt`.
    return {key: value for key, value in SETTINGS.items() if key in brian2.prefs}


@contextmanager
def settings(brian2: ModuleType) -> Iterator[None]:
    """Context with the preferences of this backend; those of the user are restored at exit."""
    wanted = known_settings(brian2)
    before = {key: brian2.prefs[key] for key in wanted}
    with warnings.catch_warnings():
        # Brian2 2.9 uses names that newer versions of its parser call deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            for key, value in wanted.items():
                brian2.prefs[key] = value
            yield
        finally:
            for key, value in before.items():
                brian2.prefs[key] = value


def run_network(brian2: ModuleType, network: Handle, duration: Handle) -> None:
    """Run a Brian2 network for a duration, and check the deadline every half second."""

    def report(*_: object) -> None:
        check_deadline()

    network.run(duration, report=report, report_period=0.5 * brian2.second, namespace={})
