"""What a spiking and a graded population have in common on Lava."""

from __future__ import annotations

import traceback
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from lava.magma.core.model.py.model import PyLoihiProcessModel
from lava.magma.core.model.py.ports import PyInPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.process import AbstractProcess, ProcessParameters
from lava.magma.core.process.variable import Var

from neuro_eqprop.arrays import Array, Bits, Ints
from neuro_eqprop.backends.child import progress, report
from neuro_eqprop.backends.lava_job import Part, tick
from neuro_eqprop.backends.lava_tables import Ledger
from neuro_eqprop.spiking.integers import integers, nearest, saturate, scale, twelve, wrap
from neuro_eqprop.spiking.ir import Gain

Numbers: TypeAlias = npt.NDArray[Any]
"""Real or whole numbers, or bits."""


class Reporting(PyLoihiProcessModel):  # type: ignore[misc]
    """A model whose errors reach the parent; to Lava itself they are an endless wait."""

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.part: Part = proc_params["part"]

    def run_spk(self) -> None:
        """One step of Lava."""
        try:
            sample, step = divmod(self.time_step - 1, self.part.job.steps)
            self.step(sample, step)
        except BaseException:
            report(self.part.folder, traceback.format_exc())
            raise

    @abstractmethod
    def step(self, sample: int, step: int) -> None:
        """One step of that sample."""


class PopulationProcess(AbstractProcess):  # type: ignore[misc]
    """Neurons: what arrives with gain one, what arrives with gain beta, and what they send."""

    def __init__(self, part: Part) -> None:
        super().__init__(part=part)
        shape = (part.population.size,)
        self.a_one = InPort(shape=shape)
        self.a_beta = InPort(shape=shape)
        self.s_out = OutPort(shape=shape)
        self.steps_run = Var(shape=(1,), init=0)
        self.overflows = Var(shape=(2,), init=0)


class PopulationModel(Reporting):
    """The clock of a population: it starts each sample at rest and keeps the books."""

    steps_run = LavaPyType(np.ndarray, np.int64)
    overflows = LavaPyType(np.ndarray, np.int64)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        job, population = self.part.job, self.part.population
        self.current = job.stimulus.current.get(population.name)
        self.pull = job.stimulus.pull.get(population.name)
        self.fed = {g: bool(job.network.into(population.name, g)) for g in Gain}
        self.ledger = Ledger(self.part)
        self.life = progress(self.part.folder)
        self.last_phase = -1

    def step(self, sample: int, step: int) -> None:
        """One step of that sample; at its start nothing arrives that was sent before."""
        one = self.a_one.recv() if self.fed[Gain.ONE] else self.nothing
        by_beta = self.a_beta.recv() if self.fed[Gain.BETA] else self.nothing
        now = tick(self.part.job.schedule, step)
        if step == 0:
            one = by_beta = self.nothing
            self.rest()
        if step == 0 or now.phase != self.last_phase:
            self.outside = self.from_outside(sample, now.beta)
            self.last_phase = now.phase
        message = self.advance(one, by_beta, now.beta)
        self.s_out.send(message)
        told = self.told(message)
        self.ledger.note(step, now, message=told, firing=self.firing(), values=self.values())
        self.steps_run[0] += 1
        self.life[self.part.index + 1] = self.time_step

    @abstractmethod
    def from_outside(self, sample: int, beta: float) -> Numbers:
        """bias + current + beta pull."""

    @abstractmethod
    def rest(self) -> None:
        """Forget the sample before."""

    @abstractmethod
    def advance(self, one: Numbers, by_beta: Numbers, beta: float) -> Numbers:
        """One step; returns what is sent."""

    @abstractmethod
    def told(self, message: Numbers) -> Numbers:
        """What was sent, in real numbers."""

    @abstractmethod
    def firing(self) -> Array | Bits:
        """What is averaged over a window for the rate, in real numbers."""

    @abstractmethod
    def values(self) -> Mapping[str, Array]:
        """The variables that can be recorded, in real numbers."""


class RealModel(PopulationModel):
    """A population in float64."""

    outside: Array
    a_one = LavaPyType(PyInPort.VEC_DENSE, float)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, float)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        population = self.part.population
        self.bias = population.bias
        self.neuron = population.neuron
        self.nothing = np.zeros(population.size)

    def from_outside(self, sample: int, beta: float) -> Array:
        """bias + current + beta pull."""
        current = self.nothing if self.current is None else self.current[sample]
        pull = self.nothing if self.pull is None else self.pull[sample]
        return np.asarray(self.bias + current + beta * pull)

    def told(self, message: Numbers) -> Numbers:
        """The message itself."""
        return message


class WholeModel(PopulationModel):
    """A population in whole numbers, which counts what does not fit 24 bits."""

    outside: Ints
    a_one = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, np.int64)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        population = self.part.population
        self.neuron = integers(self.part.job.network, population)
        self.nothing = np.zeros(population.size, dtype=np.int64)

    def from_outside(self, sample: int, beta: float) -> Ints:
        """bias + current + beta pull, each a whole number of units."""
        unit, outside = self.neuron.unit, self.neuron.bias
        if self.current is not None:
            outside = outside + nearest(self.current[sample], unit)
        if self.pull is not None:
            outside = outside + scale(nearest(self.pull[sample], unit), twelve(beta))
        return outside

    def wrapped(self, x: Ints) -> Ints:
        """x wrapped, and counted where that made a difference."""
        fits = wrap(x)
        self.overflows[0] += np.count_nonzero(fits != x)
        return fits

    def saturated(self, x: Ints) -> Ints:
        """x saturated, and counted where that made a difference."""
        fits = saturate(x)
        self.overflows[1] += np.count_nonzero(fits != x)
        return fits
