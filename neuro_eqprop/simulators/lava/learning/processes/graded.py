"""A graded population that learns on Lava."""

from __future__ import annotations

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.lava.learning.processes.population import (
    FloatLearningModel,
    LearningProcess,
)
from neuro_eqprop.spiking.neurons import Numbers


class LearningGraded(LearningProcess):
    """Sigma-delta units, whose trace is the sum of their messages."""


@implements(proc=LearningGraded, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class LearningGradedModel(FloatLearningModel):
    """The step in float64.

    Synapses sum the messages in x1, which a learning rule cannot reset. A unit therefore sends
    minus that sum in the commit. Its targets ignore this message, since each sample starts from
    the resting state.
    """

    s_out = LavaPyType(PyOutPort.VEC_DENSE, float)

    def commit_message(self) -> Numbers:
        """Minus the sum of all messages of the sample."""
        return np.asarray(-self.neurons.firing())

    def new_traces(self, sent: Numbers, silent: bool) -> Array:
        """r = sent, the sum of all messages; a commit leaves it unchanged."""
        return self.trace if silent else np.array(self.neurons.firing())

    def finish_step(self, sample: int, step: int) -> None:
        """Record the step; the trace is zero after a commit."""
        if step == self.part.job.steps - 1:
            self.trace = np.zeros_like(self.trace)
        super().finish_step(sample, step)
