"""`TrainedNetwork`: a network with its parameters and how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints, NamedDict
from neuro_eqprop.common.equality import Comparable
from neuro_eqprop.data import Split
from neuro_eqprop.data.samples import LabelledSamples, as_split, sample_rows
from neuro_eqprop.dynamics.inference import Inference, infer_in_chunks
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.training.history import History
from neuro_eqprop.training.study import Study

RECORDED_BETA, RESOLVED_BETA = 0.5, 0.05
"""Default beta of recorded phases, and the smallest that they take from the training.

Displacements of rates resolve smaller ones, spikes do not.
"""
TRAINED, FROM_TORCH, FROM_NIR = "trained", "converted from torch", "read from NIR"
"""The usual values of `provenance`."""
T = TypeVar("T", bound="TrainedNetwork")


@dataclass(frozen=True, eq=False, repr=False)
class TrainedNetwork(Comparable):
    """A network with its parameters and how it was made; `Model` adds what can be done with it."""

    network: Network
    params: Mapping[str, Array]
    epochs: int = 0
    study: Study | None = None
    history: History = field(default_factory=History)
    provenance: str = TRAINED
    diverged: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", NamedDict("parameter", self.params))

    def __repr__(self) -> str:
        made = f"{self.layout}, {self.parameters} parameters, {self.summary}"
        return f"{type(self).__name__}({made})"

    @property
    def layout(self) -> str:
        """The layers with their shapes: "input 64, hidden 128, output 10"."""
        return self.network.layout

    @property
    def summary(self) -> str:
        """How it was made, in one phrase."""
        if not self.epochs:
            return "untrained" if self.provenance == TRAINED else self.provenance
        study, many = self.study, f"{self.epochs} epoch{'s' if self.epochs > 1 else ''}"
        how = "" if study is None else f"by {study.rule.name} on {study.dataset}, "
        return f"{self.provenance} {how}{many}"

    @property
    def parameters(self) -> int:
        """The number of weights and biases."""
        return sum(value.size for value in self.params.values())

    @property
    def damping(self) -> float:
        """The damping factor with which its rates settle."""
        return 1.0 if self.study is None else self.study.rule.damping

    @property
    def beta(self) -> float:
        """The strength of recorded nudges: that of the training, if spikes resolve it."""
        trained = RECORDED_BETA if self.study is None else self.study.rule.beta
        return trained if trained >= RESOLVED_BETA else RECORDED_BETA

    @property
    def seed(self) -> int:
        """The seed it was trained with."""
        return 0 if self.study is None else self.study.seed

    def samples(self, x: npt.ArrayLike) -> Array:
        """Samples as float64 rows (samples, features); ValueError if they do not fit the model."""
        return sample_rows(x, self.network.input.size, self.network.vocabulary)

    def labelled(self, given: LabelledSamples) -> Split:
        """Labelled samples that fit the model; of a data set, or of its name, the test samples."""
        split = as_split(given)
        if self.network.vocabulary or not split.in_bytes:
            return Split(self.samples(split.stored), split.y)
        return split

    def equilibrium(self, x: npt.ArrayLike) -> Inference:
        """The free equilibrium of the rates, in float64.

        Parameters
        ----------
        x : array (samples, features)
            The samples; further axes are flattened.

        Returns
        -------
        Inference
            `state`: the rates of each layer (samples, *shape); `drive`: the pre-activation of the
            output (samples, classes); `steps` and `residual` of each sample.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> data = ne.load_data("digits")
        >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
        >>> model.equilibrium(data.test.x[:5]).state["hidden"].shape
        (5, 16)
        """
        ops = NumpyOps()
        params = {name: ops.from_numpy(value) for name, value in self.params.items()}
        rows = self.samples(x)
        return infer_in_chunks(ops, self.network, params, rows, damping=self.damping)

    def predict(self, x: npt.ArrayLike) -> Ints:
        """The class of each sample: the output unit with the largest drive at equilibrium.

        Parameters
        ----------
        x : array (samples, features)
            The samples.

        Returns
        -------
        array of int (samples,)
            Class numbers.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> data = ne.load_data("digits")
        >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
        >>> model.predict(data.test.x[:5]).shape
        (5,)
        """
        return self.equilibrium(x).classes


def prune(trained: T, fraction: float) -> T:
    """Set the smallest weights of every connection to zero, see `Model.prune`."""
    if not 0.0 <= fraction < 1.0:
        raise ValueError(f"fraction must be from 0 to below 1, not {fraction}")
    params = dict(trained.params)
    for connection in trained.network.connections:
        loop = connection.loops and connection.symmetric and connection.operator.matrix
        params[connection.name] = without_smallest(
            params[connection.name], fraction, symmetric=loop
        )
    return replace(trained, params=params)


def without_smallest(weight: Array, fraction: float, *, symmetric: bool) -> Array:
    """The weight with its smallest entries set to zero; among equal ones the first.

    Of a symmetric matrix both entries w_ij and w_ji are set to zero.
    """
    size = np.abs(weight)
    order = np.argsort(size, axis=None, kind="stable")
    pruned, count = weight.copy(), round(fraction * weight.size)
    pruned.reshape(-1)[order[:count]] = 0.0
    return np.where((pruned != 0) & (pruned.T != 0), pruned, 0.0) if symmetric else pruned
