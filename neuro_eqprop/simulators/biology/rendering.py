"""The equations of `equations`, compiled.

The text of the equations becomes the source of one function that advances all neurons of all
samples by a number of dt: a forward Euler step of every neuron, its threshold and reset, then the
spikes that arrive. Numba compiles it, and keeps the machine code on disk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.common.jit import inner, outer
from neuro_eqprop.simulators.biology.equations import Equations

INPUTS = ("outside", "pull", "own")
"""Constants of each neuron."""
NEVER = -(2**40)
"""The dt of the last spike of a neuron that has not fired."""

TEMPLATE = """
def {name}(state, inputs, poisson, beta, drawn, clock, constants, tables, wiring, fired, last):
    now, ticks, period, dt = clock
{constants}
    drives, currents, voltages = tables
    spans, pointers, targets, weights, history = wiring
    rows = history.shape[1]
    samples, size = state.shape[1], state.shape[2]
    for sample in range(samples):
        for tick in range(ticks):
            time = now + tick
            row = time % rows
            for n in range(size):
                outside = inputs[0, sample, n]
                if poisson[n]:
                    chance = drawn[tick, sample, n]
                    spike = chance < clip(outside, 0.0, 1.0) * rmax * dt
                    state[{received}, sample, n] += dt * (rmax * outside)
                    if spike:
                        state[{sent}, sample, n] += 1.0
                    fired[tick, sample, n] = spike
                    history[sample, row, n] = spike
                    continue
                pull = inputs[1, sample, n]
                own = inputs[2, sample, n]
{load}
                ready = time - last[sample, n] >= period
{definitions}
{derivatives}
{update}
                spike = ready and ({threshold})
                if spike:
                    last[sample, n] = time
{reset}
{limits}
{store}
                fired[tick, sample, n] = spike
                history[sample, row, n] = spike
            for p in range(spans.shape[0]):
                first, stop, delay, pointer, into = spans[p]
                if time < delay:
                    continue
                row = (time - delay) % rows
                for source in range(first, stop):
                    if history[sample, row, source]:
                        start = pointers[pointer + source - first]
                        for k in range(start, pointers[pointer + source - first + 1]):
                            state[into, sample, targets[k]] += weights[k]
"""


@inner
def clip(value, low, high):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """A number between two limits."""
    return min(max(value, low), high)


@inner
def interpolate(known, values, x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Piecewise linear interpolation, constant beyond the ends, as `numpy.interp`."""
    if x <= known[0]:
        return values[0]
    if x >= known[-1]:
        return values[-1]
    low, high = 0, len(known) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if known[middle] <= x:
            low = middle
        else:
            high = middle
    slope = (values[high] - values[low]) / (known[high] - known[low])
    return slope * (x - known[low]) + values[low]


def variables(equations: Equations) -> tuple[str, ...]:
    """The variables of the state, in their order."""
    return (*(each.variable for each in equations.derivatives), "sent")


def source_code(equations: Equations) -> str:
    """The source of the function, without its name."""
    known = variables(equations)
    indent = "\n" + 16 * " "

    def lines(parts: Sequence[str]) -> str:
        return "".join(f"{indent}{part}" for part in parts).lstrip("\n")

    names = list(equations.constants)
    constants = "\n".join(f"    {name} = constants[{k}]" for k, name in enumerate(names))
    load = [f"{name} = state[{k}, sample, n]" for k, name in enumerate(known)]
    if equations.noisy:
        load.append("eta = drawn[tick, sample, n]")
    source = TEMPLATE.format(
        name="{name}",
        constants=constants,
        received=known.index("received"),
        sent=known.index("sent"),
        load=lines(load),
        definitions=lines([f"{name} = {text}" for name, text, _ in equations.definitions]),
        derivatives=lines([f"d_{d.variable} = {d.expression}" for d in equations.derivatives]),
        update=lines(
            [
                f"{d.variable} += dt * d_{d.variable}" + (" if ready else 0.0" if d.held else "")
                for d in equations.derivatives
            ]
        ),
        threshold=equations.threshold,
        reset=lines([f"    {statement}" for statement in equations.reset]),
        limits=lines([equations.limits] if equations.limits else []),
        store=lines([f"state[{k}, sample, n] = {name}" for k, name in enumerate(known)]),
    )
    source = source.replace("mean_voltage(", "interpolate(drives, voltages, ")
    return source.replace("gain(", "interpolate(drives, currents, ")


@cache
def compiled(source: str) -> Callable[..., None]:
    """The compiled function of a source, under a name of its own in the cache on disk."""
    name = f"advance_{sha256(source.encode()).hexdigest()[:16]}"
    code = compile(source.replace("{name}", name), __file__, "exec")
    scope: dict[str, Any] = {
        "clip": clip,
        "exp": math.exp,
        "sqrt": math.sqrt,
        "interpolate": interpolate,
        "__name__": __name__,
    }
    exec(code, scope)  # nosec B102: the equations of this package
    return cast(Callable[..., None], outer(scope[name]))


@dataclass(frozen=True, slots=True)
class Wires:
    """The synapses of one projection between ranges of neurons."""

    source: slice
    target: slice
    weight: Array
    """(targets, sources), as a spike adds it."""
    delay: int
    """In dt."""
    into: str
    """The variable that it changes."""


@dataclass(slots=True)
class CompiledCells:
    """The neurons of all populations and samples, which advance together."""

    equations: Equations
    inputs: Array
    """(INPUTS, samples, neurons)."""
    poisson: npt.NDArray[np.bool_]
    """Which neurons fire as Poisson processes."""
    wires: Sequence[Wires]
    dt: float
    period: int
    """Refractory period in dt."""
    beta: float = 0.0
    now: int = 0
    state: Array = field(init=False)
    """(variables, samples, neurons)."""
    fired: npt.NDArray[np.bool_] = field(init=False)
    """The spikes of the last `advance` (dt, samples, neurons)."""
    _last: Ints = field(init=False)
    _wiring: tuple[Any, ...] = field(init=False)
    _advance: Callable[..., None] = field(init=False)

    def __post_init__(self) -> None:
        _, samples, size = self.inputs.shape
        known = variables(self.equations)
        self.state = np.zeros((len(known), samples, size))
        values = {name: each.value for name, each in self.equations.constants.items()}
        for name, text in self.equations.initial:
            scope = {**values, **{other: self.state[known.index(other), 0, 0] for other in known}}
            resting = eval(text, {"__builtins__": {}}, scope)  # nosec B307: as above
            self.state[known.index(name)] = np.where(self.poisson, 0.0, resting)
        self._last = np.full((samples, size), NEVER)
        self._wiring = self._connect(samples, size)
        self._advance = compiled(source_code(self.equations))
        self.fired = np.zeros((0, samples, size), dtype=np.bool_)

    def _connect(self, samples: int, size: int) -> tuple[Any, ...]:
        """The synapses, source by source, and the spikes that are on their way."""
        known, spans = variables(self.equations), []
        pointers, targets, weights = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
        place = synapses = 0
        for wires in self.wires:
            source, target = np.nonzero(wires.weight.T)
            into = known.index(wires.into)
            spans.append((wires.source.start, wires.source.stop, wires.delay, place, into))
            count = np.bincount(source, minlength=wires.source.stop - wires.source.start)
            pointers.append(synapses + np.r_[0, np.cumsum(count)])
            targets.append(wires.target.start + target)
            weights.append(wires.weight.T[source, target])
            place, synapses = place + len(count) + 1, synapses + len(source)
        rows = 1 + max((wires.delay for wires in self.wires), default=0)
        return (
            np.array(spans, dtype=np.int64).reshape(-1, 5),
            np.concatenate(pointers),
            np.concatenate(targets),
            np.concatenate(weights),
            np.zeros((samples, rows, size), dtype=np.bool_),
        )

    def advance(self, ticks: int, drawn: Array | None = None) -> None:
        """Advance by a number of dt; `drawn` (dt, samples, neurons) are their random numbers."""
        _, samples, size = self.inputs.shape
        curve = self.equations.curve
        empty = np.zeros(1)
        tables = (
            (empty, empty, empty) if curve is None else (curve.drives, curve.inputs, curve.voltages)
        )
        self.fired = np.zeros((ticks, samples, size), dtype=np.bool_)
        self._advance(
            self.state,
            self.inputs,
            self.poisson,
            float(self.beta),
            np.zeros((0, 0, 0)) if drawn is None else drawn,
            (self.now, ticks, self.period, self.dt),
            np.array([each.value for each in self.equations.constants.values()]),
            tables,
            self._wiring,
            self.fired,
            self._last,
        )
        self.now += ticks

    @property
    def ready(self) -> npt.NDArray[np.bool_]:
        """Which neurons are not refractory (samples, neurons)."""
        return np.asarray(self.now - 1 - self._last >= self.period)

    def __getitem__(self, name: str) -> Array:
        """A variable (samples, neurons), which may be changed."""
        return np.asarray(self.state[variables(self.equations).index(name)])
