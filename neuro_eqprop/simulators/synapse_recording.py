"""Histories of single synapses, and weights before and after a run.

With r the activity traces of the presynaptic and postsynaptic unit, at every step:

    product  p = r_post r_pre
    tag      m = m + contrast[phase] / M p       inside the window, the last M steps of a phase
    weight   w = w + rate m                      at the commit that ends an episode, then m = 0

Values are those at the end of a step. The commit belongs to the last step of its episode, which
shows the new weight and the tag before its reset. The three-phase contrast is that of Laborieux et
al. 2021, the local rule that of Scellier & Bengio 2017.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints, UnknownNameError

Synapse: TypeAlias = tuple[int, int]
"""Target unit and source unit: row and column of the weight."""

HEBBIAN = "hebbian"
"""Variable of a connection that records the `COLUMNS` of its synapses."""
COLUMNS = ("pre", "post", "product", "tag", "weight")
DEFAULT_COUNT = 8
"""Number of synapses of a connection to record when none are named."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of a connection before a run and, if the run learns, after it."""

    before: Array
    after: Array | None = None


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Weights of all connections at chosen moments of a run that learns."""

    sample: Ints
    """Number of samples learned before each of them."""
    weights: Mapping[str, Array]
    """By connection, arrays (moments, target units, source units)."""

    def __len__(self) -> int:
        return len(self.sample)


NO_SNAPSHOTS = Snapshots(np.zeros(0, dtype=np.int64), {})


@dataclass(frozen=True, slots=True)
class SynapseLog:
    """Histories of chosen synapses of a connection: arrays (steps, synapses)."""

    synapses: tuple[Synapse, ...]
    pre: Array
    post: Array
    product: Array
    tag: Array
    weight: Array

    def part(self, rows: slice) -> SynapseLog:
        """The log restricted to some steps."""
        return SynapseLog(self.synapses, *(getattr(self, name)[rows] for name in COLUMNS))


def concatenate(logs: Sequence[SynapseLog]) -> SynapseLog:
    """Logs of the same synapses joined along the steps."""
    joined = (np.concatenate([getattr(each, name) for each in logs]) for name in COLUMNS)
    return SynapseLog(logs[0].synapses, *joined)


def strongest_synapses(weight: Array, most: int = DEFAULT_COUNT) -> tuple[Synapse, ...]:
    """The strongest synapse of each of at most `most` evenly spaced target units."""
    targets = np.unique(np.linspace(0, len(weight) - 1, min(most, len(weight))).astype(int))
    return tuple((int(k), int(np.argmax(np.abs(weight[k])))) for k in targets)


def parse_synapses(request: str, weights: Mapping[str, Array]) -> tuple[str, tuple[Synapse, ...]]:
    """Connection and synapses named by `source->target` or `source->target[row,column]`.

    Several synapses share the brackets: `a->b[3,17;4,2]`. Without brackets they are
    `strongest_synapses`.
    """
    found = re.fullmatch(r"([^\[\]]*)(?:\[([^\[\]]*)\])?", request)
    name = found[1] if found else request
    if found is None or name not in weights:
        raise UnknownNameError("connection to record (source->target:hebbian)", name, weights)
    weight = weights[name]
    if weight.ndim != 2:
        raise ValueError(
            f"the weights of {name!r} are shared by many synapses (shape {weight.shape}): "
            "single synapses are recorded for dense connections only"
        )
    if found[2] is None:
        return name, strongest_synapses(weight)
    return name, tuple(_synapse(name, pair, weight) for pair in found[2].split(";"))


def _synapse(name: str, pair: str, weight: Array) -> Synapse:
    numbers = [part.strip() for part in pair.split(",")]
    if len(numbers) != 2 or not all(part.isdecimal() for part in numbers):
        raise ValueError(
            f"{name}[{pair}] names no synapse; write {name}[target,source] with unit numbers"
        )
    target, source = int(numbers[0]), int(numbers[1])
    check_synapse(name, (target, source), weight)
    return target, source


def check_synapse(name: str, synapse: Synapse, weight: Array) -> None:
    """Raise ValueError if the connection has no such synapse."""
    if weight.ndim != 2 or not all(0 <= k < n for k, n in zip(synapse, weight.shape, strict=True)):
        sizes = " to ".join(str(n) for n in weight.shape[::-1])
        raise ValueError(f"{name!r} connects {sizes} units: it has no synapse {list(synapse)}")
