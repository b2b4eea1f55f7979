"""A spiking population that learns in fixed point on Lava."""

from __future__ import annotations

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.process import ProcessParameters
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.lava_course import Beat
from neuro_eqprop.backends.lava_learning_processes.population import LearningModel
from neuro_eqprop.backends.lava_learning_processes.spiking import LearningSpikes
from neuro_eqprop.backends.lava_processes.population import Numbers
from neuro_eqprop.backends.lava_processes.spiking_integers import SpikingIntegersStep
from neuro_eqprop.spiking.integers import ONE, scale


@implements(proc=LearningSpikes, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class LearningIntegersModel(LearningModel, SpikingIntegersStep):
    """The step of `Spiking` in whole numbers, with traces as Lava's engine has them.

    It decays x1 of all synapses by the same random number, which is that of the seed; drawn here
    again, it makes y1 equal to x1, so that pairs of synapses see the same two traces.
    """

    news = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    y1 = LavaPyType(PyOutPort.VEC_DENSE, np.int32)
    y2 = LavaPyType(PyOutPort.VEC_DENSE, np.int32)
    y3 = LavaPyType(PyOutPort.VEC_DENSE, np.int32)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        course = self.part.course
        assert course.engine is not None
        before = course.lessons.first * course.plastic.rule.steps
        drawn = np.random.default_rng(course.engine.seed).random(2 * (before + self.total) + 1)
        self.draws = drawn[2 + 2 * before :: 2]
        self.impulse = course.plastic.rule.impulse

    def hear(self, beat: Beat, current: Numbers, pull: Numbers) -> None:
        """bias + current + beta pull, each a whole number of units."""
        self.outside = self.neuron.bias + current + scale(pull, int(beat.beta))

    def beta(self, beat: Beat) -> float:
        """As a number of its own."""
        return int(beat.beta) / ONE

    def farewell(self) -> Numbers:
        """Nothing."""
        return np.zeros(self.trace.size, dtype=bool)

    def follow(self, sent: Numbers, silent: bool) -> Array:
        """A whole trace, rounded by the number that Lava's engine draws in this step."""
        kept = self.keep * self.trace
        new = np.floor(kept) + (self.draws[self.time_step - 1] < kept % 1)
        return np.asarray(np.where(sent, np.minimum(new + self.impulse, 127.0), new))

    def tell(self, beat: Beat) -> None:
        """The trace, and the third factors as the source has them."""
        ones = np.ones(self.trace.size, dtype=np.int32)
        self.y1.send(self.trace.astype(np.int32))
        self.y2.send(int(beat.third) * ones)
        self.y3.send(int(beat.pulse) * ones)
