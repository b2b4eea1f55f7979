"""A spiking population on Lava."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.arrays import Array, Bits
from neuro_eqprop.backends.lava_processes.population import PopulationProcess, RealModel
from neuro_eqprop.spiking.ir import Reset, Spiking


class SpikingPopulation(PopulationProcess):
    """Leaky integrators with binary spikes."""


@implements(proc=SpikingPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class SpikingPopulationModel(RealModel):
    """The step of `Spiking` in float64."""

    s_out = LavaPyType(PyOutPort.VEC_DENSE, bool)
    neuron: Spiking

    def rest(self) -> None:
        """Voltage at half the threshold, no current."""
        self.u = self.nothing
        self.v = self.nothing + self.neuron.threshold / 2

    def advance(self, one: Array, by_beta: Array, beta: float) -> Bits:
        """Integrate, fire, reset, limit."""
        neuron = self.neuron
        self.u = (1 - neuron.current_decay) * self.u + (one + beta * by_beta)
        self.drive = self.u + self.outside
        v = (1 - neuron.voltage_decay) * self.v + self.drive
        self.spike: Bits = v >= neuron.threshold
        after = v - neuron.threshold if neuron.reset is Reset.SUBTRACT else 0.0
        v = np.where(self.spike, after, v)
        self.v = np.minimum(np.maximum(v, neuron.floor), neuron.ceiling)
        return self.spike

    def firing(self) -> Bits:
        """The spikes."""
        return self.spike

    def values(self) -> Mapping[str, Array]:
        """Drive and voltage."""
        return {"drive": self.drive, "voltage": self.v}
