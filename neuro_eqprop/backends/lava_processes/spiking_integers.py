"""A spiking population in fixed point on Lava."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.arrays import Array, Bits, Ints
from neuro_eqprop.backends.lava_processes.population import Numbers, WholeModel
from neuro_eqprop.backends.lava_processes.spiking import SpikingPopulation
from neuro_eqprop.spiking.integers import FRACTION_BITS, SpikingIntegers, scale, twelve


@implements(proc=SpikingPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class SpikingIntegersModel(WholeModel):
    """The step of `Spiking` in whole numbers: u wraps at 24 bits, v saturates."""

    s_out = LavaPyType(PyOutPort.VEC_DENSE, bool)
    neuron: SpikingIntegers

    def rest(self) -> None:
        """Voltage at half the threshold, no current."""
        self.u = self.nothing
        self.v = self.nothing + (self.neuron.threshold >> 1)

    def advance(self, one: Ints, by_beta: Ints, beta: float) -> Bits:
        """Integrate, fire, reset, limit."""
        neuron = self.neuron
        arriving = one + scale(by_beta, twelve(beta))
        self.u = self.wrapped(scale(self.u, neuron.keep_current) + (arriving << FRACTION_BITS))
        self.drive = self.u + (self.outside << FRACTION_BITS)
        v = self.saturated(scale(self.v, neuron.keep_voltage) + self.drive)
        self.spike: Bits = v >= neuron.threshold
        v = np.where(self.spike, v - neuron.threshold if neuron.subtract else 0, v)
        self.v = np.minimum(np.maximum(v, neuron.floor), neuron.ceiling)
        return self.spike

    def told(self, message: Numbers) -> Numbers:
        """The spikes."""
        return message

    def firing(self) -> Bits:
        """The spikes."""
        return self.spike

    def values(self) -> Mapping[str, Array]:
        """Drive and voltage."""
        shown = self.neuron.shown
        return {"drive": self.drive * shown, "voltage": self.v * shown}
