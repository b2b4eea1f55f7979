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

    Synapses sum the messages in x1, which no learning rule can reset. So a unit sends minus that
    sum in the commit; the targets ignore it, since each sample starts from the resting state.
    """

    s_out = LavaPyType(PyOutPort.VEC_DENSE, float)

    def commit_message(self) -> Numbers:
        """Minus the sum of all messages of the sample."""
        return np.asarray(-self.neurons.firing())

    def follow(self, sent: Numbers, silent: bool) -> Array:
        """r = sent."""
        return self.trace if silent else np.array(self.neurons.firing())

    def book(self, sample: int, step: int) -> None:
        """Record the step; the trace is zero after a commit."""
        if step == self.part.job.steps - 1:
            self.trace = np.zeros_like(self.trace)
        super().book(sample, step)
