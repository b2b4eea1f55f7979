"""Base classes of spiking and graded populations on Lava."""

from __future__ import annotations

import traceback
from abc import abstractmethod

import numpy as np
from lava.magma.core.model.py.model import PyLoihiProcessModel
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.process import AbstractProcess, ProcessParameters
from lava.magma.core.process.variable import Var

from neuro_eqprop.files.subprocess import progress, report
from neuro_eqprop.simulators.lava.job import Part, tick
from neuro_eqprop.simulators.lava.recording import StepRecorder
from neuro_eqprop.spiking.ir import Gain
from neuro_eqprop.spiking.neurons import Numbers, neurons_of


class Reporting(PyLoihiProcessModel):  # type: ignore[misc]
    """A process model that reports its errors to the parent; Lava itself would wait forever."""

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.part: Part = proc_params["part"]

    def run_spk(self) -> None:
        """Run one step of Lava; an error is reported before it is raised."""
        try:
            sample, step = divmod(self.time_step - 1, self.part.job.steps)
            self.step(sample, step)
        except BaseException:
            self.report()
            raise

    def report(self) -> None:
        """Write the traceback to the folder that the parent polls."""
        report(self.part.folder, traceback.format_exc())

    @abstractmethod
    def step(self, sample: int, step: int) -> None:
        """Run step number `step` of sample number `sample`."""


class PopulationProcess(AbstractProcess):  # type: ignore[misc]
    """Neurons with input ports for gain one and for gain beta, and an output port."""

    def __init__(self, part: Part) -> None:
        super().__init__(part=part)
        shape = (part.population.size,)
        self.a_one = InPort(shape=shape)
        self.a_beta = InPort(shape=shape)
        self.s_out = OutPort(shape=shape)
        self.steps_run = Var(shape=(1,), init=0)
        self.overflows = Var(shape=(2,), init=0)


class NeuronModel(Reporting):
    """Base of the models of populations: the neurons, and the input through both ports."""

    steps_run = LavaPyType(np.ndarray, np.int64)
    overflows = LavaPyType(np.ndarray, np.int64)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        network, population = self.part.job.network, self.part.population
        self.neurons = neurons_of(network, population)
        dtype = np.float64 if network.fixed is None else np.int64
        self.no_input = np.zeros(population.size, dtype=dtype)
        self.connected = {gain: bool(network.into(population.name, gain)) for gain in Gain}

    def receive(self) -> tuple[Numbers, Numbers]:
        """Synaptic input of gain one and of gain beta; zero for a port without projections."""
        one = self.a_one.recv() if self.connected[Gain.ONE] else self.no_input
        by_beta = self.a_beta.recv() if self.connected[Gain.BETA] else self.no_input
        return one, by_beta


class PopulationModel(NeuronModel):
    """Steps a population, resets it at the start of each sample, and records it."""

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        job, population = self.part.job, self.part.population
        self.current = job.stimulus.current.get(population.name)
        self.pull = job.stimulus.pull.get(population.name)
        self.recorder = StepRecorder(self.part)
        self.progress = progress(self.part.folder)
        self.last_phase = -1

    def step(self, sample: int, step: int) -> None:
        """One step of a sample; the first step drops messages sent in the previous sample."""
        one, by_beta = self.receive()
        now, neurons = tick(self.part.job.schedule, step), self.neurons
        if step == 0:
            one = by_beta = self.no_input
            neurons.rest(self.no_input.shape)
        if step == 0 or now.phase != self.last_phase:
            current = None if self.current is None else self.current[sample]
            pull = None if self.pull is None else self.pull[sample]
            self.outside = neurons.outside(current, pull, now.beta)
            self.last_phase = now.phase
        message = neurons.advance(one, by_beta, now.beta, self.outside)
        self.s_out.send(message)
        payload = neurons.payload(message)
        self.recorder.record(
            step, now, message=payload, firing=neurons.firing(), values=neurons.values()
        )
        self.overflows[:] = neurons.overflows
        self.steps_run[0] += 1
        self.progress[self.part.index + 1] = self.time_step
