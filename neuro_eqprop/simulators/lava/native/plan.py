"""Layers and weights of an equilibrium network for Lava's own neurons.

A layer that clips its drive d to low..high is a sum of relu units,

    clip(d, low, high) = low + relu(d - low) - relu(d - high)

whose messages the next layer reads with weights W and -W. This module needs only NumPy and SciPy.
"""

# No `from __future__ import annotations`: Lava executes this file under another module name, where
# dataclasses could not resolve annotations given as text.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack, issparse, vstack

Array = npt.NDArray[np.float64]
Weight = Any
"""A matrix: a NumPy array or a SciPy CSR matrix."""
INPUT_EXP = 24
"""Fractional bits of the input in fixed point, where no samples are given at export."""
SPARSE_BELOW = 0.25
"""Share of non-zero weights below which `Sparse` replaces `Dense`."""
THRESHOLD = 2.0**-8
"""Largest threshold on the change of a rate for a message; see `message_threshold`."""
MOST = 127
"""Largest integer weight of 8 bits. Lava's fixed-point synapses drop the last of their 9 bits."""
STATE_BITS, INPUT_BITS, LEAST_BITS = 23, 12, 8
"""Bits of a state, without the sign, and most and least fractional bits of messages."""


@dataclass(frozen=True)
class StockLayer:
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
        """(sign, corner) of the relu units that sum to the activation; empty if it is linear."""
        found = [(1.0, self.low)] if np.isfinite(self.low) else []
        return (*found, *([(-1.0, self.high)] if np.isfinite(self.high) else []))


@dataclass(frozen=True)
class StockEdge:
    """Weights (target units, source units) between two layers; the source may be `input`."""

    source: str
    target: str
    weight: Weight


@dataclass(frozen=True)
class StockPlan:
    """Layers and edges of a network of stock processes."""

    features: int
    layers: tuple[StockLayer, ...]
    edges: tuple[StockEdge, ...]
    output: str
    graded: bool
    bits: int | None = None
    reset_interval: int | None = None
    threshold: float = THRESHOLD
    input: str = "input"
    largest_drive: float | None = None
    """In fixed point, the largest drive that states hold; None estimates it for inputs in 0..1."""
    input_exp: int | None = None
    """In fixed point, `inp` takes multiples of 2^-input_exp; None means that of messages."""

    def __post_init__(self) -> None:
        if not self.graded and self.reset_interval is None:
            raise ValueError(
                "spikes of code 'rate' need reset_interval: the state of ATRLIF grows in every step"
            )
        if self.bits not in (None, 8):
            raise ValueError(f"stock synapses have 8 bits, not {self.bits}; use bits=8")
        for layer in self.layers:
            if not np.isfinite(layer.low) and np.isfinite(layer.high):
                raise ValueError(
                    f"layer {layer.name!r} is bounded only from above, which relu is not"
                )
            if not self.graded and (layer.low, layer.high) != (0.0, 1.0):
                raise ValueError(
                    f"layer {layer.name!r}: spikes of code 'rate' have rates in 0..1 only"
                )

    def __getitem__(self, name: str) -> StockLayer:
        return next(layer for layer in self.layers if layer.name == name)


@dataclass(frozen=True)
class StockScale:
    """Fixed-point scales of a plan; all zero in floating point."""

    message_exp: int = 0
    """Graded messages are in multiples of 2^-message_exp."""
    input_exp: int = 0
    """The input is in multiples of 2^-input_exp."""
    state_exp: int = 0
    """States of graded units are in multiples of 2^-(message_exp + state_exp)."""
    drive_exp: int = 0
    """Input of spiking units is in multiples of 2^-drive_exp; theta_0 is 1/2."""
    weight_exp: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Weights of an edge are integers times 2^-weight_exp."""


def scale_of(plan: StockPlan) -> StockScale:
    """The finest scales whose states fit 24 bits.

    Messages come before states: an edge of tiny weights would have states so fine that no bits
    remain for messages. Raises ValueError if fewer than LEAST_BITS would remain.
    """
    if plan.bits is None:
        return StockScale()
    finest = {
        (e.source, e.target): int(np.floor(np.log2(MOST / (abs(e.weight).max() + 2.0**-12))))
        for e in plan.edges
    }
    drive = largest_drive(plan) if plan.largest_drive is None else plan.largest_drive
    room = STATE_BITS - 1 - int(np.ceil(np.log2(max(drive, 1.0))))
    if plan.graded:
        state = max(0, min(max([1, *finest.values()]), room - INPUT_BITS))
        bits = min(INPUT_BITS, room - state)
        scale = StockScale(bits, bits, state, 0, finest)
    else:
        # v is the sum of all drives since the last reset, in multiples of 2^-(drive_exp + 6).
        steps = int(np.ceil(np.log2(plan.reset_interval or 1)))
        scale = StockScale(8, 8, 0, min(11, room - 6 - steps), finest)
        bits = scale.drive_exp + 2  # the threshold itself takes more than one step
    if bits < LEAST_BITS:
        raise ValueError(
            f"drives reach {drive:.3g}, for which 24 bits leave messages {bits} fractional bits "
            f"and {LEAST_BITS} are needed; scale the input, or use fewer steps with code 'rate'"
        )
    return scale if plan.input_exp is None else replace(scale, input_exp=plan.input_exp)


def state_exponent(plan: StockPlan, scale: StockScale) -> int:
    """k, where states and their input are in multiples of 2^-k; zero in floating point."""
    return scale.message_exp + scale.state_exp if plan.graded else scale.drive_exp


def edge_exponent(plan: StockPlan, scale: StockScale, edge: StockEdge) -> int:
    """k, where a sum of integer weights times messages of an edge is shifted left by k bits."""
    fine, unit = scale.weight_exp[edge.source, edge.target], 0
    if edge.source == plan.input:
        unit = scale.input_exp
    elif plan.graded:
        unit = scale.message_exp
    return state_exponent(plan, scale) - fine - unit


def nearest(weight: Weight, exponent: int) -> Weight:
    """8-bit integer weights, in multiples of 2^-exponent."""
    if issparse(weight):
        found = csr_matrix(weight)
        found.data = nearest(found.data, exponent).astype(np.float64)
        return found
    return np.clip(integers(weight, exponent), -MOST, MOST)


def largest_drive(plan: StockPlan, x: Array | None = None) -> float:
    """The largest drive of any unit: |bias| + 4 |w| for the inputs of each edge.

    Inputs rarely all have the same sign, so |w| is the 2-norm, not the 1-norm. With samples x
    (samples, features), the input of these replaces its estimate.
    """
    found = 0.0
    for layer in plan.layers:
        total = np.abs(layer.bias).copy()
        for edge in plan.edges:
            if edge.target != layer.name:
                continue
            if edge.source == plan.input and x is not None:
                total += np.abs(edge.weight @ x.T).max(axis=1, initial=0.0)
            else:
                total += 4 * np.sqrt(row_sums(squares(edge.weight)))
        found = max(found, float(total.max()))
    return found


def message_threshold(edges: Sequence[StockEdge], entry: str) -> float:
    """The largest power of two for which unsent changes sum to at most THRESHOLD in any drive.

    A unit does not send changes below its threshold. Those of sources with weights w sum to about
    |w| thresholds in their target, so a layer of 18 432 units needs a smaller one than 128 units.
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


def unit_count(plan: StockPlan, layer: StockLayer) -> int:
    """Number of stock neurons of a layer: a unit that clips on both sides takes two."""
    return layer.size * (max(1, len(layer.corners)) if plan.graded else 1)


def expanded(plan: StockPlan, edge: StockEdge) -> Weight:
    """Weights between the relu units of two layers: rows are repeated, columns have the signs."""
    weight = edge.weight
    if not plan.graded:
        return weight
    beside, below = (hstack, vstack) if issparse(weight) else (np.hstack, np.vstack)
    if edge.source != plan.input and plan[edge.source].corners:
        weight = beside([s * weight for s, _ in plan[edge.source].corners])
    return below([weight] * max(1, len(plan[edge.target].corners)))


def biases(plan: StockPlan, layer: StockLayer) -> Array:
    """Biases of the relu units of a layer, plus the input from the lower bounds of its sources."""
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
    """The name of a layer with all characters that a Python name cannot have replaced by _."""
    return "".join(c if c.isalnum() else "_" for c in layer)


def port_name(layer: str) -> str:
    """The name of a layer's port."""
    return f"s_{identifier(layer)}"


def changes(rows: npt.NDArray[Any], interval: int | None) -> npt.NDArray[Any]:
    """The change of each value (steps, features) since the step before, from zero in a sample."""
    found = np.diff(rows, axis=0, prepend=0 * rows[:1])
    if interval is not None:
        found[::interval] = rows[::interval]
    return found


def current_port(layer: str) -> str:
    """The name of the port for a current of a layer."""
    return f"i_{identifier(layer)}"


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
            "this network has processes with Python models only, which no chip runs; make it with "
            "neurons='stock', or simulate it with run_config()"
        )
    if not hasattr(run_configs, "CLoihiProcessModel"):
        raise RuntimeError(
            "a run on Loihi 2 needs lava-loihi, which Intel gives to members of its research "
            "community (INRC) and which is not installed here; simulate with run_config()"
        )
    return run_configs.Loihi2HwCfg(select_tag=tag)
