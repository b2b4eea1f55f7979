"""Nonidealities of a chip: noisy weights, dead neurons, threshold mismatch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.spiking.ir import Gain, SpikingNetwork
from neuro_eqprop.spiking.plasticity import PlasticityError

DEAD = -64.0
"""The bias of a neuron that never fires."""


@dataclass(frozen=True, slots=True)
class Nonidealities:
    """Nonidealities of the chip, drawn for each neuron and synapse from the seed."""

    weight_noise: float = 0.0
    """The effective weight is w (1 + weight_noise n), with n ~ N(0, 1)."""
    dead: float = 0.0
    """Fraction of hidden neurons that never fire."""
    mismatch: float = 0.0
    """Thresholds are 1 + mismatch n, with n ~ N(0, 1); implemented by dividing the input by it."""
    asymmetric: bool = False
    """Whether the two directions of a connection are rounded independently."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not (0.0 <= self.dead < 1.0 and 0.0 <= self.mismatch <= 0.3):
            raise PlasticityError("dead must be in [0, 1) and mismatch in [0, 0.3]")
        if not 0.0 <= self.weight_noise <= 1.0:
            raise PlasticityError("weight_noise must be in [0, 1]")

    @property
    def spread(self) -> bool:
        """Whether synapses have different gains."""
        return self.weight_noise > 0.0 or self.mismatch > 0.0


PERFECT = Nonidealities()


def gains(network: SpikingNetwork, flaws: Nonidealities) -> dict[str, Array]:
    """The gain of each synapse, by projection; the effective weight is gain w."""
    if not flaws.spread:
        return {}
    if network.fixed is not None:
        raise PlasticityError(
            "weight noise and threshold mismatch make non-integer weights; "
            "learn in floating point, without bits"
        )
    rng = np.random.default_rng([flaws.seed, 2])
    thresholds = {
        p.name: np.maximum(1.0 + flaws.mismatch * rng.standard_normal(p.size), 0.1)
        for p in network.populations
    }
    return {
        p.name: (1.0 + flaws.weight_noise * rng.standard_normal(p.weight.shape))
        / thresholds[p.target][:, None]
        for p in network.projections
        if p.gain is Gain.ONE
    }
