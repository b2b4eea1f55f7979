"""The time that numba takes to compile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from neuro_eqprop.common.current_folder import outside_of


@dataclass(slots=True)
class Compilation:
    """Seconds of compilation in a `compile_timer` context."""

    seconds: float = 0.0


@contextmanager
def compile_timer() -> Iterator[Compilation]:
    """Measure the compile time in this context; code loaded from the cache does not count."""
    with outside_of(".numba_config.yaml"):
        from numba.core import event

    compilation = Compilation()

    def add(seconds: float) -> None:
        compilation.seconds += seconds

    with event.install_timer("numba:compile", add):
        yield compilation
