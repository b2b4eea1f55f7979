"""Base classes of exported networks, with a table of their processes and checks before a run.

Lava hangs when a process model raises an error, so errors are raised before a network is compiled
wherever possible.
"""

# No `from __future__ import annotations`: Lava executes this file under another module name.

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from lava.magma.core import run_configs
from lava.magma.core.model.sub.model import AbstractSubProcessModel
from lava.magma.core.process.ports.ports import OutPort
from lava.magma.core.process.process import AbstractProcess
from lava.proc.io.sink import RingBuffer

from neuro_eqprop.simulators.lava.native.plan import Array, Row, identifier, run_config, table
from neuro_eqprop.simulators.lava.native.watch import SILENCE, end_networks_at_exit, run_watched

SOURCE_BITS = 31
"""Bits of an integer of Lava's sources in fixed point, without its sign."""
DVS_FIELDS = 4
"""Fields of an event of a camera: time, x, y, polarity."""


class Events(NamedTuple):
    """Messages of a port: the step (from zero), the unit and the value of each."""

    t: npt.NDArray[np.int64]
    unit: npt.NDArray[np.int64]
    value: Array


class EventReader:
    """Keeps the messages of a port in a stock `RingBuffer`; make it before the run."""

    def __init__(self, port: OutPort, steps: int) -> None:
        self.sink = RingBuffer(shape=port.shape, buffer=steps)
        port.connect(self.sink.a_in)

    def read(self) -> Events:
        """The messages so far, in the order of their steps; call it before `stop()`."""
        data = self.sink.data.get()
        t, unit = np.nonzero(data.T)
        return Events(t, unit, data[unit, t])


class ExportedNetwork(AbstractProcess):  # type: ignore[misc]
    """A hierarchical process with input ports to connect, `out` and `s_<layer>`."""

    FED: tuple[str, ...] = ("inp",)
    """Names of the input ports, which must be connected."""
    ENCODED = "encode(x, steps)"
    """The call that returns their data, for error messages."""
    budget_on: Callable[[str], Any] | None = None
    """Its budget on a chip, set by `to_lava`."""

    @property
    def tag(self) -> str:
        """The tag of a run configuration: `Loihi2SimCfg(select_tag=net.tag)`."""
        raise NotImplementedError

    @property
    def fixed(self) -> bool:
        """Whether it computes in fixed point."""
        return self.tag == "fixed_pt"

    def processes(self) -> tuple[Row, ...]:
        """The leaf processes: name, class, whether it is Lava's own, units, synapses."""
        raise NotImplementedError

    def __str__(self) -> str:
        return table(self.processes())

    def __enter__(self) -> Any:  # noqa: ANN401
        return self

    def run_config(self, *, hardware: bool = False) -> Any:  # noqa: ANN401
        """Lava's run configuration for this network: on the CPU, or on Loihi 2."""
        stock = all(row.stock for row in self.processes())
        return run_config(self.tag, stock=stock, hardware=hardware)

    def run(
        self,
        condition: Any,  # noqa: ANN401
        run_cfg: Any = None,  # noqa: ANN401
        compile_config: Any = None,  # noqa: ANN401
        *,
        timeout: float | None = SILENCE,
    ) -> None:
        """Run this and all connected processes, like `AbstractProcess.run`.

        Parameters
        ----------
        condition : RunSteps or RunContinuous
            How long to run.
        run_cfg : RunConfig, optional
            Defaults to `run_config()` in the first run.
        compile_config : dict, optional
            Options of Lava's compiler.
        timeout : float, optional
            Seconds without a step after which the run is ended with a `TimeoutError` that names the
            process that stands still; None waits for ever. A process that fails ends the run at
            once, with a `RuntimeError`.
        """
        if run_cfg is None and self.runtime is None:
            run_cfg = self.run_config()
        run_watched(self, condition, run_cfg, compile_config, timeout=timeout)

    def compile(self, run_cfg: Any, compile_config: Any = None) -> Any:  # noqa: ANN401
        """Compile this and all connected processes; they can be compiled again after an error."""
        self.check_connected()
        self.check_config(run_cfg)
        return super().compile(run_cfg, compile_config)

    def check_connected(self) -> None:
        """Raise ValueError for an input port without a connection, which would hang the run."""
        for name in self.FED:
            if not getattr(self, name).in_connections:
                raise ValueError(
                    f"port `{name}` is not connected: connect a RingBuffer with {self.ENCODED}"
                )

    def check_config(self, run_cfg: Any) -> None:  # noqa: ANN401
        """Raise an error for a run configuration that has no right process models."""
        if isinstance(run_cfg, run_configs.AbstractLoihiHWRunCfg):
            self.run_config(hardware=True)
        chosen = getattr(run_cfg, "select_tag", self.tag)
        if chosen != self.tag:
            raise ValueError(
                f"this network has process models with tag {self.tag!r}, and the run configuration "
                f"selects {chosen!r}; use run_cfg=net.run_config()"
            )

    def events(self, layer: str = "out", *, steps: int) -> EventReader:
        """Connect a stock reader to the port of a layer; after the run, `read()` gives its events.

        Parameters
        ----------
        layer : str
            The name of a layer, or "out".
        steps : int
            Steps that are kept: all of the run, or its last.
        """
        port = getattr(self, "out" if layer == "out" else f"s_{identifier(layer)}", None)
        if port is None:
            raise ValueError(f"there is no layer {layer!r}; print(net) lists them")
        return EventReader(port, steps)

    def budget(self, profile: str = "loihi2") -> Any:  # noqa: ANN401
        """What each layer needs on a chip beside the published limits, see `SpikingModel.budget`.

        Raises
        ------
        RuntimeError
            In an exported package, which holds no profiles of chips.
        """
        if self.budget_on is None:
            raise RuntimeError(
                "a budget needs neuro_eqprop: use SpikingModel.to_lava(...).budget()"
            )
        return self.budget_on(profile)


class ExportedNetworkModel(AbstractSubProcessModel):  # type: ignore[misc]
    """Sub-processes of an exported network."""

    def __init__(self, proc: ExportedNetwork) -> None:
        # Whichever process of the graph starts the run, Lava comes here before it starts any. A run
        # that the network itself starts is checked before it is compiled.
        end_networks_at_exit()
        self.owner = proc.name
        proc.check_connected()
        proc.check_config(given_run_config())

    def keep(self, name: str, process: AbstractProcess, label: str = "") -> Any:  # noqa: ANN401
        """Store a sub-process as an attribute, as Lava requires, and return it.

        Errors call it by its label, after the name of the network.
        """
        process.name = f"{self.owner}.{label or name}"
        setattr(self, name, process)
        return process


def given_run_config() -> Any:  # noqa: ANN401
    """The run configuration that Lava compiles with now, or None.

    The compiler does not pass it to the models of hierarchical processes, so it is read from the
    compiler's frame.
    """
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "_expand_sub_proc_model":
            return frame.f_locals.get("run_cfg")
    return None


class StreamedNetwork(ExportedNetwork):
    """A network for inference: samples in, messages of the output out."""

    ranges_of: Callable[..., Any] | None = None
    """What `check` calls, set by `to_lava`."""
    inp_scale: float
    """The value of one unit of `inp`."""
    out_scale: float
    """The value of one unit of a message of `out`."""

    @property
    def features(self) -> int:
        """The length of a sample."""
        return int(self._plan.features)

    @property
    def reset_interval(self) -> int | None:
        """Steps of a sample, after which all states are reset; None never resets."""
        steps: int | None = self._plan.reset_interval
        return steps

    @property
    def graded(self) -> bool:
        """Whether the output sends graded messages."""
        return bool(self._plan.graded)

    @property
    def _plan(self) -> Any:  # noqa: ANN401
        return vars(self)["plan"]

    def encode(self, x: npt.ArrayLike, steps: int) -> npt.NDArray[Any]:
        """Samples (samples, features) as the data (features, samples * steps) of a RingBuffer.

        In fixed point they are integer multiples of `inp_scale`. Raises ValueError for samples that
        do not fit.
        """
        rows = sample_rows(x, steps, features=self.features, reset_interval=self.reset_interval)
        return self.sent(np.repeat(self.rounded(rows), steps, axis=0)).T

    def encode_events(
        self, events: npt.ArrayLike, steps: int, *, shape: Sequence[int], step_time: float = 1.0
    ) -> npt.NDArray[Any]:
        """Events of a DVS camera as the data (features, steps) of a RingBuffer.

        Parameters
        ----------
        events : array (events, 4)
            Time, x, y and polarity (0 or -1 for darker, 1 for brighter) of each event; or a
            structured array with fields t, x, y and p.
        steps : int
            Steps of the recording.
        shape : (height, width) or (2, height, width)
            An input that is the sum of the polarities (-1 or 1), or one for each polarity (first
            the darker), counted in every step.
        step_time : float
            Duration of a step in the unit of the times.
        """
        given = np.asarray(events)
        if given.dtype.names is not None:
            given = np.stack([given[name] for name in ("t", "x", "y", "p")], axis=-1)
        if given.size and given.shape[1:] != (DVS_FIELDS,):
            raise ValueError(f"events have shape {given.shape}, not (events, {DVS_FIELDS})")
        given = given.astype(np.float64).reshape(-1, DVS_FIELDS)
        high, wide = shape[-2:]
        if int(np.prod(shape)) != self.features or tuple(shape[:-2]) not in ((), (1,), (2,)):
            raise ValueError(f"an image of shape {tuple(shape)} is no input of {self.features}")
        step = np.floor(given[:, 0] / step_time).astype(np.int64)
        x, y, bright = given[:, 1].astype(int), given[:, 2].astype(int), given[:, 3] > 0
        inside = (x >= 0) & (x < wide) & (y >= 0) & (y < high) & (step >= 0) & (step < steps)
        if not inside.all():
            raise ValueError(
                f"event {np.flatnonzero(~inside)[0]} lies outside {wide} x {high} pixels and "
                f"{steps} steps of {step_time:g}"
            )
        frames = np.zeros((steps, self.features))
        channels = tuple(shape[:-2]) == (2,)
        pixel = y * wide + x + (bright * high * wide if channels else 0)
        np.add.at(frames, (step, pixel), 1.0 if channels else np.where(bright, 1.0, -1.0))
        return self.sent(self.rounded(frames)).T

    def check(self, x: npt.ArrayLike, steps: int | None = None) -> Any:  # noqa: ANN401
        """The range of each layer in 24 bits for samples x, without a run on Lava.

        Parameters
        ----------
        x : array (samples, features)
            The samples.
        steps : int, optional
            Steps of a sample; the default is `reset_interval`.

        Returns
        -------
        tuple of LayerRange
            For each layer the largest value reached, the largest that the weights allow, and how
            often a value wrapped around or saturated.

        Raises
        ------
        ValueError
            In floating point, which has no such limits.
        RuntimeError
            In an exported package.
        """
        if not self.fixed:
            raise ValueError("floating point neither wraps nor saturates; use bits=8")
        if self.ranges_of is None:
            raise RuntimeError("ranges need neuro_eqprop: use SpikingModel.to_lava(...).check(x)")
        length = self.reset_interval if steps is None else steps
        if length is None:
            raise ValueError("say how many steps a sample has: check(x, steps)")
        rows = sample_rows(x, length, features=self.features, reset_interval=self.reset_interval)
        return self.ranges_of(self, rows, length)

    def rounded(self, rows: Array) -> npt.NDArray[Any]:
        """Values of the input in units of `inp`: integers in fixed point."""
        return fixed_rows(rows, self.inp_scale) if self.fixed else rows / self.inp_scale

    def sent(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What a source sends in each step (steps, features) for these values."""
        return rows

    def rates(self, messages: npt.ArrayLike, steps: int) -> Array:
        """Rates (samples, units) from messages (units, samples * steps) of a port."""
        sent = message_rows(messages, steps)
        samples = sent.reshape(len(sent), -1, steps)
        if not self.graded:
            return np.asarray(samples[..., steps // 4 :].mean(axis=2).T)
        if self.reset_interval is None:  # states continue from the previous sample
            state = sent.cumsum(axis=1).reshape(samples.shape)
        else:
            state = samples.cumsum(axis=2)
        return np.asarray(self.out_scale * state[..., -max(1, steps // 4) :].mean(axis=2).T)

    def decode(self, messages: npt.ArrayLike, steps: int) -> npt.NDArray[np.int64]:
        """Predicted classes (samples,) from the messages (classes, samples * steps) of `out`."""
        rows = len(np.asarray(messages))
        if rows != self.out.shape[0]:
            raise ValueError(f"messages have {rows} rows; `out` has {self.out.shape[0]} units")
        return np.asarray(self.scores(message_rows(messages, steps), steps).argmax(axis=1))

    def scores(self, messages: Array, steps: int) -> Array:
        """A score (samples, classes) of each class, from the messages of the output."""
        return self.rates(messages, steps)


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


def fixed_rows(rows: Array, scale: float) -> npt.NDArray[np.int64]:
    """The nearest integer multiples of the scale, which Lava's sources send as 32 bits."""
    whole = np.rint(rows / scale)
    most = float(np.abs(whole).max(initial=0.0))
    if most >= 2.0**SOURCE_BITS:
        raise ValueError(
            f"x reaches {np.abs(rows).max():g}, and in units of {scale:g} Lava's 32-bit sources "
            f"hold values below {scale * 2.0**SOURCE_BITS:g}; give samples at export, "
            f"to_lava(inputs=x), or scale them"
        )
    return whole.astype(np.int64)


def message_rows(messages: npt.ArrayLike, steps: int) -> Array:
    """Messages as an array (units, samples * steps); raises ValueError for a wrong shape."""
    sent = np.asarray(messages, dtype=np.float64)
    if sent.ndim != 2:
        raise ValueError(f"messages have shape {sent.shape}, not (units, samples * steps)")
    if steps < 1 or sent.shape[1] % steps:
        raise ValueError(
            f"{sent.shape[1]} steps are not a multiple of the {steps} steps of a sample"
        )
    if not np.isfinite(sent).all():
        raise ValueError("messages have values that are not finite")
    return sent
