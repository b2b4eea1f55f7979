"""Base classes of exported networks, with a table of their processes and checks before a run.

Lava hangs when a process model raises an error, so errors are raised before a network is compiled
wherever possible.
"""

# No `from __future__ import annotations`: Lava executes this file under another module name.

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from lava.magma.core import run_configs
from lava.magma.core.model.sub.model import AbstractSubProcessModel
from lava.magma.core.process.process import AbstractProcess

from neuro_eqprop.simulators.lava.native.plan import Array, Row, run_config, table


class ExportedNetwork(AbstractProcess):  # type: ignore[misc]
    """A hierarchical process with input ports to connect, `out` and `s_<layer>`."""

    FED: tuple[str, ...] = ("inp",)
    """Names of the input ports, which must be connected."""
    ENCODED = "encode(x, steps)"
    """The call that returns their data, for error messages."""

    @property
    def tag(self) -> str:
        """The tag of a run configuration: `Loihi2SimCfg(select_tag=net.tag)`."""
        raise NotImplementedError

    def processes(self) -> tuple[Row, ...]:
        """The leaf processes: name, class, whether it is Lava's own, units, synapses."""
        raise NotImplementedError

    def __str__(self) -> str:
        return table(self.processes())

    def run_config(self, *, hardware: bool = False) -> Any:  # noqa: ANN401
        """Lava's run configuration for this network: on the CPU, or on Loihi 2."""
        stock = all(row.stock for row in self.processes())
        return run_config(self.tag, stock=stock, hardware=hardware)

    def run(self, condition: Any, run_cfg: Any = None, compile_config: Any = None) -> None:  # noqa: ANN401
        """Run this and all connected processes, like `AbstractProcess.run`.

        `run_cfg` defaults to `run_config()` in the first run.
        """
        if run_cfg is None and self.runtime is None:
            run_cfg = self.run_config()
        super().run(condition, run_cfg, compile_config)

    def compile(self, run_cfg: Any, compile_config: Any = None) -> Any:  # noqa: ANN401
        """Compile this and all connected processes.

        Raises ValueError for an unconnected port or a wrong tag, which would hang the run.
        """
        self.check_connected()
        if isinstance(run_cfg, run_configs.AbstractLoihiHWRunCfg):
            self.run_config(hardware=True)
        chosen = getattr(run_cfg, "select_tag", self.tag)
        if chosen != self.tag:
            raise ValueError(
                f"this network has process models with tag {self.tag!r}, and the run configuration "
                f"selects {chosen!r}; use run_cfg=net.run_config()"
            )
        return super().compile(run_cfg, compile_config)

    def check_connected(self) -> None:
        """Raise ValueError for an input port without a connection, which would hang the run."""
        for name in self.FED:
            if not getattr(self, name).in_connections:
                raise ValueError(
                    f"port `{name}` is not connected: connect a RingBuffer with {self.ENCODED}"
                )


class ExportedNetworkModel(AbstractSubProcessModel):  # type: ignore[misc]
    """Sub-processes of an exported network."""

    def __init__(self, proc: ExportedNetwork) -> None:
        # A run started from another process of the graph does not call `compile` of this one.
        proc.check_connected()

    def keep(self, name: str, process: AbstractProcess) -> Any:  # noqa: ANN401
        """Store a sub-process as an attribute, as Lava requires, and return it."""
        setattr(self, name, process)
        return process


def sample_rows(
    x: npt.ArrayLike, steps: int, *, features: int, reset_interval: int | None
) -> Array:
    """Samples as an array (samples, features); raises ValueError for a wrong shape or value."""
    rows = np.atleast_2d(np.asarray(x, dtype=np.float64))
    if rows.ndim != 2 or rows.shape[1] != features:
        raise ValueError(f"x has shape {np.shape(x)}; the network takes (samples, {features})")
    if not np.isfinite(rows).all():
        raise ValueError("x has values that are not finite")
    if steps < 1:
        raise ValueError(f"a sample has at least one step, not {steps}")
    if reset_interval not in (None, steps):
        raise ValueError(
            f"a sample has {steps} steps, but the network resets every {reset_interval}"
        )
    return rows


def message_rows(messages: npt.ArrayLike, steps: int) -> Array:
    """Messages as an array (units, samples * steps); raises ValueError for a wrong shape."""
    sent = np.asarray(messages, dtype=np.float64)
    if sent.ndim != 2:
        raise ValueError(f"messages have shape {sent.shape}, not (units, samples * steps)")
    if steps < 1 or sent.shape[1] % steps:
        raise ValueError(
            f"{sent.shape[1]} steps are not a multiple of the {steps} steps of a sample"
        )
    return sent


def classes(
    rates: Callable[[npt.ArrayLike, int], Array], messages: npt.ArrayLike, steps: int, size: int
) -> npt.NDArray[np.int64]:
    """Classes (samples,) from the messages (size, samples * steps) of the output."""
    if len(np.asarray(messages)) != size:
        raise ValueError(f"messages have {len(np.asarray(messages))} rows; `out` has {size} units")
    return np.asarray(rates(messages, steps).argmax(axis=1))
