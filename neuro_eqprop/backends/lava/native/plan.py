"""Layers and weights of an equilibrium network in the form that Lava's own neurons need.

A layer that clips its drive d to low..high is a sum of relu units,

    clip(d, low, high) = low + relu(d - low) - relu(d - high)

whose messages the next layer reads with weights W and -W. This module needs NumPy and SciPy alone.
"""

# No `from __future__ import annotations`: Lava executes this file under another module name, where
# dataclasses could not resolve annotations given as text.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import hstack, issparse, vstack

Array = npt.NDArray[np.float64]
Weight = Any
"""A matrix: a NumPy array or a SciPy CSR matrix."""
SPARSE_BELOW = 0.25
"""Share of non-zero weights below which `Sparse` replaces `Dense`."""
THRESHOLD = 2.0**-8
"""Change of a rate from which a graded unit sends a message, at most; see `message_threshold`."""
MOST = 127
"""Largest integer weight of 8 bits. Lava's fixed-point synapses drop the last of their 9 bits."""
STATE_BITS, INPUT_BITS = 23, 12


@dataclass(frozen=True)
class Layer:
    """Units that clip their drive to low..high."""

    name: str
    bias: Array
    low: float
    high: float

    @property
    def size(self) -> int:
        """The number of units."""
        return int(self.bias.size)

    @property
    def corners(self) -> tuple[tuple[float, float], ...]:
        """(sign, corner) of the relu units that add up to the activation; empty for a line."""
        found = [(1.0, self.low)] if np.isfinite(self.low) else []
        return (*found, *([(-1.0, self.high)] if np.isfinite(self.high) else []))


@dataclass(frozen=True)
class Edge:
    """Weights (target units, source units) between two layers; the source may be `input`."""

    source: str
    target: str
    weight: Weight


@dataclass(frozen=True)
class Plan:
    """Layers and edges of a network of stock processes."""

    features: int
    layers: tuple[Layer, ...]
    edges: tuple[Edge, ...]
    output: str
    graded: bool
    bits: int | None = None
    reset_interval: int | None = None
    threshold: float = THRESHOLD
    input: str = "input"

    def __post_init__(self) -> None:
        if not self.graded and self.reset_interval is None:
            raise ValueError(
                "spikes of code 'rate' need reset_interval: the state of ATRLIF grows in every step"
            )
        if self.bits not in (None, 8):
            raise ValueError(f"stock synapses have 8 bits, not {self.bits}; use bits=8")
        for layer in self.layers:
            if not np.isfinite(layer.low) and np.isfinite(layer.high):
                raise ValueError(f"layer {layer.name!r} is bounded above alone: no relu does that")
            if not self.graded and (layer.low, layer.high) != (0.0, 1.0):
                raise ValueError(f"layer {layer.name!r}: spikes of code 'rate' carry 0..1 alone")

    def __getitem__(self, name: str) -> Layer:
        return next(layer for layer in self.layers if layer.name == name)


@dataclass(frozen=True)
class Scale:
    """Fixed-point scales of a plan; all zero in floating point."""

    message_exp: int = 0
    """Graded messages, input included, count 2^-message_exp."""
    state_exp: int = 0
    """States of graded units count 2^-(message_exp + state_exp)."""
    drive_exp: int = 0
    """Input of spiking units counts 2^-drive_exp; the threshold is half of a whole."""
    weight_exp: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Weights of an edge are integers times 2^-weight_exp."""


def scale_of(plan: Plan) -> Scale:
    """The finest scales whose states fit 24 bits."""
    if plan.bits is None:
        return Scale()
    finest = {
        (e.source, e.target): int(np.floor(np.log2(MOST / (abs(e.weight).max() + 2.0**-12))))
        for e in plan.edges
    }
    reach = 1 + int(np.ceil(np.log2(max(largest_drive(plan), 1.0))))
    if plan.graded:
        state = max([1, *finest.values()])
        return Scale(min(INPUT_BITS, STATE_BITS - state - reach), state, 0, finest)
    # v keeps the sum of all drives since the last reset, counted in 2^-(drive_exp + 6).
    steps = int(np.ceil(np.log2(plan.reset_interval or 1)))
    return Scale(8, 0, min(11, STATE_BITS - 6 - reach - steps), finest)


def largest_drive(plan: Plan) -> float:
    """The largest drive with rates at their bounds (relu and linear units taken as 1)."""
    found = 0.0
    for layer in plan.layers:
        total = np.abs(layer.bias).copy()
        for edge in plan.edges:
            if edge.target == layer.name:
                # Sources rarely agree: the root of the sum of squares, times four, is not reached.
                total += 4 * np.sqrt(row_sums(squares(edge.weight)))
        found = max(found, float(total.max()))
    return found


def message_threshold(edges: Sequence[Edge], entry: str) -> float:
    """The largest power of two whose errors add up to THRESHOLD or less in a unit's drive.

    A unit keeps changes below its threshold to itself. Those of n sources with weights w add up to
    about |w| thresholds in their target: a layer of 18 432 units needs a finer one than one of 128.
    """
    inner = [edge.weight for edge in edges if edge.source != entry]
    norms = [float(np.sqrt(row_sums(squares(weight)).max())) for weight in inner]
    return float(THRESHOLD * 2.0 ** -np.ceil(np.log2(max([1.0, *norms]))))


def squares(weight: Weight) -> Weight:
    """The square of each weight."""
    return weight.multiply(weight) if issparse(weight) else weight**2


def row_sums(weight: Weight) -> Array:
    """The sum of each row."""
    return np.asarray(weight.sum(axis=1), dtype=np.float64).ravel()


def expanded(plan: Plan, edge: Edge) -> Weight:
    """Weights between the relu units of two layers: rows repeat, columns carry signs."""
    weight = edge.weight
    if not plan.graded:
        return weight
    beside, below = (hstack, vstack) if issparse(weight) else (np.hstack, np.vstack)
    if edge.source != plan.input and plan[edge.source].corners:
        weight = beside([s * weight for s, _ in plan[edge.source].corners])
    return below([weight] * max(1, len(plan[edge.target].corners)))


def biases(plan: Plan, layer: Layer) -> Array:
    """Biases of the relu units of a layer, the constant part of their sources' rates included."""
    bias = layer.bias.copy()
    for edge in plan.edges:
        if edge.target == layer.name and edge.source != plan.input:
            low = plan[edge.source].low
            if np.isfinite(low) and low != 0.0:
                bias = bias + low * row_sums(edge.weight)
    return np.concatenate([bias - corner for _, corner in layer.corners] or [bias])


def integers(values: Array, exponent: int) -> npt.NDArray[np.int64]:
    """The nearest multiples of 2^-exponent, as integers."""
    return np.asarray(np.rint(np.ldexp(values, exponent)), dtype=np.int64)


def identifier(layer: str) -> str:
    """A layer's name as part of a Python name: other characters replaced."""
    return "".join(c if c.isalnum() else "_" for c in layer)


def port_name(layer: str) -> str:
    """The name of a layer's port."""
    return f"s_{identifier(layer)}"


class Row(NamedTuple):
    """A leaf process, as `processes()` lists it."""

    name: str
    kind: str
    stock: bool
    units: int
    synapses: int


def table(rows: Sequence[Row]) -> str:
    """The leaf processes as text."""
    lines = [f"{'process':24} {'class':20} {'stock':5} {'units':>7} {'synapses':>9}"]
    for row in rows:
        own = "yes" if row.stock else "no"
        lines.append(f"{row.name:24} {row.kind:20} {own:5} {row.units:7} {row.synapses:9}")
    return "\n".join(lines)


def run_config(tag: str, *, stock: bool, hardware: bool = False) -> Any:  # noqa: ANN401
    """Lava's run configuration: a simulation on the CPU or, with `hardware`, a Loihi 2 chip.

    Raises
    ------
    RuntimeError
        For a chip, if a process has no model for it, or if Intel's lava-loihi is not installed.
    """
    from lava.magma.core import run_configs

    if not hardware:
        return run_configs.Loihi2SimCfg(select_tag=tag)
    if not stock:
        raise RuntimeError(
            "this network has processes with Python models alone, which no chip runs; make it with "
            "neurons='stock', or simulate it with run_config()"
        )
    if not hasattr(run_configs, "CLoihiProcessModel"):
        raise RuntimeError(
            "a run on Loihi 2 needs lava-loihi, which Intel gives to members of its research "
            "community (INRC) and which is not installed here; simulate with run_config()"
        )
    return run_configs.Loihi2HwCfg(select_tag=tag)
