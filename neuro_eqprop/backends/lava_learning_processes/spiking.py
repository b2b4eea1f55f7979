"""A spiking population that learns on Lava, in real numbers."""

from __future__ import annotations

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.lava_learning_processes.population import (
    LearningProcess,
    RealLearningModel,
)
from neuro_eqprop.backends.lava_processes.population import Numbers
from neuro_eqprop.backends.lava_processes.spiking import SpikingStep
from neuro_eqprop.spiking.plasticity import LEAST


class LearningSpikes(LearningProcess):
    """Leaky integrators with binary spikes and a trace of them."""


@implements(proc=LearningSpikes, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class LearningSpikesModel(RealLearningModel, SpikingStep):
    """The step of `Spiking` in float64, with traces as Lava's engine has them."""

    def farewell(self) -> Numbers:
        """Nothing."""
        return np.zeros(self.trace.size, dtype=bool)

    def follow(self, sent: Numbers, silent: bool) -> Array:
        """r = keep r, then + 1 - keep where s."""
        kept = self.keep * self.trace
        new = np.where(sent, kept + (1.0 - self.keep), kept)
        return np.asarray(np.where(new < LEAST, 0.0, new))
