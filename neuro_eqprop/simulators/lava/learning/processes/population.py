"""Base classes of the populations of a network that learns on Lava."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.process import ProcessParameters

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.files.arrays import write_npy
from neuro_eqprop.files.subprocess import progress
from neuro_eqprop.simulators.lava.job import Tick, tick
from neuro_eqprop.simulators.lava.learning.job import (
    LearningPopulation,
    StepControl,
    message_size,
    message_slices,
)
from neuro_eqprop.simulators.lava.learning.recording import (
    post_history,
    synapses_onto,
    trace_counts,
)
from neuro_eqprop.simulators.lava.processes.population import NeuronModel, PopulationProcess
from neuro_eqprop.simulators.lava.recording import StepRecorder
from neuro_eqprop.spiking.neurons import Neurons, Numbers

LENGTH = len(StepControl._fields)


class LearningProcess(PopulationProcess):
    """Neurons that receive the source's message and send y1, y2 and y3 to their synapses."""

    def __init__(self, part: LearningPopulation) -> None:
        super().__init__(part)
        shape = (part.population.size,)
        self.control_port = InPort(shape=(message_size(part.job),))
        self.y1 = OutPort(shape=shape)
        self.y2 = OutPort(shape=shape)
        self.y3 = OutPort(shape=shape)


class Recorder:
    """Records activity, traces and progress of one population."""

    def __init__(self, part: LearningPopulation) -> None:
        self.part, self.done = part, 0
        self.activity, self.progress = StepRecorder(part), progress(part.folder)
        self.total = part.job.steps * part.job.stimulus.samples
        learning, name = part.learning, part.population.name
        self.units = [learning.chosen[k][1] for k in synapses_onto(learning, name)]
        self.history = np.zeros(post_history(learning, part.folder, part.index).shape)

    def step(self, step: int, now: Tick, neurons: Neurons, sent: Numbers) -> None:
        """Record the activity of a step."""
        shown, values = neurons.payload(sent), neurons.values()
        self.activity.record(step, now, message=shown, firing=neurons.firing(), values=values)

    def traces(self, sample: int, step: int, trace: Array, counts: Ints) -> None:
        """Record the traces after a step; after the last step, write the files."""
        self.history[sample, step] = trace[self.units]
        self.done += 1
        if self.done == self.total:
            learning, folder, index = self.part.learning, self.part.folder, self.part.index
            write_npy(trace_counts(learning, folder, index).path, counts)
            write_npy(post_history(learning, folder, index).path, self.history)
        self.progress[self.part.index + 1] = self.done


class LearningModel(NeuronModel):
    """Neurons whose steps are controlled by the messages of the source."""

    part: LearningPopulation

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        job, population = self.part.job, self.part.population
        self.recorder = Recorder(self.part) if self.part.recorded else None
        self.trace = np.zeros(population.size)
        self.counts = np.zeros(len(job.schedule), dtype=np.int64)
        here = message_slices(job)
        self.current, self.pull = (here.get((population.name, k)) for k in ("current", "pull"))

    def report(self) -> None:
        """Write the traceback to the folder, if results are recorded."""
        if self.part.recorded:
            super().report()

    def step(self, sample: int, step: int) -> None:
        """One step, controlled by the message of the source."""
        message, neurons = self.control_port.recv(), self.neurons
        one, by_beta = self.receive()
        control, now = StepControl(*message[:LENGTH]), tick(self.part.job.schedule, step)
        if control.start:
            one = by_beta = self.no_input
            neurons.rest(self.no_input.shape)
        sent = self.no_input
        if not control.silent:
            beta = self.beta(control)
            current, pull = (
                self.read_input(message, self.current),
                self.read_input(message, self.pull),
            )
            sent = neurons.advance(one, by_beta, beta, neurons.outside(current, pull, beta))
        self.s_out.send(self.commit_message() if control.silent else sent)
        self.update_traces(sent, bool(control.silent), now.phase)
        self.send_factors(control)
        if self.recorder is not None:
            self.recorder.step(step, now, neurons, sent)
        self.finish_step(sample, step)

    def update_traces(self, sent: Numbers, silent: bool, phase: int) -> None:
        """Update the traces and count those that change."""
        new = self.new_traces(sent, silent)
        self.counts[phase] += np.count_nonzero(new != self.trace)
        self.trace = new

    def finish_step(self, sample: int, step: int) -> None:
        """Count the step and record its traces."""
        self.overflows[:] = self.neurons.overflows
        self.steps_run[0] += 1
        if self.recorder is not None:
            self.recorder.traces(sample, step, self.trace, self.counts)

    @abstractmethod
    def read_input(self, message: Numbers, place: slice | None) -> Array | None:
        """The current or pull in slice `place` of the message, in floating point."""

    @abstractmethod
    def beta(self, control: StepControl) -> float:
        """The beta of the step."""

    @abstractmethod
    def commit_message(self) -> Numbers:
        """The message that the population sends in a commit."""

    @abstractmethod
    def new_traces(self, sent: Numbers, silent: bool) -> Array:
        """The traces after a step in which the units sent `sent`."""

    @abstractmethod
    def send_factors(self, control: StepControl) -> None:
        """Send y1, y2 and y3 to the synapses."""


class FloatLearningModel(LearningModel):
    """Learning population in float64."""

    control_port = LavaPyType(PyInPort.VEC_DENSE, float)
    a_one = LavaPyType(PyInPort.VEC_DENSE, float)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, float)
    y1 = LavaPyType(PyOutPort.VEC_DENSE, float)
    y2 = LavaPyType(PyOutPort.VEC_DENSE, float)
    y3 = LavaPyType(PyOutPort.VEC_DENSE, float)

    def read_input(self, message: Numbers, place: slice | None) -> Array | None:
        """The value of the message, unchanged."""
        return None if place is None else message[place]

    def beta(self, control: StepControl) -> float:
        """The value of the message, unchanged."""
        return float(control.beta)

    def send_factors(self, control: StepControl) -> None:
        """Send the trace as y1; in a commit, send eta instead."""
        ones = np.ones_like(self.trace)
        self.y1.send(control.eta * ones if control.silent else self.trace)
        self.y2.send(control.third * ones)
        self.y3.send(control.pulse * ones)
