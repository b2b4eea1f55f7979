"""Inference with a rate network: its free equilibrium and the drive of the output there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints, NamedDict
from neuro_eqprop.data import Split
from neuro_eqprop.dynamics.field import State, field
from neuro_eqprop.dynamics.solve import Equilibrium, GaussSeidel, SolveStatus, Stop, solve
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.networks.network import Cost, Network
from neuro_eqprop.networks.ops.protocol import Ops, Values

SETTLED = Stop(1e-6, 1000)
"""Default stopping rule of inference."""
COARSE = Stop(1e-4, 200)
"""Stopping rule of the metrics of a training."""


@dataclass(frozen=True, slots=True, repr=False)
class Inference:
    """For each sample: rates, drive of the output (pre-activation), steps and residual.

    The class is read from the drive, not from the rate: several clipped rates can tie at zero.
    """

    state: State
    drive: Array
    steps: Ints
    residual: Array
    status: SolveStatus

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", NamedDict("layer", self.state))

    def __repr__(self) -> str:
        many = len(self.drive)
        return f"Inference({many} sample{'' if many == 1 else 's'}, {self.status.value})"

    @property
    def classes(self) -> Ints:
        """The output unit with the largest drive."""
        return np.asarray(self.drive.argmax(axis=1))


def settle(
    ops: Ops, network: Network, params: Mapping[str, Values], x: Array, stop: Stop, damping: float
) -> tuple[Equilibrium, Array]:
    """The free equilibrium of the samples x, and the drive of the output there."""
    free = field(ops, network, params, ops.from_numpy(x))
    settled = solve(free, free.zero_state(), GaussSeidel(damping=damping), stop)
    return settled, ops.to_numpy(free.drive(network.output.name, settled.state))


def infer(
    ops: Ops,
    network: Network,
    params: Mapping[str, Values],
    x: Array,
    stop: Stop = SETTLED,
    damping: float = 1.0,
) -> Inference:
    """The free equilibrium of the samples x (samples, features)."""
    settled, drive = settle(ops, network, params, x, stop, damping)
    state = {name: ops.to_numpy(rates) for name, rates in settled.state.items()}
    if network.cost is Cost.CROSS_ENTROPY:
        state[network.output.name] = drive  # a readout: its prediction, not the error it feeds back
    return Inference(state, drive, settled.steps, settled.residual, settled.status)


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
    """As `infer`, in chunks of `at_once` samples, to limit the memory."""
    if not len(x):
        raise ValueError("x has no samples")
    parts = []
    for start in range(0, len(x), at_once):
        parts.append(infer(ops, network, params, x[start : start + at_once], stop, damping))
        check_deadline()
    if len(parts) == 1:
        return parts[0]
    statuses = {part.status for part in parts}
    worst = next(
        status
        for status in (SolveStatus.NOT_FINITE, SolveStatus.OUT_OF_STEPS, SolveStatus.CONVERGED)
        if status in statuses
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
    """The confusion matrix of a split: true classes in rows, predicted ones in columns."""

    confusion: Ints
    settled: float
    """The share of samples that converged."""

    @property
    def accuracy(self) -> float:
        """The share of correct predictions."""
        return float(np.trace(self.confusion) / self.confusion.sum())


def score(
    ops: Ops,
    network: Network,
    params: Mapping[str, Values],
    split: Split,
    stop: Stop = SETTLED,
    damping: float = 1.0,
) -> Score:
    """Evaluate all samples of a split, at most a thousand at a time.

    Only the drive of the output leaves the device.
    """

    def settled_drive(x: Array) -> tuple[Array, Array]:
        settled, drive = settle(ops, network, params, x, stop, damping)
        return drive, settled.residual

    return score_by(settled_drive, network, split, stop)


def score_by(
    settled_drive: Callable[[Array], tuple[Array, Array]],
    network: Network,
    split: Split,
    stop: Stop,
) -> Score:
    """Evaluate all samples by a function from samples to drives of the output and residuals.

    Large networks settle fewer samples at a time, so that their states fit the cache of a
    processor.
    """
    counts = np.zeros((network.output.size, network.output.size), dtype=np.int64)
    converged = 0
    for part in split.parts(samples_at_once(network)):
        drive, residual = settled_drive(part.x)
        np.add.at(counts, (part.y, drive.argmax(axis=1)), 1)
        converged += int((residual <= (stop.tolerance or np.inf)).sum())
    return Score(counts, converged / len(split))


RATES_AT_ONCE = 1 << 22
"""Largest number of rates, over all samples, that settle together."""


def samples_at_once(network: Network) -> int:
    """How many samples to settle together: a thousand, fewer in large networks."""
    rates = sum(layer.size for layer in network.moving)
    return max(16, min(1000, RATES_AT_ONCE // rates))


def accuracy(
    ops: Ops, network: Network, params: Mapping[str, Values], split: Split, stop: Stop = SETTLED
) -> float:
    """The share of correct predictions."""
    return score(ops, network, params, split, stop).accuracy
