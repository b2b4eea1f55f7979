"""The Lava process that sends samples, targets and the phase of each step."""

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

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.lava.job import tick
from neuro_eqprop.simulators.lava.learning.job import (
    LearningPopulation,
    StepControl,
    integer_control,
    message_size,
    message_slices,
    step_control,
)
from neuro_eqprop.simulators.lava.processes.population import Reporting
from neuro_eqprop.spiking.arithmetic import nearest
from neuro_eqprop.spiking.neurons import Numbers
from neuro_eqprop.spiking.plasticity import third_factors


class Source(AbstractProcess):  # type: ignore[misc]
    """Sends one message per step to every population: control values, currents and pulls."""

    def __init__(self, part: LearningPopulation) -> None:
        super().__init__(part=part)
        self.control_port = OutPort(shape=(message_size(part.job),))


class SourceModel(Reporting):
    """Base model of the source."""

    part: LearningPopulation

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        job = self.part.job
        self.slices, self.message = message_slices(job), np.zeros(message_size(job))
        self.ticks = [tick(job.schedule, step) for step in range(job.steps)]

    def step(self, sample: int, step: int) -> None:
        """Send the message of one step."""
        if step == 0:
            self.load_sample(sample)
        self.message[: len(StepControl._fields)] = self.control(sample, step)
        self.control_port.send(self.encoded())

    def load_sample(self, sample: int) -> None:
        """Write the currents and pulls of a sample into the message."""
        stimulus = self.part.job.stimulus
        for (name, what), place in self.slices.items():
            rows = stimulus.current if what == "current" else stimulus.pull
            self.message[place] = self.to_units(name, rows[name][sample])

    def control(self, sample: int, step: int) -> StepControl:
        """The control values of a step, which are the same for all populations."""
        rule, rate = self.part.learning.plastic.rule, self.part.learning.training.rates[sample]
        found = step_control(rule, self.ticks[step], sample=sample, first=step == 0, rate=rate)
        if sample == self.part.job.stimulus.samples - 1:
            found = found._replace(pulse=found.silent)
        return self.convert(found, sample)

    @abstractmethod
    def to_units(self, name: str, values: Array) -> Array:
        """Currents or pulls of a population, in its unit."""

    @abstractmethod
    def convert(self, control: StepControl, sample: int) -> StepControl:
        """The control values in the number format of the run."""

    @abstractmethod
    def encoded(self) -> Numbers:
        """The message in the number format of the run."""


@implements(proc=Source, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class FloatSourceModel(SourceModel):
    """Source in float64."""

    control_port = LavaPyType(PyOutPort.VEC_DENSE, float)

    def to_units(self, name: str, values: Array) -> Array:
        """The values, unchanged."""
        return values

    def convert(self, control: StepControl, sample: int) -> StepControl:
        """The control values, unchanged."""
        return control

    def encoded(self) -> Array:
        """The message, unchanged."""
        return self.message


@implements(proc=Source, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class IntegerSourceModel(SourceModel):
    """Source in integers."""

    control_port = LavaPyType(PyOutPort.VEC_DENSE, np.int64)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        learning = self.part.learning
        assert learning.engine is not None
        self.factors = third_factors(learning.engine, learning.training.rates)

    def to_units(self, name: str, values: Array) -> Array:
        """Values rounded to multiples of the unit of the population."""
        fixed = self.part.job.network.fixed
        assert fixed is not None
        return nearest(values, fixed.units[name]).astype(float)

    def convert(self, control: StepControl, sample: int) -> StepControl:
        """In integers, with y2 scaled by the rate of the sample."""
        return integer_control(control, int(self.factors[sample]))

    def encoded(self) -> Numbers:
        """The message in integers."""
        return self.message.astype(np.int64)
