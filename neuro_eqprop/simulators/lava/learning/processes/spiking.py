"""A spiking population that learns on Lava, in float64 and in fixed point."""

from __future__ import annotations

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.process import ProcessParameters
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.common.arrays import Array, Bits
from neuro_eqprop.simulators.lava.learning.job import StepControl
from neuro_eqprop.simulators.lava.learning.processes.population import (
    FloatLearningModel,
    LearningModel,
    LearningProcess,
)
from neuro_eqprop.spiking.arithmetic import ONE
from neuro_eqprop.spiking.neurons import Numbers
from neuro_eqprop.spiking.plasticity import LEAST


class LearningSpikes(LearningProcess):
    """Leaky integrate-and-fire neurons with a spike trace."""


@implements(proc=LearningSpikes, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class LearningSpikesModel(FloatLearningModel):
    """The step in float64; traces equal those of Lava's engine."""

    s_out = LavaPyType(PyOutPort.VEC_DENSE, bool)

    def commit_message(self) -> Bits:
        """No spikes."""
        return np.zeros(self.trace.size, dtype=bool)

    def new_traces(self, sent: Numbers, silent: bool) -> Array:
        """r = keep r, then + 1 - keep where s."""
        keep = self.part.learning.plastic.rule.keep
        kept = keep * self.trace
        new = np.where(sent, kept + (1.0 - keep), kept)
        return np.asarray(np.where(new < LEAST, 0.0, new))


@implements(proc=LearningSpikes, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class LearningIntegersModel(LearningModel):
    """The step in integers; traces equal those of Lava's engine.

    In each step, the engine rounds x1 of all synapses with one random number. This model draws the
    same number from the same seed, so that y1 equals x1 and mirrored synapses see equal traces.
    """

    control_port = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    a_one = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, bool)
    y1 = LavaPyType(PyOutPort.VEC_DENSE, np.int32)
    y2 = LavaPyType(PyOutPort.VEC_DENSE, np.int32)
    y3 = LavaPyType(PyOutPort.VEC_DENSE, np.int32)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        learning, fixed = self.part.learning, self.part.job.network.fixed
        assert learning.engine is not None
        assert fixed is not None
        self.unit = fixed.units[self.part.population.name]
        before = learning.training.first * learning.plastic.rule.steps
        self.rng = np.random.default_rng(learning.engine.seed)
        self.rng.random(1 + 2 * before)

    def read_input(self, message: Numbers, place: slice | None) -> Array | None:
        """The values of the message times the unit; exact, since units are powers of two."""
        return None if place is None else np.asarray(message[place] * self.unit)

    def beta(self, control: StepControl) -> float:
        """Beta from multiples of 1/4096."""
        return int(control.beta) / ONE

    def commit_message(self) -> Bits:
        """No spikes."""
        return np.zeros(self.trace.size, dtype=bool)

    def new_traces(self, sent: Numbers, silent: bool) -> Array:
        """The integer trace, rounded with the random number of Lava's engine in this step."""
        rule = self.part.learning.plastic.rule
        kept = rule.keep * self.trace
        new = np.floor(kept) + (self.rng.random(2)[1] < kept % 1)
        return np.asarray(np.where(sent, np.minimum(new + rule.impulse, 127.0), new))

    def send_factors(self, control: StepControl) -> None:
        """Send the trace as y1, and the third factors of the source as y2 and y3."""
        ones = np.ones(self.trace.size, dtype=np.int32)
        self.y1.send(self.trace.astype(np.int32))
        self.y2.send(int(control.third) * ones)
        self.y3.send(int(control.pulse) * ones)
