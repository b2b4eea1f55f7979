"""Synapses that are watched while they learn, and weights before and after.

The story of a synapse, step by step, r being the activity traces of the units at its two ends:

    product  p = r_post r_pre
    tag      m = m + contrast[phase] / M p       inside the window, the last M steps of a phase
    weight   w = w + rate m                      at the commit that ends an episode, then m = 0

Each value is that at the end of its step. A commit belongs to the last step of its episode: there
the weight is the new one, and the tag is shown as the commit found it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from neuro_eqprop.arrays import Array, UnknownNameError

Synapse: TypeAlias = tuple[int, int]
"""Unit of the target and unit of the source: row and column of the weight."""

HEBBIAN = "hebbian"
"""What is recorded of a connection; of its synapses `COLUMNS`."""
COLUMNS = ("pre", "post", "product", "tag", "weight")
DEFAULT_COUNT = 8
"""Synapses of a connection that are watched unless they are named."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Of a connection before a run and, if the run changes them, after it."""

    before: Array
    after: Array | None = None


@dataclass(frozen=True, slots=True)
class SynapseLog:
    """What became of chosen synapses of a connection: arrays (steps, synapses)."""

    synapses: tuple[Synapse, ...]
    pre: Array
    post: Array
    product: Array
    tag: Array
    weight: Array

    def part(self, rows: slice) -> SynapseLog:
        """Some of the steps."""
        return SynapseLog(self.synapses, *(getattr(self, name)[rows] for name in COLUMNS))


def concatenate(stories: Sequence[SynapseLog]) -> SynapseLog:
    """Stories of the same synapses, one after the other."""
    whole = (np.concatenate([getattr(each, name) for each in stories]) for name in COLUMNS)
    return SynapseLog(stories[0].synapses, *whole)


def strongest_synapses(weight: Array, most: int = DEFAULT_COUNT) -> tuple[Synapse, ...]:
    """A few synapses that are worth watching: the strongest one of targets evenly apart."""
    targets = np.unique(np.linspace(0, len(weight) - 1, min(most, len(weight))).astype(int))
    return tuple((int(k), int(np.argmax(np.abs(weight[k])))) for k in targets)


def parse_synapses(word: str, weights: Mapping[str, Array]) -> tuple[str, tuple[Synapse, ...]]:
    """The connection and the synapses that a word names: all of `a->b`, or of `a->b[row,column]`.

    Several synapses stand in one pair of brackets, `a->b[3,17;4,2]`, or in several words.
    """
    found = re.fullmatch(r"([^\[\]]*)(?:\[([0-9,; ]*)\])?", word)
    name = found[1] if found else word
    if found is None or name not in weights:
        raise UnknownNameError("connection to record (source->target:hebbian)", name, weights)
    weight = weights[name]
    if weight.ndim != 2:
        raise ValueError(
            f"the weights of {name!r} are shared by many synapses (shape {weight.shape}): "
            "the story of one is told for dense connections only"
        )
    if found[2] is None:
        return name, strongest_synapses(weight)
    return name, tuple(_synapse(name, pair, weight) for pair in found[2].split(";"))


def _synapse(name: str, pair: str, weight: Array) -> Synapse:
    numbers = [part.strip() for part in pair.split(",")]
    if len(numbers) != 2 or not all(part.isdecimal() for part in numbers):
        raise ValueError(f"{name}[{pair}] names no synapse; write {name}[TARGET,SOURCE]")
    target, source = int(numbers[0]), int(numbers[1])
    check_synapse(name, (target, source), weight)
    return target, source


def check_synapse(name: str, synapse: Synapse, weight: Array) -> None:
    """Refuse a synapse that the connection does not have."""
    if weight.ndim != 2 or not all(0 <= k < n for k, n in zip(synapse, weight.shape, strict=True)):
        sizes = " to ".join(str(n) for n in weight.shape[::-1])
        raise ValueError(f"{name!r} leads from {sizes} units: it has no synapse {list(synapse)}")
