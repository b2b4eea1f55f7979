"""`Model`: a network with its parameters and how it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuro_eqprop.arrays import Array
from neuro_eqprop.history import History
from neuro_eqprop.html import html_table
from neuro_eqprop.networks import Network

if TYPE_CHECKING:
    from neuro_eqprop.experiments.config import Study

TRAINED, FROM_TORCH, FROM_NIR = "trained", "converted from torch", "read from NIR"
"""The usual values of `Model.provenance`."""


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A network with its parameters and how it was made.

    `train`, `learn_on_chip`, `from_torch` and `open_run(path).model` return one.

    Parameters
    ----------
    network : Network
        The layers and connections.
    params : mapping of str to array
        Weights by connection name ("input->hidden"), biases by layer name ("hidden").
    epochs : int
        The epochs it was trained for.
    study : Study, optional
        The settings it was trained with; None for a network that was converted.
    history : History
        The metrics of its training, a row for each epoch.
    provenance : str
        How it was made: "trained", "converted from torch", ...

    """

    network: Network
    params: Mapping[str, Array]
    epochs: int = 0
    study: Study | None = None
    history: History = field(default_factory=History)
    provenance: str = TRAINED

    def __repr__(self) -> str:
        return f"Model({self.layout}, {self.parameters} parameters, {self.summary})"

    def _repr_html_(self) -> str:
        rows = {
            "layers": self.layout,
            "parameters": f"{self.parameters}",
            "made": self.summary,
            **{name: f"{self.history[-1][name]:.4f}" for name in accuracies(self.history)},
        }
        return html_table("Model", rows)

    @property
    def layout(self) -> str:
        """The layers with their shapes: "input 64, hidden 128, output 10"."""
        return ", ".join(
            f"{layer.name} {'x'.join(map(str, layer.shape))}" for layer in self.network.layers
        )

    @property
    def summary(self) -> str:
        """How it was made, in a few words."""
        if self.provenance != TRAINED or not self.epochs:
            return self.provenance if self.epochs or self.provenance != TRAINED else "untrained"
        rule = "" if self.study is None else f" by {self.study.rule.name} on {self.study.dataset}"
        return f"trained{rule} for {self.epochs} epochs"

    @property
    def parameters(self) -> int:
        """The number of weights and biases."""
        return sum(value.size for value in self.params.values())

    @property
    def damping(self) -> float:
        """The damping factor with which its rates settle."""
        return 1.0 if self.study is None else self.study.damping

    @property
    def beta(self) -> float:
        """The nudging strength of its nudged phases."""
        return 0.5 if self.study is None else self.study.rule.beta

    @property
    def seed(self) -> int:
        """The seed it was trained with."""
        return 0 if self.study is None else self.study.seed

    def samples(self, x: npt.ArrayLike) -> Array:
        """Samples as rows of float64 (samples, features); an error where they do not fit."""
        rows = np.asarray(x, dtype=np.float64)
        size = self.network.input.size
        if rows.ndim > 1:
            rows = rows.reshape(len(rows), -1)
        if rows.ndim != 2 or rows.shape[1] != size:
            raise ValueError(
                f"x has shape {np.shape(x)}; this model takes samples of {size} features: "
                f"(samples, {size})"
            )
        return rows


def accuracies(history: History) -> Sequence[str]:
    """The columns of a history that hold an accuracy."""
    return [name for name in history.columns if name.endswith("_accuracy")]
