"""A graded population that learns on Lava."""

from __future__ import annotations

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.lava.learning.processes.population import (
    FloatLearningModel,
    LearningProcess,
)
from neuro_eqprop.spiking.neurons import Numbers


class LearningGraded(LearningProcess):
    """Sigma-delta units, whose trace is what they have sent."""


@implements(proc=LearningGraded, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class LearningGradedModel(FloatLearningModel):
    """The step in float64.

    Synapses gather what was sent in x1, which no rule can reset. So a unit takes all of it back
    in the commit; what this brings to others is lost, since each sample starts at rest.
    """

    s_out = LavaPyType(PyOutPort.VEC_DENSE, float)

    def commit_message(self) -> Numbers:
        """All that was sent, taken back."""
        return np.asarray(-self.neurons.firing())

    def follow(self, sent: Numbers, silent: bool) -> Array:
        """r = sent."""
        return self.trace if silent else np.array(self.neurons.firing())

    def book(self, sample: int, step: int) -> None:
        """After a commit nothing was sent, and the trace tells so."""
        if step == self.part.job.steps - 1:
            self.trace = np.zeros_like(self.trace)
        super().book(sample, step)
