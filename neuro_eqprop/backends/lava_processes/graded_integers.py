"""A graded population in fixed point on Lava."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.backends.lava_processes.graded import GradedPopulation
from neuro_eqprop.backends.lava_processes.population import Numbers, WholeModel
from neuro_eqprop.spiking.integers import GradedIntegers, divide, scale, twelve


@implements(proc=GradedPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class GradedIntegersModel(WholeModel):
    """The step of `Graded` in whole numbers; what is sent are whole thetas."""

    s_out = LavaPyType(PyOutPort.VEC_DENSE, np.int64)
    neuron: GradedIntegers

    def rest(self) -> None:
        """Nothing received, nothing sent."""
        self.g_one = self.g_beta = self.x = self.sent = self.nothing

    def advance(self, one: Ints, by_beta: Ints, beta: float) -> Ints:
        """Sum, follow the activation, send what changed."""
        neuron = self.neuron
        self.g_one = self.wrapped(self.g_one + one)
        self.g_beta = self.wrapped(self.g_beta + by_beta)
        self.drive = (self.g_one + scale(self.g_beta, twelve(beta))) + self.outside
        move = scale(neuron.activate(self.drive) - self.x, neuron.damping)
        self.x = self.saturated(self.x + move)
        message = divide(self.x - self.sent, neuron.shift)
        self.sent = self.sent + (message << neuron.shift)
        return message

    def told(self, message: Numbers) -> Numbers:
        """Thetas in real numbers."""
        return np.asarray(message * (self.neuron.unit * (1 << self.neuron.shift)))

    def firing(self) -> Array:
        """The sum of what was sent."""
        return np.asarray(self.sent * self.neuron.unit)

    def values(self) -> Mapping[str, Array]:
        """Drive and state."""
        return {"drive": self.drive * self.neuron.unit, "state": self.x * self.neuron.unit}
