"""The one source of samples on Lava: samples, targets, and the clock of their phases."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import OutPort
from lava.magma.core.process.process import AbstractProcess, ProcessParameters
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.lava.job import tick
from neuro_eqprop.backends.lava.learning.job import (
    LearningPopulation,
    StepControl,
    message_size,
    places,
    step_control,
)
from neuro_eqprop.backends.lava.processes.population import Reporting
from neuro_eqprop.spiking.fixed_point import nearest, to_12_bits
from neuro_eqprop.spiking.neurons import Numbers
from neuro_eqprop.spiking.plasticity import third_factors

PULSE = 32
"""y3 in a commit in integers."""


class Source(AbstractProcess):  # type: ignore[misc]
    """It tells every population in each step what there is: a step_control, currents and pulls."""

    def __init__(self, part: LearningPopulation) -> None:
        super().__init__(part=part)
        self.news = OutPort(shape=(message_size(part.job),))


class SourceModel(Reporting):
    """The clock of samples."""

    part: LearningPopulation

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        job = self.part.job
        self.places, self.message = places(job), np.zeros(message_size(job))
        self.ticks = [tick(job.schedule, step) for step in range(job.steps)]

    def step(self, sample: int, step: int) -> None:
        """Tell about one step."""
        if step == 0:
            self.turn(sample)
        self.message[: len(StepControl._fields)] = self.control(sample, step)
        self.news.send(self.spoken())

    def turn(self, sample: int) -> None:
        """Take up the next sample."""
        stimulus = self.part.job.stimulus
        for (name, what), place in self.places.items():
            rows = stimulus.current if what == "current" else stimulus.pull
            self.message[place] = self.count(name, rows[name][sample])

    def control(self, sample: int, step: int) -> StepControl:
        """What is the same for all populations."""
        rule, rate = self.part.course.plastic.rule, self.part.course.lessons.rates[sample]
        found = step_control(rule, self.ticks[step], sample=sample, first=step == 0, rate=rate)
        if sample == self.part.job.stimulus.samples - 1:
            found = found._replace(pulse=found.silent)
        return self.told_as(found, sample)

    @abstractmethod
    def count(self, name: str, values: Array) -> Array:
        """Currents or pulls of a population, as it counts."""

    @abstractmethod
    def told_as(self, control: StepControl, sample: int) -> StepControl:
        """The step_control, in the numbers of the run."""

    @abstractmethod
    def spoken(self) -> Numbers:
        """The message, in the numbers of the run."""


@implements(proc=Source, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class RealSourceModel(SourceModel):
    """In floats."""

    news = LavaPyType(PyOutPort.VEC_DENSE, float)

    def count(self, name: str, values: Array) -> Array:
        """As they are."""
        return values

    def told_as(self, control: StepControl, sample: int) -> StepControl:
        """As it is."""
        return control

    def spoken(self) -> Array:
        """The message itself."""
        return self.message


@implements(proc=Source, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class WholeSourceModel(SourceModel):
    """In integers."""

    news = LavaPyType(PyOutPort.VEC_DENSE, np.int64)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        course = self.part.course
        assert course.engine is not None
        self.factors = third_factors(course.engine, course.lessons.rates)

    def count(self, name: str, values: Array) -> Array:
        """In the unit of the population."""
        fixed = self.part.job.network.fixed
        assert fixed is not None
        return nearest(values, fixed.units[name]).astype(float)

    def told_as(self, control: StepControl, sample: int) -> StepControl:
        """Beta in 1/4096, y2 by the rate of the sample, y3 as the pulse that stands for one."""
        third = control.third * self.factors[sample]
        return control._replace(
            beta=to_12_bits(control.beta), third=third, pulse=PULSE * control.pulse, eta=0.0
        )

    def spoken(self) -> Numbers:
        """The message in integers."""
        return self.message.astype(np.int64)
