"""The records of a population of Lava's own neurons, which keep none."""

from __future__ import annotations

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyInPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import InPort
from lava.magma.core.process.process import AbstractProcess, ProcessParameters
from lava.magma.core.process.variable import Var
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.backends.lava.job import Part, tick
from neuro_eqprop.backends.lava.processes.population import Reporting
from neuro_eqprop.backends.lava.recording import StepRecorder
from neuro_eqprop.backends.subprocess import progress
from neuro_eqprop.spiking.ir import spiking_of


class LifRecorder(AbstractProcess):  # type: ignore[misc]
    """Hears what a population hears and what it sends."""

    def __init__(self, part: Part, *, fed: bool) -> None:
        super().__init__(part=part, fed=fed)
        shape = (part.population.size,)
        self.a_in = InPort(shape=shape)
        self.s_in = InPort(shape=shape)
        self.steps_run = Var(shape=(1,), init=0)


@implements(proc=LifRecorder, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class LifRecorderModel(Reporting):
    """Works out the drive as the neuron does: u = (1 - current_decay) u + a, d = u + outside."""

    a_in = LavaPyType(PyInPort.VEC_DENSE, float)
    s_in = LavaPyType(PyInPort.VEC_DENSE, float)
    steps_run = LavaPyType(np.ndarray, np.int64)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        population = self.part.population
        self.fed: bool = proc_params["fed"]
        self.keep = 1 - spiking_of(population).current_decay
        self.bias, self.u = population.bias, np.zeros(population.size)
        self.current = self.part.job.stimulus.current.get(population.name)
        self.recorder = StepRecorder(self.part)
        self.life = progress(self.part.folder)

    def step(self, sample: int, step: int) -> None:
        """Record a step."""
        arriving = self.a_in.recv() if self.fed else 0.0
        spike = self.s_in.recv() > 0
        if step == 0:
            self.u = np.zeros_like(self.u)
        self.u = self.keep * self.u + arriving
        outside = self.bias if self.current is None else self.bias + self.current[sample]
        now = tick(self.part.job.schedule, step)
        values = {"drive": self.u + outside}
        self.recorder.note(step, now, message=spike, firing=spike, values=values)
        self.steps_run[0] += 1
        self.life[self.part.index + 1] = self.time_step
