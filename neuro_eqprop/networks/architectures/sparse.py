"""The model `sparse`: a hidden layer connected to itself by random sparse weights."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.common.settings import setting
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.networks.architectures.base import Architecture, Rates, size
from neuro_eqprop.networks.architectures.looped import LoopSettings, with_loop
from neuro_eqprop.networks.architectures.mlp import layered
from neuro_eqprop.networks.network import Connection, Network
from neuro_eqprop.networks.operators import Sparse


@dataclass(frozen=True)
class SparseSettings(LoopSettings):
    """Settings of a hidden layer connected to itself by random sparse weights."""

    name: str = "sparse"
    fan_in: int = setting(16, "random sources of each hidden unit within its layer", above=0)
    wiring: int = setting(0, "seed of the random connections", least=0)


def sparse_recurrent(
    inputs: int,
    hidden: int,
    outputs: int,
    *,
    sparse: Sparse,
    hidden_rate: Activation,
    output_rate: Activation,
    bound: float | None = None,
    feedback: float = 1.0,
) -> Network:
    """x -> h <-> output, and h -> h by a sparse matrix S + S^T.

    `sparse` is symmetric, so that the network has an energy; `bound` limits its spectral norm.
    `feedback` is that of the output.
    """
    rates = Rates(hidden_rate=hidden_rate, output_rate=output_rate)
    plain = layered(inputs, (hidden,), outputs, feedback=feedback, **rates)
    loop = Connection("hidden", "hidden", sparse, bound=bound)
    return with_loop(plain, loop)


def build(settings: SparseSettings, shape: Shape, classes: int) -> Network:
    """The network of the settings."""
    return sparse_recurrent(
        size(shape),
        settings.hidden[0],
        classes,
        sparse=Sparse(settings.fan_in, settings.wiring, symmetric=True),
        **settings.rates,
        bound=settings.bound,
        feedback=settings.feedback,
    )


SPARSE = Architecture("sparse", "hidden layer with random sparse recurrence", SparseSettings, build)
