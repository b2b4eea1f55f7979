"""A graded population on Lava."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.activations import activate
from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.lava_processes.population import PopulationProcess, RealModel
from neuro_eqprop.spiking.ir import Graded


class GradedPopulation(PopulationProcess):
    """Sigma-delta units, which send the changes of their state."""


@implements(proc=GradedPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class GradedPopulationModel(RealModel):
    """The step of `Graded` in float64."""

    s_out = LavaPyType(PyOutPort.VEC_DENSE, float)
    neuron: Graded

    def rest(self) -> None:
        """Nothing received, nothing sent."""
        self.g_one = self.g_beta = self.x = self.sent = self.drive = self.nothing

    def advance(self, one: Array, by_beta: Array, beta: float) -> Array:
        """Sum, follow the activation, send what changed."""
        neuron = self.neuron
        self.g_one = self.g_one + one
        self.g_beta = self.g_beta + by_beta
        self.drive = (self.g_one + beta * self.g_beta) + self.outside
        self.x = self.x + neuron.damping * (activate(neuron.activation, self.drive) - self.x)
        message: Array = neuron.theta * np.rint((self.x - self.sent) / neuron.theta)
        self.sent = self.sent + message
        return message

    def firing(self) -> Array:
        """The sum of what was sent."""
        return self.sent

    def values(self) -> Mapping[str, Array]:
        """Drive and state."""
        return {"drive": self.drive, "state": self.x}
