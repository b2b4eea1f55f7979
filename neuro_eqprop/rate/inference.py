"""What a rate network answers: its free equilibrium, read from the output's drive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.data import Split
from neuro_eqprop.networks import Cost, Network
from neuro_eqprop.ops.protocol import Ops, Values
from neuro_eqprop.rate.field import State, field
from neuro_eqprop.solve import GaussSeidel, Outcome, Stop, solve

SETTLED = Stop(1e-6, 1000)
"""When an answer counts as settled."""


@dataclass(frozen=True, slots=True)
class Inference:
    """Of each sample: the rates, the drive of the output (the pre-activation), and how it settled.

    The class is read from the drive, not from the clipped rate: many clipped rates tie at zero.
    """

    state: State
    drive: Array
    steps: Ints
    residual: Array
    outcome: Outcome

    @property
    def classes(self) -> Ints:
        """The output unit with the largest drive."""
        return np.asarray(self.drive.argmax(axis=1))


def infer(
    ops: Ops,
    network: Network,
    params: Mapping[str, Values],
    x: Array,
    stop: Stop = SETTLED,
    damping: float = 1.0,
) -> Inference:
    """Settle on the samples x (samples, features), freely."""
    free = field(ops, network, params, ops.bring(x))
    settled = solve(free, free.rest(), GaussSeidel(damping=damping), stop)
    drive = ops.numpy(free.drive(network.output.name, settled.state))
    state = {name: ops.numpy(rates) for name, rates in settled.state.items()}
    if network.cost is Cost.CROSS_ENTROPY:
        state[network.output.name] = drive  # it only reads: its answer, not the error it sends
    return Inference(state, drive, settled.steps, settled.residual, settled.outcome)


def infer_in_chunks(
    ops: Ops,
    network: Network,
    params: Mapping[str, Values],
    x: Array,
    stop: Stop = SETTLED,
    damping: float = 1.0,
    *,
    at_once: int = 1000,
) -> Inference:
    """As `infer`, so many samples at a time: images of a large set do not fit in memory."""
    if not len(x):
        raise ValueError("there is no sample to answer")
    parts = [
        infer(ops, network, params, x[start : start + at_once], stop, damping)
        for start in range(0, len(x), at_once)
    ]
    if len(parts) == 1:
        return parts[0]
    outcomes = {part.outcome for part in parts}
    worst = next(
        o for o in (Outcome.NOT_FINITE, Outcome.OUT_OF_STEPS, Outcome.CONVERGED) if o in outcomes
    )
    return Inference(
        {name: np.concatenate([part.state[name] for part in parts]) for name in parts[0].state},
        np.concatenate([part.drive for part in parts]),
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.residual for part in parts]),
        worst,
    )


@dataclass(frozen=True, slots=True)
class Score:
    """The answers to a split: samples of each class (row) answered as each class (column)."""

    confusion: Ints
    settled: float
    """The share of samples that came to rest."""

    @property
    def accuracy(self) -> float:
        """The share of samples answered right."""
        return float(np.trace(self.confusion) / self.confusion.sum())


def score(
    ops: Ops,
    network: Network,
    params: Mapping[str, Values],
    split: Split,
    stop: Stop = SETTLED,
    damping: float = 1.0,
) -> Score:
    """Answer all samples of a split, a thousand at a time."""
    counts = np.zeros((network.output.size, network.output.size), dtype=np.int64)
    resting = 0
    for start in range(0, len(split), 1000):
        part = split.take(slice(start, start + 1000))
        found = infer(ops, network, params, part.x, stop, damping)
        np.add.at(counts, (part.y, found.classes), 1)
        resting += int((found.residual <= (stop.tolerance or np.inf)).sum())
    return Score(counts, resting / len(split))


def accuracy(
    ops: Ops, network: Network, params: Mapping[str, Values], split: Split, stop: Stop = SETTLED
) -> float:
    """The share of samples whose class is answered right."""
    return score(ops, network, params, split, stop).accuracy
